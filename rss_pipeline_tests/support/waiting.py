"""Waiting for what another thread or process does: for a state, with one generous limit for all tests.

A limit here only ends a test that would wait for ever. None measures speed, so it is far above what a quiet
machine takes: the suite has to hold with two busy loops beside it.
"""

import resource
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds that a state may take to come."""
PROMPT = 20.0
"""Seconds that something may take which would take a minute or more if it waited for what it must not."""
_LOOK_EVERY = 0.05


def soon(ask: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
    """Return the result of `ask` once it is true.

    Raises:
        AssertionError: it was not within these seconds.
    """
    until = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < until, f"not within {seconds:g} s: {ask.__qualname__}"
        time.sleep(_LOOK_EVERY)
    return found


def cpu_seconds_of_children() -> float:
    """CPU seconds of the processes that this one has started and waited for; the same on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
