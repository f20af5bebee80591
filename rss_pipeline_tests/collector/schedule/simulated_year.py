"""A year of visits to synthetic feeds by a rule for intervals: `auto`, or a rule of its peers.

`auto` is driven through collector.schedule's own functions, with a Feed that changes as a poll's closing
statements would change it. No network; the same every time. The comparison is benchmarks/intervals.py.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rss_pipeline.collector.models.feed import Feed, FeedAddress, ScheduleState
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.collector.schedule import auto_interval
from rss_pipeline.collector.schedule.next_visit import next_after_success
from rss_pipeline_tests.collector.schedule.synthetic_feeds import (
    END,
    START,
    SyntheticFeed,
)

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
SHORTEST, LONGEST = auto_interval.SHORTEST.total_seconds(), auto_interval.LONGEST.total_seconds()
_NEWEST = 20
"""Publication times that a poll keeps of a document."""

Rule = Callable[[float, Sequence[float]], float]
"""From now and the times of the items collected, ascending, of which the document lists the last: seconds."""


@dataclass(slots=True, kw_only=True)
class Score:
    """The result of a rule. `waits` are seconds from an item's publication to the visit that found it."""

    requests: int = 0
    missed: int = 0
    waits: list[float] = field(default_factory=list)

    def add(self, other: "Score") -> None:
        self.requests += other.requests
        self.missed += other.missed
        self.waits += other.waits

    @property
    def mean_minutes(self) -> float:
        return sum(self.waits) / len(self.waits) / MINUTE if self.waits else 0

    @property
    def ninetieth_minutes(self) -> float:
        return sorted(self.waits)[len(self.waits) * 9 // 10] / MINUTE if self.waits else 0


class Auto:
    """Our own rule, for one feed."""

    def __init__(self, feed: SyntheticFeed) -> None:
        self._length = feed.length
        self._collected = -1
        self._feed = Feed(
            id=feed.id,
            url="http://a.example/feed",
            address=FeedAddress(host="a.example"),
            schedule=ScheduleState(hints=PublisherHints(ttl=feed.ttl, max_age=feed.max_age)),
        )

    def __call__(self, now: float, collected: Sequence[float]) -> float:
        at = datetime.fromtimestamp(now, UTC)
        if len(collected) == self._collected:
            later = next_after_success(self._feed, self._feed.schedule.hints, now=at)
            return (later.at - at).total_seconds()
        self._collected = len(collected)
        listed = {datetime.fromtimestamp(int(time), UTC) for time in collected[-self._length :]}
        hints = replace(self._feed.schedule.hints, updates=tuple(sorted(listed, reverse=True)[:_NEWEST]))
        later = next_after_success(self._feed, hints, now=at)
        schedule = replace(self._feed.schedule, hints=hints, last_success_at=at)
        self._feed = replace(self._feed, schedule=schedule)
        return (later.at - at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another's rule as it is, or times `factor`, then within our own floor and ceiling."""

    name: str
    factor: float | None = None

    def __call__(self, feed: SyntheticFeed) -> Rule:
        rule = PEERS[self.name](feed)
        factor = self.factor
        if factor is None:
            return rule
        return lambda now, collected: min(max(factor * rule(now, collected), SHORTEST), LONGEST)


def _fixed(seconds: float) -> Rule:
    return lambda _now, _collected: seconds


def _commafeed(length: int) -> Rule:
    def rule(now: float, collected: Sequence[float]) -> float:
        listed = collected[-length:]
        silence = now - listed[-1] if listed else math.inf
        for days, hours in ((30, 4), (14, 2), (7, 1)):
            if silence >= days * DAY:
                return hours * HOUR
        gap = (listed[-1] - listed[0]) / (len(listed) - 1) if len(listed) > 1 else HOUR
        return min(max(gap / 2, 5 * MINUTE), HOUR)

    return rule


def _miniflux(now: float, collected: Sequence[float]) -> float:
    last_week = len(collected) - bisect_right(collected, now - 7 * DAY)
    return min(max(7 * DAY / last_week, 5 * MINUTE), 24 * HOUR) if last_week else 24 * HOUR


PEERS: Mapping[str, Callable[[SyntheticFeed], Rule]] = {
    "fixed 15 min": lambda _: _fixed(15 * MINUTE),
    "fixed 60 min": lambda _: _fixed(HOUR),
    "commafeed": lambda feed: _commafeed(feed.length),
    "miniflux": lambda _: _miniflux,
}


def visit_for_a_year(feed: SyntheticFeed, rule: Rule, *, end: datetime = END) -> Score:
    """Visit it from the year's first minutes to `end`. What the feed requests is a lower bound for any
    rule."""
    score = Score()
    asked = max(feed.max_age or 0, feed.ttl.total_seconds() if feed.ttl else 0)
    now = START.timestamp()
    known = bisect_right(feed.times, now)
    collected = list(feed.times[:known])
    while now < end.timestamp():
        score.requests += 1
        published = bisect_right(feed.times, now, known)
        if published > known:
            found = max(known, published - feed.length)
            score.missed += found - known
            score.waits += [now - time for time in feed.times[found:published]]
            collected += feed.times[found:published]
            known = published
        now += max(rule(now, collected), asked)
    return score
