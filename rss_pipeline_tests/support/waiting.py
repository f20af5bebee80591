"""Waiting for what another thread or process does: for a state, with one generous limit for all tests.

A limit here only ends a test that would wait for ever. None measures speed, so it is far above what a quiet
machine takes: the suite has to hold with two busy loops beside it.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds that a state may take to come."""
_LOOK_EVERY = 0.05


def soon(ask: Callable[[], T], *, seconds: float = PATIENCE) -> T:
    """Return the result of `ask` once it is true.

    Raises:
        AssertionError: it was not within these seconds.
    """
    until = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < until, f"not within {seconds:g} s: {ask.__qualname__}"
        time.sleep(_LOOK_EVERY)
    return found
