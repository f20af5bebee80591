"""The commands `up` and `poll`: collecting, in Dagster's own processes or in this one.

`up` starts processes that supervisor.py keeps running; the rounds of `poll` are in pipeline/visits/rounds.py.
"""

import errno
import os
import pickle
import resource
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import click
import psutil

from rss_pipeline.cli.arguments import as_json, one_feed
from rss_pipeline.cli.home_lock import HomeLock
from rss_pipeline.cli.output import terminal
from rss_pipeline.cli.output.polls import PollResult
from rss_pipeline.cli.start import imports_that_stay
from rss_pipeline.cli.supervisor import become, keep_up
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import (
    HomeNotLockable,
    InfrastructureError,
    RegistryError,
    SettingMistake,
    SettingsError,
    ensure_room,
)
from rss_pipeline.features import FEATURES
from rss_pipeline.held_folders import socket_root
from rss_pipeline.orchestration.serving.forked import Forked
from rss_pipeline.reserve import keep_reserve
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.due import due_now

if TYPE_CHECKING:
    from rss_pipeline.pipeline.registry.sync import RegistrySync

ENDING_SECONDS = 75.0
"""Time for the processes of an `up` that was killed: they notice it at once, and have a minute to end."""
FILES, LEAST_FILES = 4096, 128
"""Open files of each process."""
_SERVING = ("rss_pipeline.cli.services", "rss_pipeline.orchestration.serving.")

_FLAGS = {name: flag for feature in FEATURES for name, flag in feature.up_flags.items()}
_WAITING_CLIENTS = 2048
_Command = TypeVar("_Command", bound=Callable[..., object])

yes = click.option(
    "--yes", is_flag=True, help="Accept a feeds.yaml that removes more than half of the feeds."
)


def _with_flags(command: _Command) -> _Command:
    for name, flag in _FLAGS.items():
        command = click.option(f"--{name}", is_flag=True, help=flag.help)(command)
    return command


@click.command()
@yes
@_with_flags
@click.pass_obj
def up(settings: Settings, /, yes: bool, **flags: bool) -> None:
    """Start the UI and the daemon: migrate, sync the registry, then poll until it is stopped.

    A Dagster process that ends by itself is started again, after a wait that grows. SIGINT (Ctrl-C) and
    SIGTERM end all processes.
    """
    for name, flag in _FLAGS.items():
        flag.check.load()(settings, flags[name.replace("-", "_")])
    ui = f"http://127.0.0.1:{settings.port}"
    _check_processes_are_seen()
    _take_files()
    ensure_room(settings.home, settings.dagster_home)
    keep_reserve(settings.home)
    _shorten_tmpdir()
    # Before the port: a second one in this home may have another one.
    lock = None
    try:
        lock = HomeLock(settings.home, address=ui)
        click.get_current_context().call_on_close(lock.release)
    except HomeNotLockable as error:
        terminal.complain(str(error))
    doors = [_bound(settings.ui_address, settings.port, names=("RSS_UI_ADDRESS", "RSS_PORT"))]
    if settings.reader:
        names = ("RSS_READER_ADDRESS", "RSS_READER_PORT")
        doors.append(_bound(settings.reader_address, settings.reader_port, names=names))

    for name, flag in _FLAGS.items():
        if flags[name.replace("-", "_")]:
            click.get_current_context().with_resource(flag.within.load()(settings))

    workspace = Path.cwd() / "workspace.yaml"
    where = [str(workspace)] if workspace.exists() else []
    # It saves typing -m at Dagster's other commands; the daemon refuses it beside its workspace.
    os.environ.pop("DAGSTER_MODULE_NAME", None)
    command = [sys.executable, "-W", "ignore", "-m", "rss_pipeline.cli.services"]
    # Dagster is the child's alone: imported here, it would take 60 MB for as long as `up` runs.
    with tempfile.TemporaryFile() as handed_over:
        Forked.listeners.extend(doors)
        _sync_for(settings, handed_over, yes=yes)
        for door in doors:
            # From now on a client waits, and is not refused, also while a process that serves starts again.
            door.listen(_WAITING_CLIENTS)
        terminal.say(f"Dagster's UI is at {ui}; Ctrl-C stops it.")
        sys.stdout.flush()
        files = [handed_over.fileno(), *(door.fileno() for door in doors)]
        numbers = [str(os.getpid()), ",".join(map(str, files))]
        command += [*numbers, *where]
        if threading.active_count() == 1:
            become(command, files=files, kept=[] if lock is None else [lock.file])
        # A fleet's main machine goes on in a thread.
        code = keep_up(command, say=terminal.complain, pass_fds=files)
    sys.exit(code)


@click.command()
@click.argument("feed", nargs=-1)
@click.option(
    "--all",
    "all_feeds",
    is_flag=True,
    help="Visit every feed, due or not; requests stay conditional and paced.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    help="Seconds to wait for FEED while another run visits it or its host, which makes way, or until a"
    " minute has passed since its last answer. By default until the claim of a killed run is over:"
    " RSS_PIPELINE_LEASE_SECONDS and a minute.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 also if any feed failed or was not visited.")
@yes
@as_json
@click.pass_obj
def poll(
    settings: Settings,
    feed: tuple[str, ...],
    all_feeds: bool,
    wait: float | None,
    strict: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Poll in this process until nothing is due. FEED is an id, a URL or a part of one.

    Named feeds, or all feeds with --all, are visited even if they are not due, but not while their host is on
    hold (Retry-After). Exit code 1 for what a person has to fix now: no feed could be reached, a store
    failed, feeds.yaml has mistakes; and if a FEED that was named failed or was not visited. Other feeds that
    fail are tried again by themselves; with --strict they count, too.
    """
    from rss_pipeline.pipeline.read.feed_notes import none_reached
    from rss_pipeline.pipeline.triggers.starts import has_pending_work, has_registry_news

    is_requested = bool(feed) or all_feeds
    patience = settings.lease_seconds + 60.0 if wait is None else wait
    ensure_room(settings.home, settings.dagster_home)
    keep_reserve(settings.home)
    with open_database(settings) as database:
        synced, refused = _sync(settings, database, yes=yes)
        if synced is None or not has_registry_news(synced):
            # A name that no feed has is known here, seconds before Dagster is loaded.
            for text in feed:
                one_feed(database, text)
        if synced is None or is_requested or has_pending_work(database, synced, now=utc_now()):
            result = _poll_in_process(
                settings, database, synced, feed, all_feeds=all_feeds, patience=patience
            )
        else:
            result = replace(
                PollResult.of([]),
                claimed=due_now(database, utc_now()),
            )
        if not result.errors:
            result = replace(result, nothing_reached=none_reached(database))
    result = replace(result, registry_error=refused)
    if as_json:
        terminal.say_json(result.as_json())
    else:
        result.show()
    for sentence in result.not_visited():
        terminal.complain(sentence)
    if result.publication_error is not None:
        terminal.complain(f"Topics were not published; the next poll tries again. {result.publication_error}")
    if refused is not None:
        # The mistakes themselves were printed first, and may have left the screen.
        terminal.complain(
            f"{settings.feeds_file} has errors (see above); the previous list of feeds stays in use."
        )
    if result.needs_a_person or ((feed or strict) and (result.failures or result.left)):
        sys.exit(1)


def _poll_in_process(
    settings: Settings,
    database: Database,
    synced: "RegistrySync | None",
    feed: tuple[str, ...],
    *,
    all_feeds: bool,
    patience: float,
) -> PollResult:
    with imports_that_stay():
        import dagster as dg

        from rss_pipeline.orchestration.build_polls import poll_definitions, refresh_definitions
        from rss_pipeline.orchestration.in_process import poll_in_process, refresh_in_process
        from rss_pipeline.orchestration.instance.home import open_instance_at_terminal
        from rss_pipeline.orchestration.registry_partitions import register
        from rss_pipeline.pipeline.triggers.starts import refresh_reason
        from rss_pipeline.pipeline.visits.rounds import not_begun, not_visited, on_hold
        from rss_pipeline.storage.refresh.open_requests import waiting

    started = utc_now()
    with open_instance_at_terminal(settings) as instance:
        if synced is not None:
            register(database, instance, synced)
        ids = [one_feed(database, text)["id"] for text in feed]
        # Where no `up` runs, nobody else makes the visits that users of the reader wait for.
        of_users = waiting(database, now=utc_now())
        failed = None
        if of_users.can_begin and not ids:
            definitions = refresh_definitions(settings, clock=utc_now)
            failed = refresh_in_process(definitions, instance, reason=refresh_reason(of_users))
        with terminal.Bars() as progress:
            # The runs use the open database and the registry already read: on D1 each is a request more.
            definitions = poll_definitions(
                settings,
                clock=utc_now,
                progress=progress,
                synced=synced,
                resource_overrides={"database": dg.ResourceDefinition.hardcoded_resource(database)},
            )
            rounds = list(
                poll_in_process(
                    definitions,
                    instance,
                    database,
                    clock=utc_now,
                    feeds=ids,
                    all_feeds=all_feeds,
                    patience=patience,
                )
            )
        late = not_begun(rounds)
        left = [*on_hold(rounds), *late]
        if (ids or all_feeds) and synced is not None and all(round_.error is None for round_ in rounds):
            named = not_visited(database, ids, since=started, now=utc_now(), all_feeds=all_feeds)
            ids_late = {each.feed_id for each in late}
            left = [*(each for each in named if each.feed_id not in ids_late), *late]
    result = PollResult.of(rounds, left)
    errors = [*([] if failed is None else [failed]), *result.errors]
    return replace(result, errors=errors, requested=0 if ids else of_users.can_begin)


def _check_processes_are_seen() -> None:
    if sys.platform == "linux" and not Path("/proc/self/stat").exists():
        raise InfrastructureError(
            "/proc is not mounted, and every run at work would be taken for one that was killed: mount it"
            " (`mount -t proc proc /proc`), or start the container with it"
        )


def _take_files() -> None:
    """Take what this user may have: each client and each open database is a file."""
    most, hardest = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hardest == resource.RLIM_INFINITY else min(FILES, hardest)
    if most != resource.RLIM_INFINITY and most < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hardest))
        most = wanted
    if most != resource.RLIM_INFINITY and most < LEAST_FILES:
        raise InfrastructureError(
            f"this user may have only {most} open files at once, and `up` needs {LEAST_FILES}: raise"
            f" the limit (`ulimit -n {FILES}`, LimitNOFILE of systemd, or that of the container)"
        )


def _shorten_tmpdir() -> None:
    """Let Dagster's servers, which listen on sockets there, use another folder where TMPDIR is too long."""
    try:
        root = str(socket_root())
    except OSError as error:
        raise SettingsError(SettingMistake(("TMPDIR",), error.strerror or str(error))) from error
    if root != tempfile.gettempdir():
        os.environ["TMPDIR"] = tempfile.tempdir = root


def _bound(
    address: str, port: int, *, names: tuple[str, str], seconds: float = ENDING_SECONDS
) -> socket.socket:
    """A socket at this address, which does not listen yet. One that cannot be is refused, by the names of the
    settings for address and port.

    Processes of an `up` that was killed end a moment after it: they are waited for, so many seconds at most.
    """
    until = time.monotonic() + seconds
    has_said = False
    while (left := _left_at(port)) is not None:
        if time.monotonic() > until:
            raise click.ClickException(
                f"port {port} is used by process {left}, left of an `rss-pipeline up` that was killed, and"
                f" does not end: kill it (`kill -9 {left}`), or set {names[1]} to another port"
            )
        if not has_said:
            terminal.complain(
                f"Port {port} is used by process {left}, left of an `rss-pipeline up` that was killed;"
                " waiting until it ends."
            )
        has_said = True
        time.sleep(0.5)
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((address, port))
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise click.ClickException(
                f"this machine does not have the address {address}: correct {names[0]}, or remove it"
            ) from error
        raise click.ClickException(
            f"port {port} is in use ({error.strerror}): stop the program that uses it, or set"
            f" {names[1]} to another port"
        ) from error
    return door


def _left_at(port: int) -> int | None:
    """The id of the process at this port that an `up` has left which does not live any more."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if _module(process) is None:
                continue
            found = process.net_connections("tcp")
            if any(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found):
                oldest = process
                for parent in process.parents():
                    if _module(parent) is None:
                        break
                    oldest = parent
                # The supervisor is above all others while it lives.
                return process.pid if (_module(oldest) or "").startswith(_SERVING) else None
    return None


def _module(process: psutil.Process) -> str | None:
    """The module of ours that this process runs, if it runs one."""
    words = process.cmdline()
    if any(Path(word).name == "rss-pipeline" for word in words[:2]):
        return "rss_pipeline.cli"
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    return module if module.startswith("rss_pipeline.") else None


def _sync_for(settings: Settings, file: IO[bytes], *, yes: bool) -> None:
    """Migrate, sync the registry, and write what it gave into this file.

    This is done in a process of its own, where it can be: what it imports and leaves behind would be in
    memory for as long as `up` runs.
    """

    def work() -> int:
        try:
            with open_database(settings) as database:
                pickle.dump(_sync(settings, database, yes=yes)[0], file)
            file.flush()
        except Exception as error:
            if not terminal.explained(error, settings.home, settings.dagster_home):
                raise
            return 1
        return 0

    # A fleet's main machine has a thread already.
    is_forked = sys.platform == "linux" and threading.active_count() == 1
    if (code := Forked("rss-sync", work).wait() if is_forked else work()) != 0:
        sys.exit(code)


def _sync(
    settings: Settings, database: Database, *, yes: bool
) -> "tuple[RegistrySync, None] | tuple[None, str]":
    """Sync the registry; or None and, printed as well, the mistakes of feeds.yaml."""
    from rss_pipeline.pipeline.registry.sync import sync_registry

    try:
        synced = sync_registry(database, settings, now=utc_now(), yes=yes)
    except RegistryError as error:
        terminal.complain(str(error))
        return None, str(error)
    terminal.say(f"{settings.feeds_file}: {synced}", err=True)
    return synced, None
