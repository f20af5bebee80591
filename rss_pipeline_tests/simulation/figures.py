"""The result of a simulated fleet: lag, load, rows, by time."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rss_pipeline_tests.simulation.plan import Plan

BIN = 5.0
"""Seconds of lag that count as the same."""
SPAN = 300.0
"""Seconds of the time axis that are put together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A moment: runs on workers, runs that wait for one, feeds that are due and not claimed."""

    at: float
    busy: int
    queued: int
    waiting: int


def _bins() -> defaultdict[int, int]:
    return defaultdict(int)


class Lag:
    """Seconds from due to the request, counted by five-minute spans of the request."""

    def __init__(self) -> None:
        self._spans: defaultdict[int, defaultdict[int, int]] = defaultdict(_bins)

    def add(self, at: float, lag: float) -> None:
        self._spans[int(at / SPAN)][int(lag / BIN)] += 1

    def count(self, since: float = 0.0, until: float = math.inf) -> int:
        return sum(sum(bins.values()) for bins in self._within(since, until))

    def percentile(self, share: float, since: float = 0.0, until: float = math.inf) -> float:
        """The upper end of the bin with this share of visits; 0 where there was none."""
        merged: dict[int, int] = {}
        for bins in self._within(since, until):
            for number, count in bins.items():
                merged[number] = merged.get(number, 0) + count
        left = share * sum(merged.values())
        for number in sorted(merged):
            left -= merged[number]
            if left <= 0:
                return (number + 1) * BIN
        return 0.0

    def _within(self, since: float, until: float) -> Iterable[dict[int, int]]:
        return [bins for span, bins in self._spans.items() if since <= span * SPAN < until]


class Figures:
    """Filled by a `Fleet`. Rates are of the time after the warm-up."""

    def __init__(self, plan: Plan, sizes: Sequence[int]) -> None:
        self.plan = plan
        self._is_crowded = bytes(size > plan.crowd for size in sizes)
        self.lag = Lag()
        """The lag of feeds on hosts with a pace that leaves room for all of their feeds."""
        self.crowded = Lag()
        """The lag of feeds on the other hosts."""
        self.crowded_feeds = sum(size for size in sizes if size > plan.crowd)
        self.crowded_hosts = sum(size > plan.crowd for size in sizes)
        self.visits = self.documents = self.writes = self.runs = self.claims = self.claimed_feeds = 0
        self.lost_visits = 0
        self.longest_wait = 0.0
        self.waited = 0.0
        self.place_seconds = 0.0
        self.lock_held = 0.0
        self.end = 0.0
        self.samples: list[Sample] = []

    def visited(self, host: int, *, due: float, at: float) -> None:
        self.visits += 1
        (self.crowded if self._is_crowded[host] else self.lag).add(at, at - due)

    def stored(self) -> None:
        self.documents += 1

    def wrote(self, waited: float) -> None:
        self.writes += 1
        self.waited += waited
        self.longest_wait = max(self.longest_wait, waited)

    def claimed(self, feeds: int, waited: float) -> None:
        self.claims += 1
        self.claimed_feeds += feeds
        self.longest_wait = max(self.longest_wait, waited)

    def ran(self) -> None:
        self.runs += 1

    def busy(self, seconds: float) -> None:
        self.place_seconds += seconds

    def lost(self, feeds: int) -> None:
        self.lost_visits += feeds

    def sampled(self, at: float, *, busy: int, queued: int, waiting: int) -> None:
        self.samples.append(Sample(at=at, busy=busy, queued=queued, waiting=waiting))

    def ended(self, now: float, *, lock_held: float) -> None:
        self.end, self.lock_held = now, lock_held

    @property
    def visits_a_second(self) -> float:
        return self.visits / self.end

    @property
    def lock_share(self) -> float:
        """The share of time in which some batch holds the writers' lock; above 1 it falls behind for ever."""
        return self.lock_held / self.end

    @property
    def transactions_a_second(self) -> float:
        return (self.writes + self.claims) / self.end

    @property
    def rows_a_second(self) -> float:
        """Rows of ours that are written: a claim and a close of each feed, items and images, leases."""
        costs = self.plan.costs
        ours = self.claimed_feeds + self.visits + self.documents * (2 + costs.new_items * 2) + self.claims * 2
        return ours / self.end

    @property
    def dagster_rows_a_second(self) -> float:
        return (self.runs * self.plan.costs.dagster_rows + self.documents) / self.end

    @property
    def wal_a_second(self) -> float:
        """Bytes of the write-ahead log, without Dagster's."""
        costs = self.plan.costs
        bytes_ = (self.visits - self.documents) * costs.unchanged_wal + self.documents * costs.document_wal
        return (bytes_ + self.claimed_feeds * costs.claimed_wal) / self.end

    @property
    def places(self) -> float:
        """Places of workers that were taken, in the mean."""
        return self.place_seconds / self.end

    def times(self) -> Iterator[float]:
        """The beginnings of the spans."""
        return (SPAN * number for number in range(int(self.end // SPAN)))
