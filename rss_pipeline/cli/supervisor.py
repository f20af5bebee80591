"""A supervisor of Dagster's processes: `rss-pipeline up` restarts them when they end without a signal to us.

They are forked from one process, cli/services.py. When that ends, all the rest ends with it, and it is
restarted here. No Dagster is imported: this process lives as long as `up`, and stays small.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from rss_pipeline.cli.early import Early
from rss_pipeline.errors import not_started
from rss_pipeline.held_folders import OF_UP, SOCKETS, HeldFolder, socket_root, sweep
from rss_pipeline.orchestration.serving.child import Child

STARTED_SECONDS = 10.0
"""A process that ends sooner at the first start, by itself, has a configuration error; a restart would not
help."""
STEADY_SECONDS = 60.0
"""A process that ran this long is restarted without delay."""
LONGEST_WAIT = 60.0
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit codes of one that was killed, and of one that ends because a part was."""
_ENDED = "ZX"
"""The states of a zombie and of one that is just going, in proc(5)."""
GRACE_SECONDS = 20.0
"""Time for the rest of a process group to end by itself: runs release their claims."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """The signals that end this process politely, SIGHUP not where `nohup` has set it to be ignored."""
    is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if is_ignored else (signal.SIGHUP,)))


def wait_before_restart(lives: Sequence[float], *, was_killed: bool = False) -> float | None:
    """Seconds to wait before the next start, by the seconds that each start lasted, the last one last.

    1, 2, 4 ... 60 s while the processes end soon; None for no next start.
    """
    if len(lives) == 1 and lives[0] < STARTED_SECONDS and not was_killed:
        return None
    short = 0
    for life in reversed(lives):
        if life >= STEADY_SECONDS:
            break
        short += 1
    return min(2.0 ** max(short - 1, 0), LONGEST_WAIT)


def keep_up(
    command: Sequence[str],
    *,
    say: Callable[[str], None],
    early: Early | None = None,
    pass_fds: Sequence[int] = (),
) -> int:
    """Run a command until this process gets a signal, which is passed on to it; return its exit code.

    A command that ends for any other reason is restarted, after the rest of its process group has ended. It
    inherits the files `pass_fds`. It may have begun `early`.
    """
    signals: list[int] = []
    child: subprocess.Popen[bytes] | Child | None = None

    def pass_on(number: int, _: FrameType | None) -> None:
        signals.append(number)
        # A closed terminal ends its processes as a service manager does; HUP would just kill them.
        number = signal.SIGTERM if number == signal.SIGHUP else number
        if child is not None:
            # A person who sends a second signal has waited long enough.
            _signal(child, signal.SIGKILL if len(signals) > 2 else number, whole=len(signals) > 1)

    # A shell that starts us in the background makes us ignore SIGINT, so it is set anyway.
    for number in ending_signals():
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending_signals())
    lives: list[float] = []
    while True:
        began = time.monotonic()
        with _temporary_folder() as (environment, locks):
            # Its own process group, in our session: Ctrl-C reaches only us, and is passed on once.
            files = (*locks, *pass_fds)
            try:
                if early is None:
                    child = subprocess.Popen(command, process_group=0, env=environment, pass_fds=files)
                else:
                    child = early
                    early.send(command, environment=environment or os.environ, files=files)
                    early = None
            except OSError as error:
                say(f"Dagster's processes could not be started: {not_started(error)}.")
                child, code = None, 1
            else:
                if signals:
                    child.send_signal(signals[-1])
                code = child.wait()
                end_group(child.pid)
            lives.append(time.monotonic() - began)
        if signals:
            return code if code >= 0 else 128 - code
        wait = wait_before_restart(lives, was_killed=code in _KILLED)
        if wait is None:
            return code or 1
        say(f"Dagster's processes ended by themselves (exit code {code}); they are restarted in {wait:g} s.")
        until = time.monotonic() + wait
        while not signals and time.monotonic() < until:
            time.sleep(0.2)
        if signals:
            return 0


@contextmanager
def _temporary_folder() -> Iterator[tuple[Mapping[str, str] | None, Sequence[int]]]:
    """A folder for the temporary files of a command, as its environment, and the locks that it inherits.

    Dagster's processes leave sockets and files behind when they are killed: what no living process holds is
    removed here.
    """
    folder = None
    # Without room for a folder, the command says so.
    with suppress(OSError):
        root = socket_root()
        for prefix in (OF_UP, SOCKETS):
            sweep(root, prefix=prefix)
        folder = HeldFolder(root, prefix=OF_UP)
    if folder is None:
        yield None, ()
        return
    try:
        yield {**os.environ, "TMPDIR": str(folder.path)}, (folder.lock,)
    finally:
        folder.remove()


def become(
    command: Sequence[str], *, early: Early | None, files: Sequence[int], kept: Sequence[int]
) -> NoReturn:
    """Let this module take the place of the program of this process, with the same id, and keep this command
    up: what was imported and made until now would be in memory for as long as `up` runs.

    The command, which may have begun `early`, inherits `files`. `kept` stay open for this process alone.
    """
    of_early = [] if early is None else [early.pid, early.sender.fileno()]
    for each in (*files, *kept, *of_early[1:]):
        os.set_inheritable(each, True)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    module = [sys.executable, "-W", "ignore", "-m", "rss_pipeline.cli.supervisor"]
    # A signal that comes before the new program has set its handlers waits until then.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
    os.execv(sys.executable, [*module, _listed(files), _listed(of_early), *command])


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _main(files: str, of_early: str, *command: str) -> int:
    early = None
    if of_early:
        pid, number = map(int, of_early.split(","))
        early = Early(pid, socket.socket(fileno=number))
    return keep_up(command, say=_say, early=early, pass_fds=[int(each) for each in files.split(",")])


def _say(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def end_group(group: int) -> None:
    """End the processes left of a process group: with SIGTERM first, with SIGKILL after a time."""
    until = time.monotonic() + GRACE_SECONDS
    _send(group, signal.SIGTERM)
    while _is_alive(group):
        if time.monotonic() > until:
            _send(group, signal.SIGKILL)
        time.sleep(0.2)


def _is_alive(group: int) -> bool:
    """True for a group with a process that is no zombie: zombies stay where no process reaps orphans.

    This imports nothing: what this program was installed into may be gone, and the end must not fail.
    """
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        # Gone, or (on macOS) all zombies.
        return False
    if not os.path.exists("/proc/self/stat"):
        return True
    for number in filter(str.isdigit, os.listdir("/proc")):
        # It may have ended since it was listed.
        with suppress(OSError), open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
            # proc(5): the name, in brackets, may have brackets itself.
            state, _, in_group, *_ = file.read().rpartition(")")[2].split()
            if state not in _ENDED and int(in_group) == group:
                return True
    return False


def _signal(child: "subprocess.Popen[bytes] | Child", number: int, *, whole: bool) -> None:
    if whole:
        _send(child.pid, number)
    elif child.poll() is None:
        child.send_signal(number)


def _send(group: int, number: int) -> None:
    # Gone, or (on macOS) all zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
