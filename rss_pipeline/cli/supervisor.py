"""A supervisor of Dagster's processes: `rss-pipeline up` restarts them when they end without a signal to us.

They run below one process, orchestration/serving/services.py. It restarts a code server that was killed. It
does not notice when a code server has lost the child process that does its work: from then on every tick and
every start of a run fails. The supervisor kills such a code server, and the services restart it; if they gave
up on that, the supervisor restarts all of them. When webserver or daemon is killed, the services end
themselves and all the rest, and are restarted here, too. No Dagster is imported.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

import psutil

from rss_pipeline.held_folders import OF_UP, SOCKETS, HeldFolder, socket_root, sweep

STARTED_SECONDS = 10.0
"""A process that ends sooner at the first start has a configuration error; a restart would not help."""
STEADY_SECONDS = 60.0
"""A process that ran this long is restarted without delay."""
LONGEST_WAIT = 60.0
GRACE_SECONDS = 20.0
"""Time for the rest of a process group to end by itself: runs release their claims."""

LOOK_SECONDS = 5.0
MISSED_LOOKS = 3
STARTING_SECONDS = 90.0
"""A code server without a child after this time lost it before it was seen with one."""
PUT_BACK_SECONDS = 60.0
CODE_SERVER = "code-server start"
"""In the command line of a process that has a child for its work."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """The signals that end this process politely, SIGHUP not where `nohup` has set it to be ignored."""
    is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if is_ignored else (signal.SIGHUP,)))


def wait_before_restart(lives: Sequence[float]) -> float | None:
    """Seconds to wait before the next start, by the seconds that each start lasted, the last one last.

    1, 2, 4 ... 60 s while the processes end soon; None for no next start.
    """
    if len(lives) == 1 and lives[0] < STARTED_SECONDS:
        return None
    short = 0
    for life in reversed(lives):
        if life >= STEADY_SECONDS:
            break
        short += 1
    return min(2.0 ** max(short - 1, 0), LONGEST_WAIT)


class WallClock:
    """The machine's clock beside one that cannot be set: shows when it was put back."""

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead = wall() - steady()

    def was_put_back(self) -> bool:
        """True if it was put back by more than `PUT_BACK_SECONDS` since the last call."""
        ahead = self._wall() - self._steady()
        before, self._ahead = self._ahead, ahead
        return ahead < before - PUT_BACK_SECONDS


def keep_up(
    command: Sequence[str], *, say: Callable[[str], None], on_put_back: Callable[[], object] = lambda: None
) -> int:
    """Run a command until this process gets a signal, which is passed on to it; return its exit code.

    A command that ends for any other reason is restarted, after the rest of its process group has ended.
    `on_put_back` is called in a thread when the clock was put back.
    """
    signals: list[int] = []
    child: subprocess.Popen[bytes] | None = None

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
    lives: list[float] = []
    while True:
        began = time.monotonic()
        with _temporary_folder() as (environment, locks):
            # Its own process group, in our session: Ctrl-C reaches only us, and is passed on once.
            child = subprocess.Popen(command, process_group=0, env=environment, pass_fds=locks)
            if signals:
                child.send_signal(signals[-1])
            over = threading.Event()
            threading.Thread(target=_watch, args=(child.pid, over, on_put_back), daemon=True).start()
            code = child.wait()
            over.set()
            lives.append(time.monotonic() - began)
            end_group(child.pid)
        if signals:
            return code if code >= 0 else 128 - code
        wait = wait_before_restart(lives)
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


def _watch(root: int, over: threading.Event, on_put_back: Callable[[], object]) -> None:
    looks: dict[int, int] = {}
    most = missed = 0
    clock = WallClock()
    while not over.wait(LOOK_SECONDS):
        if clock.was_put_back():
            on_put_back()
        here = kill_childless(root, looks)
        most = max(most, here)
        missed = missed + 1 if here < most else 0
        if missed > MISSED_LOOKS:
            # Dagster's manager gave up on restarts: so it does if a server is killed while it starts.
            with suppress(ProcessLookupError):
                os.kill(root, signal.SIGTERM)
            return


def kill_childless(root: int, looks: dict[int, int], *, starting: float = STARTING_SECONDS) -> int:
    """Kill each code server below `root` that has no child at two looks in a row; return the number of
    code servers.

    `looks` has, for each code server that was seen with a child, how many looks ago that was. One that never
    was may be starting, for `starting` seconds.
    """
    try:
        processes = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return 0
    servers = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if CODE_SERVER not in " ".join(process.cmdline()):
                continue
            servers += 1
            if any(child.status() != psutil.STATUS_ZOMBIE for child in process.children()):
                looks[process.pid] = 0
            elif process.pid in looks or time.time() - process.create_time() > starting:
                looks[process.pid] = looks.get(process.pid, 0) + 1
                if looks[process.pid] > 1:
                    del looks[process.pid]
                    process.kill()
    return servers


def end_group(group: int) -> None:
    """End the processes left of a process group: with SIGTERM first, with SIGKILL after a time."""
    until = time.monotonic() + GRACE_SECONDS
    _send(group, signal.SIGTERM)
    while _is_alive(group):
        if time.monotonic() > until:
            _send(group, signal.SIGKILL)
        time.sleep(0.2)


def _is_alive(group: int) -> bool:
    """True for a group with a process that is no zombie: zombies stay where no process reaps orphans."""
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if process.info["status"] != psutil.STATUS_ZOMBIE and os.getpgid(process.pid) == group:
                return True
    return False


def _signal(child: "subprocess.Popen[bytes]", number: int, *, whole: bool) -> None:
    if whole:
        _send(child.pid, number)
    elif child.poll() is None:
        child.send_signal(number)


def _send(group: int, number: int) -> None:
    # Gone, or (on macOS) all zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
