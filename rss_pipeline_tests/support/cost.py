"""Limits of processor time that hold on a slower or busier machine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET = 0.02
"""Seconds that `_known_work` takes on a quiet machine."""


@contextmanager
def costs_less_than(seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time, counted in seconds of a quiet machine.

    Where others use the same core, the same work takes several times as long: known work, before and after,
    shows how many.
    """
    before = _known_work()
    started = time.process_time()
    yield
    spent = time.process_time() - started
    slower = max(1, before / _QUIET, _known_work() / _QUIET)
    assert spent < seconds * slower, f"{spent:.2f} s, on a machine that takes {slower:.1f} times as long"


def _known_work() -> float:
    started = time.process_time()
    words: dict[str, int] = {}
    for number in range(36_000):
        word = str(number % 5_000)
        words[word] = words.get(word, 0) + number
    return time.process_time() - started
