"""Code servers that have lost the process which does their work.

Dagster's manager starts a code server again that ended. It does not notice when one has lost its child: from
then on every tick and every start of a run of that location fails. Only locations of others have servers, and
our own under a launcher of somebody else.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

LOOK_SECONDS = 5.0
MISSED_LOOKS = 3
STARTING_SECONDS = 90.0
"""A code server without a child after this time lost it before it was seen with one."""
CODE_SERVER = "code-server start"
"""In the command line of a process that has a child for its work."""


def watched(
    root: int, *, every: float = LOOK_SECONDS, clock: Callable[[], float] = time.monotonic
) -> Callable[[], None]:
    """A function that kills the childless code servers below this process, or this process where one stays
    away: Dagster's manager gives up on restarts if a server is killed while it starts."""
    looks: dict[int, int] = {}
    most = missed = 0
    next_look = 0.0

    def look() -> None:
        nonlocal most, missed, next_look
        if clock() < next_look:
            return
        next_look = clock() + every
        here = kill_childless(root, looks)
        most = max(most, here)
        missed = missed + 1 if here < most else 0
        if missed > MISSED_LOOKS:
            os.kill(root, signal.SIGTERM)

    return look


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
