"""Waiting for what another thread or process does: for a state, with one generous limit for all tests.

A limit here only ends a test that would wait for ever. None measures speed, so it is far above what a quiet
machine takes, and it is longer where others use the processors, too: the suite has to hold with two busy
loops beside it.
"""

import os
import resource
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds that a state may take to come."""
PROMPT = 20.0
"""Seconds that something may take which would take a minute or more if it waited for what it must not."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
"""Seconds between two looks, which may cost what is waited for: some are requests to Dagster's webserver."""


def soon(ask: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
    """Return the result of the function once it is true.

    Raises:
        AssertionError: it was not within these seconds of a quiet machine.
    """
    began = time.monotonic()
    while not (found := ask()):
        waited = time.monotonic() - began
        assert waited < seconds * times_as_long(), f"not within {seconds:g} s: {ask.__qualname__}"
        # A twentieth later at most than with a look at every moment.
        time.sleep(min(max(_FIRST_PAUSE, waited / 20), _LONGEST_PAUSE))
    return found


def times_as_long() -> float:
    """The factor by which something takes longer now than on a quiet machine."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def cpu_seconds_of_children() -> float:
    """CPU seconds of the processes that this one has started and waited for; the same on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
