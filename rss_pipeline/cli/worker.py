"""The command `worker`: this machine executes runs of a fleet. Its processes are in orchestration/fleet.

The main machine is `up --fleet` (poll.py); both are in the fleet by `in_fleet`.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import JoinRefused, SettingMistake, SettingsError, ensure_room
from rss_pipeline.orchestration.fleet.names import DEFAULT, HIGH, INCARNATION_TAG
from rss_pipeline.orchestration.fleet.worker import LOOK_SIGNAL, consumer, keep_consuming
from rss_pipeline.pipeline.fleet.broker import check_broker
from rss_pipeline.pipeline.fleet.joining import join, this_machine
from rss_pipeline.pipeline.fleet.membership import Membership, Over, beating
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.fleet.workers import Fleet, Member
from rss_pipeline.storage.reports.diagnostics import lacks_backups

_BACKUPS_LOOKED_AT = 3


@click.command()
@click.pass_obj
def worker(settings: Settings) -> None:
    """Execute runs for the main machine of a fleet (`rss-pipeline up --fleet`), until it is stopped.

    It has RSS_WORKER_RUNS places for runs, and one more for what a person waits for. SIGINT (Ctrl-C) and
    SIGTERM interrupt its runs, which release their claims; a second signal kills them. After the main machine
    was updated it takes no more runs, ends those that it has, and ends with exit code 1.
    """
    if settings.fleet is None:
        raise SettingsError(
            SettingMistake(
                ("RSS_BROKER_URL",),
                "not set; a worker takes its runs from the main machine's broker: set it and DATABASE_URL as"
                " there",
            )
        )
    ensure_room(settings.home)
    check_broker(settings.fleet)
    places = {DEFAULT: settings.fleet.worker_runs, HIGH: 1}
    with open_database(settings) as database:
        _check_objects(settings, database)
        signals = _noted_signals()
        member = this_machine(
            "worker",
            settings.fleet.worker_name,
            queues=tuple(places),
            runs_at_once=settings.fleet.worker_runs,
        )
        tags = {INCARNATION_TAG: member.incarnation}
        commands = {queue: consumer(queue, runs, tags) for queue, runs in places.items()}
        with in_fleet(database, member, signals) as (found, membership):
            signal.signal(LOOK_SIGNAL, lambda *_: membership.hurry())
            if found.main is None:
                terminal.complain(
                    "There is no main machine yet: runs come when `rss-pipeline up --fleet` has started."
                )
            terminal.say(
                f"Worker {member.name}: {settings.fleet.worker_runs} runs at once, and one for which a person"
                " waits; Ctrl-C stops it."
            )
            sys.stdout.flush()
            code = keep_consuming(commands, membership, signals, say=terminal.complain)
    sys.exit(code)


@contextmanager
def in_fleet(
    database: Database, member: Member, signals: Sequence[int] = ()
) -> Iterator[tuple[Fleet, Membership]]:
    """Be part of the fleet for the block; gives the fleet as it was before, and the membership.

    Raises:
        JoinRefused: with a sentence that says what to do.
    """
    over = threading.Event()

    def wait(seconds: float) -> None:
        over.wait(seconds)
        if signals:
            raise click.Abort

    found = join(database, member, clock=utc_now, wait=wait, say=terminal.complain)
    membership = Membership(database, member, say=terminal.complain)
    with beating(membership):
        yield found, membership


@contextmanager
def main_machine(settings: Settings) -> Iterator[None]:
    """Be the main machine of the fleet for the block. If another one takes its name, this process ends: two
    would start each run twice."""
    assert settings.fleet is not None
    check_broker(settings.fleet)
    member = this_machine("main", settings.fleet.worker_name)
    with open_database(settings) as database, in_fleet(database, member) as (_, membership):
        membership.on_over = _end
        yield


def _end(over: Over) -> None:
    terminal.complain(f"{over.reason}. This one ends.")
    os.kill(os.getpid(), signal.SIGTERM)


def _noted_signals() -> list[int]:
    """The signals that this process gets from now on, none of which ends it by itself."""
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: signals.append(number))
    return signals


def _check_objects(settings: Settings, database: Database) -> None:
    """Refuse a store of objects that is not the fleet's: what was collected would be on several machines."""
    if lacks_backups(database, open_objects(settings), limit=_BACKUPS_LOOKED_AT):
        where = (
            f"the folder {settings.objects_path}"
            if settings.s3 is None
            else f"the bucket {settings.s3.bucket}"
        )
        raise JoinRefused(
            f"{where} has none of the newest backups, so it is not where the other machines keep objects: set"
            " S3_* as there, or mount their folder"
        )
