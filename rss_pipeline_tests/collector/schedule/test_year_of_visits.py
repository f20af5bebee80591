"""The promises of benchmarks/intervals.md for `auto`, on some of its feeds and a third of its year:
cheaper than its peers, and sooner.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import cache

import pytest

from rss_pipeline_tests.collector.schedule.simulated_year import Auto, Peer, Rule, Score, visit_for_a_year
from rss_pipeline_tests.collector.schedule.synthetic_feeds import (
    SILENT,
    START,
    SyntheticFeed,
    synthetic_feeds,
)

DAYS = 120


@cache
def feeds() -> list[SyntheticFeed]:
    return synthetic_feeds(8, seed=1)


def visited(make: Callable[[SyntheticFeed], Rule], *, alive: bool) -> Score:
    score = Score()
    for feed in feeds():
        if (feed.kind != SILENT) is alive:
            score.add(visit_for_a_year(feed, make(feed), end=START + timedelta(days=DAYS)))
    return score


@pytest.mark.slow
def test_auto_takes_fewer_requests_than_its_peers_misses_no_more_and_sees_items_sooner() -> None:
    ours, silent = visited(Auto, alive=True), visited(Auto, alive=False)
    assert silent.requests < 8 * DAYS * 4, "silent feeds get a few requests a day"
    for name in ("fixed 60 min", "commafeed"):
        theirs, idle = visited(Peer(name=name), alive=True), visited(Peer(name=name), alive=False)
        assert ours.requests + silent.requests < theirs.requests + idle.requests
        assert ours.missed <= theirs.missed
        assert ours.mean_minutes < theirs.mean_minutes


def test_the_same_seed_is_the_same_year() -> None:
    assert synthetic_feeds(8, seed=1) == feeds()
    assert synthetic_feeds(8, seed=2) != feeds()


def test_items_that_fell_out_of_the_document_between_two_visits_are_counted_as_missed() -> None:
    feed = max(synthetic_feeds(20, seed=1), key=lambda feed: len(feed.times))
    score = visit_for_a_year(feed, lambda _now, _collected: 86_400.0)
    assert score.requests == 365
    assert score.missed > 0
    assert max(score.waits) <= 86_400
