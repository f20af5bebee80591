"""The simulated fleet keeps the rules that it is to show. A million feeds: benchmarks/fleet/simulation.py."""

import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

from rss_pipeline_tests.simulation.costs import World
from rss_pipeline_tests.simulation.due_feeds import DueFeeds
from rss_pipeline_tests.simulation.figures import Figures
from rss_pipeline_tests.simulation.fleet import Fleet
from rss_pipeline_tests.simulation.hosts import hosts
from rss_pipeline_tests.simulation.plan import HOUR, Plan
from rss_pipeline_tests.simulation.requests import visit

ENOUGH = Plan(feeds=1_500, hosts="lists", workers=2, shards=2, hours=2.0)
WARM = 0.75 * HOUR


class Recorded(Figures):
    """Figures that keep the time of each request by its host."""

    def __init__(self, fleet: Fleet, plan: Plan) -> None:
        super().__init__(plan, fleet.sizes)
        self.requests: dict[int, list[float]] = defaultdict(list)

    def visited(self, host: int, *, due: float, at: float) -> None:
        assert at >= due
        self.requests[host].append(at)
        super().visited(host, due=due, at=at)


def simulated(plan: Plan) -> tuple[Fleet, Recorded]:
    fleet = Fleet(plan)
    fleet.figures = figures = Recorded(fleet, plan)
    fleet.run()
    return fleet, figures


def test_each_feed_is_visited_once_an_interval_and_no_host_faster_than_its_pace() -> None:
    fleet, figures = simulated(ENOUGH)
    assert fleet.feeds_held == ENOUGH.feeds
    assert figures.lag.percentile(0.99, WARM) < 10 * 60
    whole = sorted(fleet.sizes)[-1]
    assert whole > ENOUGH.per_host, "no host here is larger than what a claim takes of it"
    for host, size in enumerate(fleet.sizes):
        at = sorted(figures.requests[host])
        # Each feed comes after 30 minutes, 3 % more or less, and the wait for its run.
        assert 2 * size <= len(at) <= 5 * size, (host, size, len(at))
        assert all(later - earlier >= ENOUGH.host_delay for earlier, later in pairwise(at))


def test_feeds_are_as_late_as_capacity_lacks() -> None:
    scarce = replace(ENOUGH, feeds=2_000, hosts="smallweb", batch_size=40, shards=1, hours=3.0)
    fleet, figures = simulated(scarce)
    assert fleet.feeds_held == scarce.feeds
    # A run of 40 feeds begins with each tick, so that one pass over all takes 50 minutes.
    late = scarce.feeds / scarce.batch_size * scarce.look_every - scarce.interval
    first, last = figures.lag.percentile(0.5, 0, HOUR), figures.lag.percentile(0.5, 2 * HOUR)
    assert 0.95 * late < last < 1.05 * late
    assert first < 0.8 * last
    _, enough = simulated(replace(scarce, shards=2, hours=2.0))
    assert enough.lag.percentile(0.99, HOUR) < late / 3


def test_what_dead_workers_had_claimed_is_visited_by_the_others() -> None:
    dying = replace(
        ENOUGH, workers=3, shards=6, tick=60.0, patience=0.0, dying=2 / 3, dies_at=3_612.0, back_at=5_000.0
    )
    fleet, figures = simulated(dying)
    assert figures.lost_visits > 5, "no run was killed"
    assert fleet.feeds_held == dying.feeds
    assert figures.lag.percentile(0.99, 0, 3_600) < 4 * 60 < figures.lag.percentile(0.999, 3_600)
    assert figures.lag.percentile(0.999, 5_100) < 4 * 60
    assert 2 * dying.feeds < figures.visits < 4.2 * dying.feeds


def test_a_first_poll_ends_when_each_feed_was_visited() -> None:
    plan = Plan(feeds=2_000, hosts="100", workers=2, shards=2, all_due=True, one_machine=True,
                world=World(response=0.01, response_sigma=0.1, no_connection=0.0, no_answer=0.0))  # fmt: skip
    _, figures = simulated(plan)
    assert figures.visits == plan.feeds
    assert 20 < figures.end < 15 * 60


def test_a_run_rests_at_each_host_and_has_so_many_requests_at_once() -> None:
    answers = random.Random(3)
    claimed = [answers.randrange(40) for _ in range(300)]
    lengths: list[float] = []

    def response() -> float:
        lengths.append(answers.random() * 4)
        return lengths[-1]

    ended = [-100.0] * 40
    starts, last = visit(
        claimed,
        began=0.0,
        concurrency=5,
        host_delay=1.0,
        round_seconds=60.0,
        ended=ended,
        response=response,
        cpu=0.0,
    )
    made = sorted((start, number) for number, start in enumerate(starts) if start is not None)
    assert 100 < len(made) == len(lengths) < len(claimed)
    ends: dict[int, float] = {}
    changes: list[tuple[float, int]] = []
    for (start, number), length in zip(made, lengths, strict=True):
        assert start >= ends.get(claimed[number], -100.0) + 1.0
        assert start < 60.0
        ends[claimed[number]] = start + length
        changes += [(start, 1), (start + length, -1)]
    assert last == max(ends.values())
    at_once = most = 0
    for _, change in sorted(changes):
        at_once += change
        most = max(most, at_once)
    assert most == 5


def test_a_claim_takes_the_oldest_and_sixty_of_a_host() -> None:
    dice = random.Random(5)
    sizes = [150, 80, *[1] * 70]
    feeds = [(dice.random() * 100, host) for host, size in enumerate(sizes) for _ in range(size)]
    queue = DueFeeds(sizes, per_host=60)
    for due, host in feeds:
        queue.add(due, host)
    left = sorted(feed for feed in feeds)
    for _ in range(4):
        counts: Counter[int] = Counter()
        expected: list[tuple[float, int]] = []
        for due, host in left:
            if due <= 90 and counts[host] < 60 and len(expected) < 150:
                counts[host] += 1
                expected.append((due, host))
        assert queue.due(90, 1_000) == sum(due <= 90 for due, _ in left)
        assert queue.claim(90, 150) == expected
        # Every tenth is released.
        for due, host in expected[::10]:
            queue.add(due, host)
        left = sorted([*(set(left) - set(expected)), *expected[::10]])
    assert queue.due(1_000) == len(left)


def test_hosts_have_all_feeds() -> None:
    for kind in ("lists", "smallweb", "37"):
        assert sum(hosts(kind, 10_001)) == 10_001
    assert max(hosts("lists", 50_000)) > 4_000
    assert max(hosts("smallweb", 50_000)) < 6
