"""The command `up`: the checks before its start, the sync of the registry, and the processes that collect and
serve from then on. supervisor.py keeps them running.
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
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import click

from rss_pipeline.cli.arguments import yes
from rss_pipeline.cli.early import Early, services, taken
from rss_pipeline.cli.home_lock import HomeLock
from rss_pipeline.cli.output import terminal
from rss_pipeline.errors import (
    HomeNotLockable,
    InfrastructureError,
    SettingMistake,
    SettingsError,
    ensure_room,
)
from rss_pipeline.features import FEATURES
from rss_pipeline.held_folders import socket_root
from rss_pipeline.reserve import keep_reserve, release_reserve
from rss_pipeline.settings import Settings

if TYPE_CHECKING:
    import psutil

ENDING_SECONDS = 75.0
"""Time for the processes of an `up` that was killed: they notice it at once, and have a minute to end."""
FILES, LEAST_FILES = 4096, 128
"""Open files of each process."""
_SERVING = ("rss_pipeline.cli.services", "rss_pipeline.orchestration.serving.")

_FLAGS = {name: flag for feature in FEATURES for name, flag in feature.up_flags.items()}
_UI_NAMES = ("RSS_UI_ADDRESS", "RSS_PORT")
_READER_NAMES = ("RSS_READER_ADDRESS", "RSS_READER_PORT")
_WAITING_CLIENTS = 2048
_MOST_SYNCS = 3
_Command = TypeVar("_Command", bound=Callable[..., object])


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
    _check_room(settings)
    _shorten_tmpdir()
    # Before the port: a second one in this home may have another one.
    lock = None
    try:
        lock = HomeLock(settings.home, address=ui)
        click.get_current_context().call_on_close(lock.release)
    except HomeNotLockable as error:
        terminal.complain(str(error))
    command = services()
    early = _early(settings, command)
    from rss_pipeline.cli.supervisor import become, keep_up
    from rss_pipeline.orchestration.serving.forked import Forked

    if early is not None:
        Forked.listeners.append(early.sender)
    doors = [_bound(settings.ui_address, settings.port, names=_UI_NAMES)]
    if settings.reader:
        doors.append(_bound(settings.reader_address, settings.reader_port, names=_READER_NAMES))

    for name, flag in _FLAGS.items():
        if flags[name.replace("-", "_")]:
            click.get_current_context().with_resource(flag.within.load()(settings))

    workspace = Path.cwd() / "workspace.yaml"
    where = [str(workspace)] if workspace.exists() else []
    # It saves typing -m at Dagster's other commands; the daemon refuses it beside its workspace.
    os.environ.pop("DAGSTER_MODULE_NAME", None)
    # Dagster is the child's alone: imported here, it would take 60 MB for as long as `up` runs.
    with tempfile.TemporaryFile() as handed_over:
        Forked.listeners.extend(doors)
        _sync_for(settings, handed_over, yes=yes)
        for door, names in zip(doors, (_UI_NAMES, _READER_NAMES), strict=False):
            # From now on a client waits, and is not refused, also while a process that serves starts again.
            try:
                door.listen(_WAITING_CLIENTS)
            except OSError as error:
                # Another `up` has begun at the same moment.
                raise _in_use(door.getsockname()[1], error, names) from error
        terminal.say(f"Dagster's UI is at {ui}; Ctrl-C stops it.")
        sys.stdout.flush()
        files = [handed_over.fileno(), *(door.fileno() for door in doors)]
        command += [",".join(map(str, files)), *where]
        if threading.active_count() == 1:
            become(command, early=early, files=files, kept=[] if lock is None else [lock.file])
        # A fleet's main machine goes on in a thread.
        code = keep_up(command, early=early, say=terminal.complain, pass_fds=files)
    sys.exit(code)


def _early(settings: Settings, command: list[str]) -> Early | None:
    """The first start of this command, which ends with the command `up` where it ends before its time."""
    early = taken()
    if sys.platform != "linux" or not settings.reader:
        if early is not None:
            early.cancel()
        return None
    if early is None:
        early = Early.begun(command)
    else:
        resource.prlimit(early.pid, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    if early is not None:
        click.get_current_context().call_on_close(early.cancel)
    return early


def _check_processes_are_seen() -> None:
    if sys.platform == "linux" and not Path("/proc/self/stat").exists():
        raise InfrastructureError(
            "/proc is not mounted, and every run at work would be taken for one that was killed: mount it"
            " (`mount -t proc proc /proc`), or start the container with it"
        )


def _check_room(settings: Settings) -> None:
    """Refuse a start without room, unless there is something to read: that goes on, in the reserve."""
    try:
        ensure_room(settings.home, settings.dagster_home)
    except InfrastructureError as full:
        file = settings.database.file
        if not settings.reader or file is None or not file.is_file() or not file.stat().st_size:
            raise
        release_reserve(settings.home)
        terminal.complain(f"{full}. No feed is visited until then; the reader starts.")
    else:
        keep_reserve(settings.home)


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
    has_said = is_last = False
    while True:
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
            # Only here: a look at all processes takes a tenth of a second.
            left = _left_at(port)
            if left is None and is_last:
                raise _in_use(port, error, names) from error
        else:
            return door
        # One that was left may have ended just now.
        is_last = left is None
        if is_last:
            continue
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


def _in_use(port: int, error: OSError, names: tuple[str, str]) -> click.ClickException:
    return click.ClickException(
        f"port {port} is in use ({error.strerror}): stop the program that uses it, or set {names[1]} to"
        " another port"
    )


def _left_at(port: int) -> int | None:
    """The id of the process at this port that an `up` has left which does not live any more."""
    import psutil

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


def _module(process: "psutil.Process") -> str | None:
    """The module of ours that this process runs, if it runs one."""
    words = process.cmdline()
    if any(Path(word).name == "rss-pipeline" for word in words[:2]):
        return "rss_pipeline.cli"
    module = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    return module if module.startswith("rss_pipeline.") else None


def _sync_for(settings: Settings, file: IO[bytes], *, yes: bool) -> None:
    """Migrate, sync the registry, and write what it gave into this file.

    This is done in a process of its own, where it can be: what it imports and leaves behind would be in
    memory for as long as `up` runs. One that was killed, as where memory is short, begins again.
    """
    from rss_pipeline.orchestration.serving.forked import Forked

    def work() -> int:
        from rss_pipeline.cli.poll import sync
        from rss_pipeline.storage.backends.connect import open_database

        try:
            file.seek(0)
            file.truncate()
            with open_database(settings) as database:
                pickle.dump(sync(settings, database, yes=yes)[0], file)
            file.flush()
        except Exception as error:
            if not terminal.explained(error, settings.home, settings.dagster_home):
                raise
            return 1
        return 0

    # A fleet's main machine has a thread already.
    is_forked = sys.platform == "linux" and threading.active_count() == 1
    for _ in range(_MOST_SYNCS):
        code = Forked("rss-sync", work).wait() if is_forked else work()
        if code == 0:
            return
        if code > 0:
            sys.exit(code)
        terminal.complain(f"The process that reads {settings.feeds_file} was killed (signal {-code}).")
    sys.exit(128 - code)
