"""The pauses as the database keeps them, on SQLite and D1."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import NextVisit
from rss_pipeline.collector.models.hold import FeedHold, HostGap, HostHold
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import Named, NotVisitedSince
from rss_pipeline.storage.feeds.leases import Release
from rss_pipeline.storage.feeds.stored_holds import Kept, KnownHolds, keep_holds, known_holds, known_statement
from rss_pipeline_tests.storage.values import DAY, HOUR, NOW, claim, feed_row, ids, register, spec

SECOND = timedelta(seconds=1)


def on_host(host: str, until: datetime, *, times: int = 1) -> HostHold:
    return HostHold(host=host, until=until, reason=f"held {times}", times=times)


def on_feed(id: str, until: datetime, *, host: str = "x") -> FeedHold:
    return FeedHold(feed_id=id, host=host, until=until, reason="503")


def known(database: Database, now: datetime = NOW) -> KnownHolds:
    (result,) = database.batch([known_statement(now)])
    return known_holds(result)


@pytest.mark.parametrize("kept", ["hosts", "image_holds"])
def test_a_pause_is_prolonged_and_never_shortened(database: Database, kept: Kept) -> None:
    for hours, times in ((1, 1), (3, 2), (2, 9)):
        keep_holds(database, kept, hosts=[on_host("x", NOW + hours * HOUR, times=times)], now=NOW)
    found = known(database)
    longest = [on_host("x", NOW + 3 * HOUR, times=2)]
    assert (found.hosts, found.images) == ((longest, []) if kept == "hosts" else ([], longest))
    for hours in (3, 1):
        keep_holds(database, kept, feeds=[on_feed("a", NOW + hours * HOUR)], now=NOW)
    told = replace(on_feed("a", NOW + 3 * HOUR), url_hash="0123456789abcdef")
    assert known(database).feeds == [on_feed("a", NOW + 3 * HOUR)]
    keep_holds(database, kept, feeds=[replace(told, until=NOW + 4 * HOUR)], now=NOW)
    assert known(database).feeds == [replace(told, until=NOW + 4 * HOUR)]


def test_a_host_that_has_recovered_has_had_one_hold_unless_it_had_another_meanwhile(
    database: Database,
) -> None:
    asked = [on_host("x", NOW, times=3), on_host("y", NOW + SECOND, times=4)]
    keep_holds(database, "hosts", hosts=asked, now=NOW)
    keep_holds(database, "hosts", recovered=["x", "y", "z"], now=NOW)
    assert {hold.host: hold.times for hold in known(database).hosts} == {"x": 1, "y": 4}
    keep_holds(database, "hosts", hosts=[on_host("z", NOW + 9 * DAY)], now=NOW + 8 * DAY)
    assert [row["host"] for row in database.query("SELECT host FROM hosts").rows] == ["z"]


def test_the_gap_that_worked_at_a_host_is_kept_for_feeds_and_for_images_apart(database: Database) -> None:
    gap = HostGap(host=".a.example", gap=66 * SECOND, since=NOW, asked_at=NOW + HOUR)
    keep_holds(database, "hosts", gaps=[gap], now=NOW)
    keep_holds(database, "image_holds", gaps=[replace(gap, gap=9 * SECOND)], now=NOW)
    assert (known(database).gaps, known(database).image_gaps) == ([gap], [replace(gap, gap=9 * SECOND)])
    later = replace(gap, gap=59.4 * SECOND, since=NOW + DAY, asked_at=NOW + DAY)
    keep_holds(database, "hosts", gaps=[later], now=NOW)
    assert known(database).gaps == [replace(later, gap=60 * SECOND)]
    keep_holds(database, "hosts", gaps=[replace(later, gap=2.9 * SECOND)], now=NOW)
    assert (known(database).gaps, len(known(database).image_gaps)) == ([], 1)


def test_a_pause_that_is_over_is_remembered_for_a_week(database: Database) -> None:
    keep_holds(
        database, "hosts", hosts=[on_host("x", NOW, times=4)], feeds=[on_feed("a", NOW + HOUR)], now=NOW
    )
    assert known(database, NOW + 6 * DAY).hosts == [on_host("x", NOW, times=4)]
    assert known(database, NOW + 6 * DAY).feeds == []
    assert known(database, NOW + 7 * DAY) == KnownHolds(hosts=[], feeds=[], images=[], gaps=[], image_gaps=[])
    keep_holds(database, "hosts", feeds=[on_feed("b", NOW + 9 * HOUR)], now=NOW + 2 * HOUR)
    assert [row["feed_id"] for row in database.query("SELECT * FROM feed_holds").rows] == ["b"]


def test_without_holds_nothing_is_written(database: Database) -> None:
    keep_holds(database, "hosts", now=NOW)
    leases.release(database, [])
    assert known(database) == KnownHolds(hosts=[], feeds=[], images=[], gaps=[], image_gaps=[])


def test_a_feed_that_is_to_be_left_alone_is_claimed_by_no_one_until_then(database: Database) -> None:
    register(database, spec("a", host="x"), spec("b", host="x"))
    keep_holds(database, "hosts", feeds=[on_feed("a", NOW + HOUR)], now=NOW)
    everything = NotVisitedSince(since=NOW, now=NOW)
    assert due.on_hold(database, since=NOW, now=NOW) == ["a"]
    for wanted in (None, Named(ids=["a", "b"], now=NOW), everything):
        found = claim(database, wanted)
        assert ids(found) == ["b"]
        assert found.holds.feeds == [on_feed("a", NOW + HOUR)]
        leases.end(database, found.token, forgive=True)
    assert due.due_summary(database, NOW).due == 1
    assert not due.is_claimable(database, Named(ids=["a"], now=NOW))
    row = due.availability(database, ["a", "b"], now=NOW)["a"]
    assert (row["hold_until"], row["hold_host"], row["hold_reason"]) == (instant(NOW + HOUR), "x", "503")
    keep_holds(database, "hosts", hosts=[on_host("x", NOW + 2 * HOUR)], now=NOW)
    rows = due.availability(database, ["a", "b"], now=NOW)
    assert {row["hold_until"] for row in rows.values()} == {instant(NOW + 2 * HOUR)}, "the longest of them"
    assert ids(claim(database, Named(ids=["a", "b"], now=NOW + 2 * HOUR))) == ["a", "b"]


def test_what_was_not_requested_because_of_a_hold_comes_after_it_and_is_not_blamed(
    database: Database,
) -> None:
    register(database, spec("a"), spec("b"), spec("c"))
    found = claim(database)
    later = NextVisit(at=NOW + HOUR, reason="left alone")
    leases.release(
        database,
        [
            Release(feed_id="a", token=found.token, hold=on_feed("a", NOW + HOUR), next=later),
            Release(feed_id="b", token=found.token, next=later),
            Release(feed_id="c", token="another", next=later),
        ],
    )
    for id in "ab":
        row = feed_row(database, id)
        assert (row["lease_token"], row["unclosed_claims"], row["last_visited_at"]) == (None, 0, None)
        assert (row["next_fetch_at"], row["schedule_reason"]) == (instant(NOW + HOUR), "left alone")
    assert feed_row(database, "c")["lease_token"] == found.token
    assert [hold.feed_id for hold in known(database).feeds] == ["a"]


def test_a_wrong_clock_heals(database: Database) -> None:
    register(database, spec("a", host="x"), spec("b", host="y"))
    wrong = NOW + 1000 * DAY
    keep_holds(
        database, "hosts", hosts=[on_host("x", wrong)], feeds=[on_feed("b", wrong, host="y")], now=wrong
    )
    assert ids(claim(database)) == ["a", "b"]
