"""A year of publishing by feeds that do not exist: what the rules for intervals are compared on.

Not here: who visits them when, which is simulated_year.py's. The same seed gives the same year.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2025, 1, 1, tzinfo=UTC)
END = START + timedelta(days=365)
_HISTORY = timedelta(days=800)
"""Before the year: so that its first document is full, and what is silent can have been so for long."""

SILENT, DAILY, OFTEN, HOURLY = "silent or dead", "about daily", "four times a day", "hourly and more"
CLASSES = (SILENT, DAILY, OFTEN, HOURLY)
_OF_TWENTY = {SILENT: 8, DAILY: 8, OFTEN: 3, HOURLY: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticFeed:
    """The items of one feed, and its limits for clients."""

    id: str
    kind: str
    times: Sequence[float]
    """The instants at which items appear, ascending, in seconds since the epoch; from before the
    year to its end."""
    length: int
    """Items a document lists: the newest."""
    max_age: int | None
    """Seconds, in each answer."""
    ttl: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Habit:
    """Items a day on each weekday, and the hours at which they come: centre, spread and weight of each."""

    per_day: Sequence[float]
    peaks: Sequence[tuple[float, float, float]]
    anywhen: float
    """The share of items that keep to no hours."""
    batch: int = 1
    """Items that come together, some minutes apart."""


def synthetic_feeds(count: int, *, seed: int) -> list[SyntheticFeed]:
    """`count` feeds, 40 % silent or dead, 40 % about daily, 15 % four times a day, 5 % hourly and more.

    `count` is a multiple of 20.
    """
    feeds = []
    for kind in CLASSES:
        for number in range(count * _OF_TWENTY[kind] // 20):
            id = f"{kind.replace(' ', '-')}-{number}"
            feeds.append(_feed(id, kind, random.Random(f"{seed}/{id}")))
    return feeds


def _feed(id: str, kind: str, chance: random.Random) -> SyntheticFeed:
    begin, end = START - _HISTORY, END
    match kind:
        case "silent or dead":
            times = _silent(begin, chance)
        case "about daily":
            times = _times(_daily(chance), begin, end, chance)
        case "four times a day":
            times = _times(_often(chance), begin + _HISTORY / 2, end, chance)
        case _:
            times = _times(_hourly(chance), START - timedelta(days=60), end, chance)
    return SyntheticFeed(
        id=id,
        kind=kind,
        times=times,
        length=chance.choice((10, 10, 15, 20, 20, 25, 30, 50)),
        max_age=chance.choice((None,) * 12 + (0, 60, 300, 300, 600, 600, 900, 1800)),
        ttl=chance.choice((None,) * 12 + (timedelta(minutes=15), timedelta(minutes=60))),
    )


def _silent(begin: datetime, chance: random.Random) -> list[float]:
    """Once about weekly. Half have stopped for good; the others bring an item now and then."""
    fell_silent = START - timedelta(days=chance.uniform(60, 700))
    habit = _Habit(per_day=[chance.uniform(0.1, 0.7)] * 7, peaks=[(chance.uniform(6, 22), 2, 1)], anywhen=0.2)
    times = _times(habit, begin, fell_silent, chance) or [fell_silent.timestamp()]
    if chance.random() < 0.5:
        at = fell_silent.timestamp()
        pause = chance.uniform(60, 200) * 86_400
        while (at := at + 30 * 86_400 + chance.expovariate(1 / pause)) < END.timestamp():
            times.append(at)
    return times


def _daily(chance: random.Random) -> _Habit:
    """An item a day, on all days or some, at one hour of its own or two."""
    shapes = (
        (1,) * 7,
        (1, 1, 1, 1, 1, 0, 0),
        (1, 1, 1, 1, 1, 0.2, 0.2),
        (1, 0, 1, 0, 1, 0, 0),
        (0.3, 0.3, 0.3, 0.3, 0.3, 1, 1),
        (1, 1, 1, 1, 1, 1, 0),
    )
    shape = chance.choice(shapes)
    level = chance.uniform(0.7, 1.5)
    peaks = [
        (chance.uniform(0, 24), chance.choice((0.05, 0.3, 1, 2, 3)), chance.uniform(0.3, 1))
        for _ in range(chance.choice((1, 1, 1, 2)))
    ]
    return _Habit(
        per_day=[level * share for share in shape],
        peaks=peaks,
        anywhen=chance.choice((0, 0.1, 0.2, 0.5)),
        batch=chance.choice((1, 1, 1, 1, 1, 3)),
    )


def _often(chance: random.Random) -> _Habit:
    """Four items a day, in office hours or about some of them."""
    weekend = chance.choice((0.2, 0.5, 1))
    level = chance.uniform(3, 5)
    middle = chance.uniform(0, 24)
    peaks = [
        (middle + chance.uniform(-5, 5), chance.choice((0.2, 1, 2)), chance.uniform(0.3, 1))
        for _ in range(chance.choice((2, 3, 4)))
    ]
    return _Habit(
        per_day=[level] * 5 + [level * weekend] * 2,
        peaks=peaks,
        anywhen=chance.choice((0.1, 0.2, 0.4)),
        batch=chance.choice((1, 1, 1, 2)),
    )


def _hourly(chance: random.Random) -> _Habit:
    """An item an hour round the clock, or several an hour in working hours and few at night."""
    middle = chance.uniform(8, 18)
    level = chance.choice((24, 36, 60, 120))
    weekend = chance.choice((0.3, 0.6, 1))
    return _Habit(
        per_day=[level] * 5 + [level * weekend] * 2,
        peaks=[(middle - 2.5, 2.5, 1), (middle + 2.5, 2.5, 1)],
        anywhen=chance.choice((0.2, 0.3, 0.6)),
    )


def _times(habit: _Habit, begin: datetime, end: datetime, chance: random.Random) -> list[float]:
    times: list[float] = []
    weights = [weight for _, _, weight in habit.peaks]
    day = begin
    while day < end:
        for _ in range(_count(habit.per_day[day.weekday()] / habit.batch, chance)):
            if chance.random() < habit.anywhen:
                hour = chance.uniform(0, 24)
            else:
                centre, spread, _ = chance.choices(habit.peaks, weights)[0]
                hour = chance.gauss(centre, spread) % 24
            first = day.timestamp() + hour * 3600
            times += [first + 180 * number for number in range(habit.batch)]
        day += timedelta(days=1)
    return sorted(at for at in times if at < end.timestamp())


def _count(mean: float, chance: random.Random) -> int:
    """About `mean` items, less scattered than Poisson for a few: who writes daily seldom writes twice."""
    if mean <= 2:
        whole = math.floor(mean)
        return whole + (chance.random() < mean - whole) if chance.random() < 0.9 else chance.choice((0, 2))
    limit, product, count = math.exp(-mean), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count
