"""Patterns against their shapes, in a process of its own: `python -m rss_pipeline_tests.patterns.measure`.

It reads a line of JSON with the patterns, and writes one for each shape that it begins, and one with what it
found of each pattern. A timer of processor time ends the process if a pattern hangs; the last line names it.
"""

import json
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from heapq import nlargest
from itertools import takewhile
from operator import itemgetter
from typing import Any

from rss_pipeline_tests.patterns.adversaries import Shape, shapes
from rss_pipeline_tests.patterns.collected import Collected

MOST_TIMES = 2.5
"""Processor time for twice the text, in times of that for the text, the least of five measurements each."""
_LIMIT_SECONDS = 0.4
_LIMIT_SECONDS_OF_A_MILLION = 3.0
_TIMES = 5
_TRIES = 6
"""A pattern with time that grows by the square takes four times as long in all of them, whoever else uses the
machine; a linear one was seen with 2.6 times in three of three."""
_SHORT = 4_000
_NOISE_SECONDS = 0.002
_SLOW_SECONDS = 0.02
"""Far more than linear patterns take for a short text. Where time grows by the square, the shapes that show
it are the worst in any case."""

_RunAndLength = tuple[Callable[[], object], int]


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    for values in asked["patterns"]:
        each = Collected(*values)
        _say(each.name, *_judged(each, **asked["limits"]))


def _judged(each: Collected, *, most_shapes: int, worst: int) -> Sequence[object]:
    """The result for a pattern with some of its shapes; the worst of them are grown to the end."""
    length = min(_SHORT, each.longest)
    tried: list[tuple[float, str, Shape]] = []
    for shape in shapes(each.pattern, each.flags)[:most_shapes]:
        for way in each.ways:
            _say(each.name, "hangs", way, *shape)
            took = _seconds(_run(each, way, shape, length), length)
            if took > _SLOW_SECONDS and (grown := _grows_too_fast(each, way, shape)):
                return "too fast", way, *shape, *grown
            tried.append((took, way, shape))
    for _, way, shape in nlargest(worst, tried, key=itemgetter(0)):
        _say(each.name, "hangs", way, *shape)
        if grown := _grows_too_fast(each, way, shape):
            return "too fast", way, *shape, *grown
    return ("linear",)


def _run(each: Collected, way: str, shape: Shape, length: int) -> Callable[[], object]:
    encoded = (lambda text: text.encode("latin-1", "replace")) if each.is_bytes else str
    pattern: re.Pattern[Any] = re.compile(encoded(each.pattern), each.flags)
    text: Any = encoded(shape.text(length))
    if way == "tokens":
        return lambda: _tokens(pattern, text)
    if way == "finditer":
        return lambda: deque(pattern.finditer(text), maxlen=0)
    return lambda: getattr(pattern, way)(text)


def _tokens(pattern: re.Pattern[Any], text: Any) -> None:
    place = 0
    while (found := pattern.match(text, place)) and found.end() > place:
        place = found.end()


def _seconds(run: Callable[[], object], length: int) -> float:
    """The processor time of a run; the process ends if it takes longer than the limit for such a text."""
    limit = _LIMIT_SECONDS + _LIMIT_SECONDS_OF_A_MILLION * length / 1_000_000
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    # Not that of the process: with a timer, Linux counts it in ticks.
    started = time.thread_time()
    run()
    took = time.thread_time() - started
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return took


def _grows_too_fast(each: Collected, way: str, shape: Shape) -> tuple[int, float] | None:
    """The length for which the time is too long, and in how many times of that for half of it."""
    for length in (each.longest // 512, each.longest // 64, each.longest // 8, each.longest):
        runs = [(_run(each, way, shape, some), some) for some in (length // 2, length)]
        ratios = list(takewhile(lambda ratio: ratio > MOST_TIMES, (_ratio(*runs) for _ in range(_TRIES))))
        if len(ratios) == _TRIES:
            return length, round(min(ratios), 1)
    return None


def _ratio(half: _RunAndLength, whole: _RunAndLength) -> float:
    """The least time of the whole in times of the least of its half, 1 if it is too short to be judged; in
    turn, for the same work takes longer while others use the same core."""
    before = took = float("inf")
    for _ in range(_TIMES):
        before, took = min(before, _seconds(*half)), min(took, _seconds(*whole))
        if took < max(_NOISE_SECONDS, MOST_TIMES * before):
            return 1
    return took / before


def _say(*values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
