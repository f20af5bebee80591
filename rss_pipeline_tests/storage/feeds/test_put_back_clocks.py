"""A clock that is put back by less than a day: polling goes on, and no feed is visited twice for it."""

from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    change,
    claim,
    claim_one,
    feed_row,
    ids,
    register,
    spec,
    unchanged,
)

MINUTE = timedelta(minutes=1)
AHEAD = NOW + 20 * HOUR


def visited(database: Database, id: str, at: datetime) -> None:
    """A visit that ended then; the next one is an hour later."""
    assert unchanged(database, *claim_one(database, id, now=at), now=at)


def due_at(database: Database, id: str) -> str:
    found: str = feed_row(database, id)["next_fetch_at"]
    return found


def test_feeds_that_a_clock_ahead_visited_are_due_once_it_is_put_back(database: Database) -> None:
    register(database, *(spec(id) for id in ("ahead", "before", "failing")))
    visited(database, "before", NOW - 30 * MINUTE)
    visited(database, "ahead", AHEAD)
    change(database, "UPDATE feeds SET next_fetch_at = ? WHERE id = 'failing'", instant(NOW + 24 * HOUR))
    assert ids(claim(database, now=NOW)) == ["ahead"]
    assert due_at(database, "before") == instant(NOW + 30 * MINUTE)
    assert due_at(database, "failing") == instant(NOW + 24 * HOUR), "a back-off of a right clock stays"


def test_what_was_put_back_is_healed_once(database: Database) -> None:
    register(database, spec("a"))
    visited(database, "a", AHEAD)
    assert due.due_summary(database, NOW).due == 1
    change(database, "UPDATE feeds SET next_fetch_at = ?", instant(NOW + HOUR))
    assert due.due_summary(database, NOW + MINUTE).due == 0


@pytest.mark.parametrize(("minutes", "healed"), [(14, False), (16, True)])
def test_clocks_that_differ_by_minutes_make_nothing_due(
    database: Database, minutes: int, healed: bool
) -> None:
    register(database, spec("a"))
    visited(database, "a", NOW + minutes * MINUTE)
    assert due.is_claimable(database, Due(now=NOW)) == healed


def test_a_poll_of_named_feeds_visits_what_a_clock_ahead_visited(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    visited(database, "a", AHEAD)
    visited(database, "b", NOW)
    wanted = NotVisitedSince(since=NOW, now=NOW, ids=["a", "b"])
    assert ids(claim(database, wanted)) == ["a"]
    everything = NotVisitedSince(since=NOW, now=NOW)
    assert not due.is_claimable(database, everything)


def test_a_claim_that_waited_to_write_leaves_what_was_visited_meanwhile(database: Database) -> None:
    register(database, spec("a"))
    visited(database, "a", NOW + timedelta(seconds=30))
    for ids_wanted in (None, ["a"]):
        assert ids(claim(database, NotVisitedSince(since=NOW, now=NOW, ids=ids_wanted))) == []
    assert ids(claim(database, Named(ids=["a"], now=NOW, rested=True))) == []


def test_a_lease_of_a_clock_ahead_is_over_after_its_length(database: Database) -> None:
    register(database, spec("a"))
    dead = claim(database, lease_seconds=180, lease_now=AHEAD)
    assert ids(dead) == ["a"]
    for seconds, found in ((0, []), (179, []), (180, ["a"])):
        at = NOW + timedelta(seconds=seconds)
        assert ids(claim(database, Named(ids=["a"], now=at), suspects=True, lease_now=at)) == found


def test_a_run_that_is_alive_keeps_its_lease_when_the_clock_is_put_back(database: Database) -> None:
    register(database, spec("a"))
    alive = claim(database, lease_seconds=180, lease_now=AHEAD)
    for seconds in range(0, 600, 60):
        at = NOW + timedelta(seconds=seconds)
        assert due.due_summary(database, at, lease_now=at).live_run_ids == ("run",)
        assert leases.renew(database, [alive.token], lease_seconds=180, lease_now=at) == 1
    assert ids(claim(database, suspects=True, lease_now=at)) == []


def test_long_leases_keep_their_own_length(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    claim(database, Named(ids=["a"], now=NOW), lease_seconds=7_200, run_id="long", lease_now=NOW)
    claim(database, Named(ids=["b"], now=NOW), lease_seconds=60, run_id="short", lease_now=NOW)
    at = NOW + HOUR
    assert due.due_summary(database, at, lease_now=at).live_run_ids == ("long",)


def test_looking_for_due_feeds_writes_the_time_four_times_an_hour_at_most(database: Database) -> None:
    register(database, spec("a"))
    times = set()
    for minute in range(60):
        due.due_summary(database, NOW + minute * MINUTE)
        times.add(database.query("SELECT value FROM sequences WHERE name = 'clock'").rows[0]["value"])
    assert len(times) == 4
