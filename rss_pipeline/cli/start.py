"""The start of the `rss-pipeline` command, and nothing else.

Each parser process imports the module that started the program once more, so this one imports nothing heavy.
"""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_ARENA_MAX = -8
"""mallopt(3)"""


def main() -> None:
    """Run the command of `sys.argv`."""
    # The objects that Dagster's import makes stay; at Python's threshold of 700 the collector walks them
    # again and again, for a sixth of the import's time.
    gc.set_threshold(50_000, 20, 20)
    open_closed_streams()
    share_heaps()
    # The program that starts this one may ignore SIGCHLD: then no end of a child could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_the_terminal()
    from rss_pipeline.cli.early import begun_at_start

    with begun_at_start(sys.argv[1:]):
        from rss_pipeline.cli.main import main as command

        command()


@contextmanager
def imports_that_stay() -> Iterator[None]:
    """Within, import what stays until the process ends. The garbage collector leaves all of it alone: to walk
    Dagster's modules, as Python does at its end, takes longer than 500 requests. Once a process."""
    if gc.get_freeze_count():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def open_closed_streams() -> None:
    """Let what is written to a closed stream (`>&-`) go nowhere: a database would be opened under its number,
    and `up` passes on all three."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def end_with_the_terminal() -> None:
    """Let a terminal that closes end a command as SIGTERM does: a poll releases its feeds. SIGHUP would just
    kill it. Where `nohup` has set that to be ignored, it stays so."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def share_heaps() -> None:
    """Let all threads share two heaps.

    glibc gives each thread its own, and each keeps what was freed: 16 MB at the end of a first poll.
    MALLOC_ARENA_MAX does the same, but only for processes that are started with it. Nothing happens where the
    C library is another one.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 2)
