"""The address that closing a visit writes, and how it finds that items were probably missed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed, FeedAddress, GapHistory, NextVisit
from rss_pipeline.collector.models.item import Item
from rss_pipeline.collector.models.outcome import IfGap, NotModified
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import closings, feed_changes, leases
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline.storage.feeds.closing_parts import SENTENCE
from rss_pipeline.storage.feeds.closings import add_warning
from rss_pipeline.storage.reports.overview import feed_health, overview
from rss_pipeline_tests.storage.feeds.closed_visits import report
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    change,
    claim_one,
    closing,
    ending,
    feed_row,
    inserts,
    item,
    later,
    register,
    response,
    spec,
    visit,
)

MOVED = FeedAddress(fetch_url="https://new.example/feed", host="new.example")
LEADS = FeedAddress(fetch_url=None, host="a.example", move_url="https://new.example/feed", move_since=NOW)
SOON = NextVisit(at=NOW + timedelta(minutes=30), reason="halved")


@pytest.fixture
def known(database: Database) -> Database:
    """A feed `a` with a first document, of three items, that was stored and reported an hour ago."""
    register(database, spec("a"))
    visit(database, [item("1"), item("2"), item("3")], at=NOW - HOUR)
    report(database, now=NOW - HOUR)
    return database


def end_unchanged(database: Database, feed: Feed, token: str, found: FeedAddress) -> bool:
    outcome = NotModified(response=response(status=304))
    visit = closings.UnchangedVisit(
        feed=feed, token=token, outcome=outcome, ending=ending(feed, address=found)
    )
    return bool(closings.close_unchanged(database, [visit], now=NOW))


def end_failed(database: Database, feed: Feed, token: str, found: FeedAddress) -> bool:
    outcome = Failure(kind="dns", message="x")
    visit = closings.FailedVisit(feed=feed, token=token, outcome=outcome, ending=ending(feed, address=found))
    return bool(closings.close_failed(database, [visit], now=NOW))


def end_stored(database: Database, feed: Feed, token: str, found: FeedAddress) -> bool:
    some = [item("1")]
    *_, closed = database.batch([*inserts(feed, token, some), closing(feed, token, some, address=found)])
    return bool(closed.rows)


End = Callable[[Database, Feed, str, FeedAddress], bool]
ENDINGS: dict[str, End] = {"not modified": end_unchanged, "failed": end_failed, "stored": end_stored}


def where(database: Database) -> FeedAddress:
    return feeds.feeds_by_id(database, ["a"])["a"].address


@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("found", [MOVED, LEADS])
def test_each_ending_writes_where_the_feed_is_from_then_on(
    known: Database, end: str, found: FeedAddress
) -> None:
    assert ENDINGS[end](known, *claim_one(known), found)
    assert where(known) == found
    assert feed_row(known)["url"] == "https://a.example/a"


@pytest.mark.parametrize("end", ENDINGS)
def test_what_a_visit_found_at_a_url_that_was_changed_meanwhile_is_void(known: Database, end: str) -> None:
    feed, token = claim_one(known)
    register(known, replace(spec("a"), url="https://b.example/", host="b.example"))
    assert not ENDINGS[end](known, feed, token, MOVED)
    assert where(known) == FeedAddress(fetch_url=None, host="b.example")
    again, _ = claim_one(known)
    assert (again.schedule.next_fetch_at, again.failures.in_a_row) == (NOW, 0), "the new one is due at once"


def test_an_address_adopted_is_news_once(known: Database) -> None:
    for expected in (2, 2):
        feed, token = claim_one(known)
        assert end_unchanged(known, feed, token, MOVED)
        assert feed_row(known)["change_count"] == expected
    [news] = feed_changes.unreported(known)
    assert (news.fetch_url, news.move_url) == (MOVED.fetch_url, None)


@pytest.fixture
def moved(known: Database) -> Database:
    assert end_unchanged(
        known, *claim_one(known), replace(MOVED, move_url="https://x.example/", move_since=NOW)
    )
    return known


def test_the_registry_s_own_url_holds_again_once_it_is_changed(moved: Database) -> None:
    assert register(moved, spec("a")).is_empty, "an adopted address is nothing that the file should undo"
    assert where(moved).fetch_url == MOVED.fetch_url
    register(moved, spec("a", interval=HOUR))
    assert where(moved).host == "new.example", "nor is another key"
    register(moved, replace(spec("a"), url="https://b.example/", host="b.example"))
    assert where(moved) == FeedAddress(fetch_url=None, host="b.example")


def test_a_feed_that_gets_a_password_is_requested_at_its_own_server_again(moved: Database) -> None:
    register(moved, spec("a", access=Access(headers={"X-Key": "x"})))
    assert where(moved) == FeedAddress(fetch_url=None, host="a.example")


def test_feeds_that_lead_to_one_address_are_shown_as_the_same(moved: Database) -> None:
    change(moved, "UPDATE feeds SET move_url = NULL")
    new = spec("new", host="new.example")
    twin = replace(new, url="https://new.example/feed")
    register(moved, spec("a"), twin, spec("other"))
    assert {row["id"]: row["same_as"] for row in feed_health(moved)} == {
        "a": "new",
        "new": "a",
        "other": None,
    }
    register(moved, spec("a"), spec("other"))
    assert {row["same_as"] for row in feed_health(moved)} == {None}, "an unregistered one is nobody's twin"
    whole = overview(moved, now=NOW)
    assert (whole.moved, whole.gone, whole.gaps) == (1, 0, 0)


def store(
    database: Database,
    some: Sequence[Item],
    *,
    at: datetime = NOW,
    may_be_gap: bool = True,
    kept: Sequence[Item] | None = None,
) -> bool:
    """Store a document that may show a gap; whether it did. `kept` are the items that were inserted now."""
    feed, token = claim_one(database, now=at)
    if_gap = IfGap(next=SOON, gaps=GapHistory(halvings=feed.schedule.gaps.halvings + 1, halved_at=at))
    closed_by = closing(feed, token, some, at=at, if_gap=if_gap if may_be_gap else None)
    *_, closed = database.batch([*inserts(feed, token, some if kept is None else kept, at=at), closed_by])
    return bool(closed.rows[0]["gap"])


def gaps(database: Database) -> tuple[int, str | None, int, str | None]:
    row = feed_row(database)
    return int(row["gaps"]), row["last_gap_at"], int(row["gap_halvings"]), row["halved_at"]


NONE = (0, None, 0, None)


def test_a_document_without_any_item_of_before_is_a_gap(known: Database) -> None:
    assert store(known, [item("4"), item("5")])
    assert gaps(known) == (1, instant(NOW), 1, instant(NOW))
    row = feed_row(known)
    assert (row["next_fetch_at"], row["schedule_reason"]) == (instant(SOON.at), "halved")
    assert (row["planned_at"], row["items_listed"]) == (instant(SOON.at), 2)
    [news] = feed_changes.unreported(known)
    assert (news.gaps, news.facts.gap, news.facts.items_new) == (1, SENTENCE, 2)


def test_a_304_after_it_reports_it_no_more(known: Database) -> None:
    store(known, [item("4"), item("5")])
    report(known)
    assert end_unchanged(known, *claim_one(known), MOVED)
    [news] = feed_changes.unreported(known)
    assert (news.facts.gap, news.facts.items_new, news.gaps) == (None, 0, 1)


def test_nor_does_the_next_document(known: Database) -> None:
    store(known, [item("4"), item("5")])
    report(known)
    assert not store(known, [item("5"), item("6")], at=NOW + HOUR)
    [news] = feed_changes.unreported(known)
    assert news.facts.gap is None
    assert gaps(known) == (1, instant(NOW), 1, instant(NOW))
    row = feed_row(known)
    assert (row["schedule_reason"], row["planned_at"]) == ("in an hour", instant(NOW + 2 * HOUR))


@pytest.mark.parametrize(
    "document",
    [
        [item("3"), item("4"), item("5")],
        [item("3")],
        [item("x1", title="Title 1"), item("x2", title="Title 2"), item("x3", title="Title 3")],
        [item("x1", title="Title 1"), item("4")],
        [
            item("x1", title="new", link="https://a.example/1"),
            item("x2", title="new", link="https://a.example/2"),
        ],
    ],
    ids=[
        "one is shared",
        "only old ones",
        "other guids, same titles",
        "half of them",
        "other guids, same links",
    ],
)
def test_a_document_that_shares_an_item_by_guid_or_half_by_title_or_link_is_none(
    known: Database, document: list[Item]
) -> None:
    change(known, "UPDATE items SET link = 'https://a.example/' || guid")
    assert not store(known, document)
    assert gaps(known) == NONE
    assert feed_row(known)["schedule_reason"] == "in an hour"


def test_titles_and_links_that_are_missing_are_not_all_the_same(known: Database) -> None:
    change(known, "UPDATE items SET title = NULL, link = NULL")
    assert store(known, [item("4", title=None, link=None), item("5", title=None, link=None)])


def test_none_is_counted_where_it_would_show_nothing(known: Database) -> None:
    assert not store(known, [item("4"), item("5")], may_be_gap=False)
    assert gaps(known) == NONE


def test_none_is_counted_while_the_guids_are_known_to_be_unstable(known: Database) -> None:
    add_warning(known, "a", FeedWarning(kind="unstable_guids", sentence="9 of 9 new items are known"))
    assert not store(known, [item("4"), item("5")])
    assert gaps(known) == NONE


def test_items_that_were_retired_are_not_new(known: Database) -> None:
    known.query(
        "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('a', '4', '2026-01-01T00:00:00Z')"
    )
    assert not store(known, [item("4"), item("5")])


def test_a_gap_is_found_although_a_crashed_run_has_stored_its_items(known: Database) -> None:
    feed, token = claim_one(known)
    some = [item("4"), item("5")]
    known.batch(inserts(feed, token, some))
    leases.end(known, token, forgive=False)
    assert store(known, some, kept=[])
    assert gaps(known)[0] == 1


def test_what_the_registry_makes_other_items_of_is_compared_with_nothing(known: Database) -> None:
    assert feeds.feeds_by_id(known, ["a"])["a"].schedule.items_listed == 3
    register(known, spec("a", key="link"))
    assert feeds.feeds_by_id(known, ["a"])["a"].schedule.items_listed is None


def test_every_visit_that_goes_well_says_when_the_next_one_is_meant_to_be(known: Database) -> None:
    assert end_unchanged(known, *claim_one(known), MOVED)
    assert feed_row(known)["planned_at"] == instant(later().at)
    feed, token = claim_one(known)
    assert end_failed(known, feed, token, MOVED)
    assert feed_row(known)["planned_at"] == instant(later().at)
    assert feeds.feeds_by_id(known, ["a"])["a"].schedule.planned_at == from_instant(instant(later().at))
