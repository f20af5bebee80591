"""The command `worker`: this machine executes runs of a fleet. Its processes are worker.py's.

The main machine is `up --fleet`; both are in the fleet by `in_fleet`.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from rss_pipeline.cli.output import terminal
from rss_pipeline.cli.supervisor import ending_signals
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import BrokerUnavailable, JoinRefused, SettingMistake, SettingsError, ensure_room
from rss_pipeline.extras import FLEET
from rss_pipeline.features.fleet.membership import (
    Membership,
    Over,
    beating,
    check_clock_of_joining,
    has_mark,
    join,
    mark,
    this_machine,
)
from rss_pipeline.features.fleet.model import DEFAULT, HIGH, INCARNATION_TAG, FleetMember
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.fleet.sql import fleet
from rss_pipeline.features.fleet.worker import LOOK_SIGNAL, consumer, keep_consuming
from rss_pipeline.features.health.model import Finding
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database

_LOOK_SECONDS = 1.0
_LOOKS_AT_OBJECTS = 10


@click.command()
@click.pass_obj
def worker(settings: Settings) -> None:
    """Execute runs for the main machine of a fleet (`rss-pipeline up --fleet`), until it is stopped.

    It has RSS_WORKER_RUNS places for runs, and one more for what a person waits for. SIGINT (Ctrl-C) and
    SIGTERM interrupt its runs, which release their claims; a second signal kills them. After the main machine
    was updated it takes no more runs, ends those that it has, and ends with exit code 1.
    """
    if (own := settings.of(FleetSettings)) is None:
        raise SettingsError(
            SettingMistake(
                ("RSS_BROKER_URL",),
                "not set; a worker takes its runs from the main machine's broker: set it and DATABASE_URL as"
                " there",
            )
        )
    ensure_room(settings.home)
    check_broker(own, ca_file=settings.ca_file)
    places = {DEFAULT: own.worker_runs, HIGH: 1}
    with open_database(settings) as database, _noted_signals() as signals:
        wait = _waiting(signals)
        # Only here is its driver there for certain.
        from rss_pipeline.storage.backends.postgres.connection import check_options

        check_options(own.libpq_url, schema=own.schema)
        # First the clock: a bucket refuses a wrong one as it refuses a wrong key.
        check_clock_of_joining(database, clock=utc_now)
        _check_objects(settings, _await_main(database, wait), wait)
        member = this_machine(
            "worker",
            own.worker_name,
            queues=tuple(places),
            runs_at_once=own.worker_runs,
        )
        tags = {INCARNATION_TAG: member.incarnation}
        commands = {queue: consumer(queue, runs, tags) for queue, runs in places.items()}
        with in_fleet(database, member, wait) as membership, _watching(settings, member):
            signal.signal(LOOK_SIGNAL, lambda *_: membership.hurry())
            terminal.say(
                f"Worker {member.name}: {own.worker_runs} runs at once, and one for which a person"
                " waits; Ctrl-C stops it."
            )
            sys.stdout.flush()
            code = keep_consuming(commands, membership, signals, say=terminal.complain)
    sys.exit(code)


@contextmanager
def in_fleet(
    database: Database, member: FleetMember, wait: Callable[[float], object]
) -> Iterator[Membership]:
    """Be part of the fleet for the block.

    Raises:
        JoinRefused: with a sentence that says what to do.
    """
    found = join(database, member, clock=utc_now, wait=wait, say=terminal.complain)
    before = found.named(member.role, member.name)
    membership = Membership(database, member, say=terminal.complain, before=before)
    with beating(membership):
        yield membership


def check_flag(settings: Settings, of_fleet: bool) -> None:
    """Refuse a start of `up` as what this installation is not."""
    if of_fleet and settings.of(FleetSettings) is None:
        raise click.ClickException(
            "several machines share a broker and a database: set RSS_BROKER_URL and DATABASE_URL, or leave"
            " --fleet out"
        )
    if settings.of(FleetSettings) is not None and not of_fleet:
        raise click.ClickException(
            "RSS_BROKER_URL is set, so this is one of several machines: `rss-pipeline up --fleet` starts the"
            " main one, and `rss-pipeline worker` one that executes runs"
        )


@contextmanager
def main_machine(settings: Settings) -> Iterator[None]:
    """Be the main machine of the fleet for the block. If another one takes its name, this process ends: two
    would start each run twice."""
    own = settings.of(FleetSettings)
    assert own is not None
    check_broker(own, ca_file=settings.ca_file)
    member = this_machine("main", own.worker_name)
    with open_database(settings) as database, in_fleet(database, member, time.sleep) as membership:
        mark(open_objects(settings), member)
        membership.on_over = _end
        yield


def _end(over: Over) -> None:
    terminal.complain(f"{over.reason}. This one ends.")
    os.kill(os.getpid(), signal.SIGTERM)


def _watching(settings: Settings, member: FleetMember) -> AbstractContextManager[bool]:
    """Alerts by this worker while the main machine is dead, with its daemon and its reader. One worker sends
    them, the first by name."""
    from rss_pipeline.features.health.alerts import watching

    def is_ours(database: Database) -> bool:
        machines = fleet(database)
        alive = [seen.member.name for seen in machines.living_workers]
        return machines.main is None and member.name == min(alive, default="")

    return watching(settings, is_ours=is_ours)


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """The signals that this process gets in the block, none of which ends it by itself."""
    signals: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: signals.append(number)) for number in ending_signals()
    }
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _waiting(signals: Sequence[int]) -> Callable[[float], None]:
    """A function that waits so many seconds, or ends this process after a signal."""

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        if signals:
            raise click.Abort

    return wait


def _await_main(database: Database, wait: Callable[[float], object]) -> FleetMember:
    """The main machine; until there is one, wait."""
    said = False
    while (main := fleet(database).main) is None:
        if not said:
            terminal.complain("No main machine is alive: waiting for `rss-pipeline up --fleet`.")
        said = True
        wait(_LOOK_SECONDS)
    return main.member


def _check_objects(settings: Settings, main: FleetMember, wait: Callable[[float], object]) -> None:
    """Refuse a store of objects that is not the main machine's, a moment after that one has joined."""
    store = open_objects(settings)
    for _ in range(_LOOKS_AT_OBJECTS):
        if has_mark(store, main):
            return
        wait(_LOOK_SECONDS)
    raise JoinRefused(
        f"{settings.objects.described} is not where the main machine, {main.name}, keeps objects: set S3_* as"
        " there, or mount its folder"
    )


ANSWER_SECONDS = 5.0


def broker(settings: Settings) -> Finding | None:
    """The broker, for `doctor`."""
    if (fleet := settings.of(FleetSettings)) is None:
        return None
    check_broker(fleet, ca_file=settings.ca_file)
    return Finding("broker", "ok", f"{fleet.broker_where} takes runs")


def dagster_tables(settings: Settings) -> None:
    """The database of Dagster's tables, for `doctor`: an error where it cannot be used."""
    # Where the driver is missing, the check of the database has said it.
    with suppress(ImportError):
        if (fleet := settings.of(FleetSettings)) is not None:
            from rss_pipeline.storage.backends.postgres.connection import check_options

            check_options(fleet.libpq_url, schema=fleet.schema)


def check_broker(fleet: FleetSettings, *, ca_file: Path | None = None) -> None:
    """Check that the broker answers, and that it takes messages. `ca_file` is trusted besides the usual
    authorities, where it speaks TLS.

    Raises:
        BrokerUnavailable: with a sentence that says what to do. It never has the password.
    """
    if (missing := FLEET.missing) is not None:
        raise BrokerUnavailable(f"{missing}. {FLEET.fix}")
    try:
        from redis import Redis
        from redis import exceptions as problems
    except ImportError as error:
        raise BrokerUnavailable(FLEET.not_imported(error)) from error
    advice: tuple[tuple[type[Exception], str], ...] = (
        (problems.AuthenticationWrongNumberOfArgsError, "check user and password in RSS_BROKER_URL"),
        (problems.AuthenticationError, "check user and password in RSS_BROKER_URL"),
        (
            problems.NoPermissionError,
            "the user of RSS_BROKER_URL may not use it: give it all commands and keys",
        ),
        (problems.BusyLoadingError, "Redis is starting; try again in a moment"),
        (
            problems.ReadOnlyError,
            "it is a replica that takes no messages: name the primary in RSS_BROKER_URL",
        ),
        (problems.OutOfMemoryError, "Redis has no memory left: raise its maxmemory"),
        (problems.TimeoutError, "it does not answer: check host and port in RSS_BROKER_URL, and the network"),
        (
            problems.ConnectionError,
            "the server there is not Redis: check RSS_BROKER_URL, and start it",
        ),
    )
    is_tls = fleet.broker_where.startswith("rediss")
    tls: dict[str, Any] = {"ssl_ca_certs": str(ca_file)} if is_tls and ca_file is not None else {}
    try:
        with Redis.from_url(
            fleet.broker_url,
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            **tls,
        ) as client:
            client.ping()
            # An answer is no proof that it takes a message: it may be a replica, or full.
            client.set("rss_pipeline:check", "1", ex=1)
    except (problems.RedisError, OSError, ValueError) as error:
        text = " ".join(str(error).split())
        what = next((said for kind, said in advice if isinstance(error, kind)), "see the log of Redis")
        if "invalid password" in text.lower() or "WRONGPASS" in text or "NOAUTH" in text:
            what = "check user and password in RSS_BROKER_URL"
        elif "CERTIFICATE_VERIFY_FAILED" in text:
            what = (
                "its certificate is not trusted: name its authority in RSS_CA_FILE, and its name in the URL"
            )
        elif isinstance(cause := error.__cause__ or error.__context__, ConnectionRefusedError):
            what = "no server listens there: start it, or check host and port in RSS_BROKER_URL"
        elif isinstance(cause, socket.gaierror):
            what = "its name does not resolve: check the host in RSS_BROKER_URL"
        elif isinstance(error, problems.TimeoutError) and is_tls:
            what += "; rediss:// is for one with TLS"
        elif "DB index" in text:
            what = "it has fewer databases: correct the number at the end of RSS_BROKER_URL"
        raise BrokerUnavailable(
            f"the broker cannot be used: {what}. {fleet.broker_where}: {text or type(error).__name__}"
        ) from error
