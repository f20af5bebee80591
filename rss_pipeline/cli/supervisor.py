"""Keeping Dagster's processes up: `rss-pipeline up` starts them again where they end without being told to.

`dagster dev` restarts a code server that was killed. It does not notice where the code server lost the
process that does its work: every tick and every start of a run fails from then on. So here such a server is
killed, and restarted by it; and where it gave up restarting one, all is started again. Where its webserver or
daemon is killed, `dagster dev` ends itself with all the rest, and is likewise started again here.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

import psutil

STARTED_SECONDS = 10.0
"""Who ends sooner at the first start has a mistake to mend, and nothing to be restarted for."""
STEADY_SECONDS = 60.0
"""Who lived this long is started again at once."""
LONGEST_PAUSE = 60.0
GRACE_SECONDS = 20.0
"""For the rest of a group to end by itself: runs give their claims back."""

LOOK_SECONDS = 5.0
MISSED_LOOKS = 3
STARTING_SECONDS = 90.0
"""A code server that has no child by then lost it before it was seen with one."""
CODE_SERVER = "code-server start"
"""In the command line of a process that has a child to do its work."""

_TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def pause_before(lives: Sequence[float]) -> float | None:
    """Seconds to wait before the next start, by how long each life lasted up to now, the last one last.

    1, 2, 4 ... 60 s while the lives are short; None where there is to be no next start.
    """
    if len(lives) == 1 and lives[0] < STARTED_SECONDS:
        return None
    short = 0
    for life in reversed(lives):
        if life >= STEADY_SECONDS:
            break
        short += 1
    return min(2.0 ** max(short - 1, 0), LONGEST_PAUSE)


def keep_up(command: Sequence[str], *, say: Callable[[str], None]) -> int:
    """Run a command until it is told to end, by a signal to this process that is handed on; its exit code.

    Ended by anything else, it is started again, after the rest of its process group has ended.
    """
    told: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def hand_on(number: int, _: FrameType | None) -> None:
        told.append(number)
        # A closed terminal ends what it started as a service manager does; HUP would just kill it.
        number = signal.SIGTERM if number == signal.SIGHUP else number
        if child is not None:
            # A person who asks a second time has waited long enough.
            _signal(child, signal.SIGKILL if len(told) > 2 else number, whole=len(told) > 1)

    # A shell that starts us in the background lets us ignore these: they are set, whatever they were.
    for number in _TOLD:
        signal.signal(number, hand_on)
    lives: list[float] = []
    while True:
        began = time.monotonic()
        # A group of its own, in our session: Ctrl-C comes to us alone, and is handed on once.
        child = subprocess.Popen(command, process_group=0)
        if told:
            child.send_signal(told[-1])
        over = threading.Event()
        threading.Thread(target=_look_after, args=(child.pid, over), daemon=True).start()
        code = child.wait()
        over.set()
        lives.append(time.monotonic() - began)
        end_group(child.pid)
        if told:
            return code if code >= 0 else 128 - code
        pause = pause_before(lives)
        if pause is None:
            return code or 1
        say(f"Dagster's processes ended by themselves (exit code {code}): started again in {pause:g} s.")
        until = time.monotonic() + pause
        while not told and time.monotonic() < until:
            time.sleep(0.2)
        if told:
            return 0


def _look_after(root: int, over: threading.Event) -> None:
    looks: dict[int, int] = {}
    most = missed = 0
    while not over.wait(LOOK_SECONDS):
        here = end_childless(root, looks)
        most = max(most, here)
        missed = missed + 1 if here < most else 0
        if missed > MISSED_LOOKS:
            # Who restarts them gave up: it does so for ever where a server is killed while it starts.
            with suppress(ProcessLookupError):
                os.kill(root, signal.SIGTERM)
            return


def end_childless(root: int, looks: dict[int, int], *, starting: float = STARTING_SECONDS) -> int:
    """Kill each code server below `root` that has no child at the second look in a row, too; how many
    code servers there are.

    `looks` are those that were seen with one, and how many looks ago. Who was not may be starting for so
    many seconds.
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
    """End what is left of a process group: politely at first."""
    until = time.monotonic() + GRACE_SECONDS
    _send(group, signal.SIGTERM)
    while _is_alive(group):
        if time.monotonic() > until:
            _send(group, signal.SIGKILL)
        time.sleep(0.2)


def _is_alive(group: int) -> bool:
    """Whether it has a process that is no zombie: these stay where nobody reaps orphans."""
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
