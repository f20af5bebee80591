"""The interval of a feed for which feeds.yaml names none, from the times of its newest items. Pure functions.

The server's hints, the spread and the sentence are in next_visit.py. The constants were chosen by
`python -m benchmarks.intervals`; benchmarks/intervals.md has the effect of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SHORTEST = timedelta(minutes=15)
LONGEST_ALIVE = timedelta(hours=2)
LONGEST = timedelta(hours=24)
UNKNOWN = timedelta(hours=1)
SILENT_AFTER = timedelta(days=14)

PATIENCE = timedelta(seconds=90)
"""The expected waiting time of all items of a visit together. For items at a steady rate this makes visits in
proportion to the square root of the rate, which is the least waiting time for a number of visits (Sia, Cho
and Cho, "Efficient Monitoring Algorithm for Fast News Alerts")."""

_NEAR = timedelta(minutes=45).total_seconds()
"""Items this near to an hour of the day, before or after it, count as published then."""
_DOUBT = 0.5
"""Items by which each hour is drawn to the feed's mean rate: an hour without items so far may get some."""
_STEP = SHORTEST.total_seconds()
_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoInterval:
    """An interval with its inputs."""

    interval: timedelta
    """15 min to 2 h; up to 24 h for a silent feed."""
    items: int
    """Number of newest items with a known time; fewer than two have no rhythm."""
    span: timedelta
    """From the oldest of them until now."""
    silence: timedelta
    """From the newest of them until now."""
    wait: timedelta
    """Time until the expected items have waited `PATIENCE`: the interval before its bounds."""
    expected: float
    """Items until the end of the interval."""

    @property
    def is_silent(self) -> bool:
        return self.items > 0 and self.silence >= SILENT_AFTER


def auto_interval(updates: Sequence[datetime], *, now: datetime) -> AutoInterval:
    """The interval from `now` on for a feed with newest items that came at `updates`.

    Dates in the future are announcements and prove no rhythm.
    """
    times = sorted(at for at in updates if at <= now)
    none = timedelta(0)
    span, silence = (now - times[0], now - times[-1]) if times else (none, none)
    wait, expected = _wait([at.timestamp() for at in times], now.timestamp()) if len(times) > 1 else (0, 0)
    interval = min(max(timedelta(seconds=wait), SHORTEST), LONGEST_ALIVE) if len(times) > 1 else UNKNOWN
    if times and silence >= SILENT_AFTER:
        interval = min(LONGEST_ALIVE * (silence / SILENT_AFTER), LONGEST)
    return AutoInterval(
        interval=interval,
        items=len(times),
        span=span,
        silence=silence,
        wait=timedelta(seconds=wait),
        expected=expected,
    )


def _wait(times: Sequence[float], now: float) -> tuple[float, float]:
    """Seconds until the items expected have waited `PATIENCE` together, at most 2 h, and their number."""
    patience, longest = PATIENCE.total_seconds(), LONGEST_ALIVE.total_seconds()
    mean = len(times) / max(now - times[0], _STEP)
    hours = [at % _DAY for at in times]
    waited = expected = passed = 0.0
    while passed < longest:
        rate = _rate((now + passed + _STEP / 2) % _DAY, hours, times[0], now, mean)
        after = waited + (expected + rate * _STEP / 2) * _STEP
        if after >= patience:
            # expected * t + rate * t^2 / 2 is what is added in t seconds of this step.
            t = (math.sqrt(expected**2 + 2 * rate * (patience - waited)) - expected) / rate
            return passed + t, expected + rate * t
        waited, expected, passed = after, expected + rate * _STEP, passed + _STEP
    return longest, expected


def _rate(at: float, hours: Sequence[float], oldest: float, now: float, mean: float) -> float:
    """Expected items a second at a time of the day: items near it, divided by the time spent near it."""
    near = 0
    for hour in hours:
        apart = abs(hour - at)
        near += apart < _NEAR or _DAY - apart < _NEAR
    return (near + _DOUBT) / (_seconds_near(at, oldest, now) + _DOUBT / mean)


def _seconds_near(at: float, oldest: float, now: float) -> float:
    """Seconds between `oldest` and `now` that were near that time of the day."""
    whole, rest = divmod(now - oldest, _DAY)
    begin = oldest % _DAY
    end = begin + rest
    part = 0.0
    for middle in (at - _DAY, at, at + _DAY):
        part += max(0.0, min(end, middle + _NEAR) - max(begin, middle - _NEAR))
    return 2 * _NEAR * whole + part
