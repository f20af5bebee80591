"""The changes that visits leave for the next report: which visit is one, its new items, and their images."""

import json
from datetime import timedelta
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_changes, leases
from rss_pipeline.storage.feeds.visit_facts import VisitFacts
from rss_pipeline_tests.storage.feeds.closed_visits import ASKED, ENDINGS, report
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    NOW,
    change,
    claim_one,
    failed,
    feed_row,
    inserts,
    item,
    register,
    spec,
    store,
    unchanged,
    visit,
)


def test_the_first_success_is_a_change_although_no_item_is_new(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    assert feed_changes.unreported(database) == []
    assert visit(database, []) == 0
    unchanged(database, *claim_one(database, "b"))
    assert [change.feed_id for change in report(database)] == ["a", "b"]
    unchanged(database, *claim_one(database, "b"))
    assert report(database) == []


def test_a_visit_that_brings_nothing_new_is_no_change(known: Database) -> None:
    assert visit(known, [item("1")], at=NOW) == 0
    unchanged(known, *claim_one(known))
    failed(known, *claim_one(known))
    assert feed_changes.unreported(known) == []


@pytest.mark.parametrize("end", ["not modified", "same bytes", "stored"])
def test_the_first_success_after_a_failure_is_a_change(known: Database, end: str) -> None:
    failed(known, *claim_one(known))
    assert report(known) == []
    ENDINGS[end](known, *claim_one(known))
    [found] = report(known)
    assert (found.feed_id, found.is_reported) == ("a", False)
    assert found.facts.items_new == (1 if end == "stored" else 0)


@pytest.mark.parametrize("documents", [False, True])
def test_every_seven_days_a_living_feed_is_a_change(known: Database, documents: bool) -> None:
    def again(at: Any) -> None:
        if documents:
            visit(known, [item("1")], at=at)
        else:
            unchanged(known, *claim_one(known, now=at), now=at)

    reported = NOW - HOUR
    again(reported + 7 * DAY - timedelta(seconds=1))
    assert report(known) == []
    again(reported + 7 * DAY)
    [heartbeat] = report(known, now=reported + 7 * DAY)
    assert heartbeat.facts.items_new == 0
    again(reported + 8 * DAY)
    assert report(known) == []


def test_new_items_are_a_change_with_its_facts(known: Database) -> None:
    assert visit(known, [item("1"), item("2"), item("3")], at=NOW, charset_rule="bom") == 2
    [found] = feed_changes.unreported(known)
    assert found.facts == VisitFacts(
        items_seen=3,
        duplicate_guids=0,
        body_bytes=9,
        fetch_ms=12,
        http_status=200,
        charset="utf-8 (bom)",
        format="rss20",
        backup_key=f"backups/a/{instant(NOW)}.xml",
        items_new=2,
    )
    assert list(json.loads(feed_row(known)["last_change"])) == [
        "items_seen",
        "duplicate_guids",
        "body_bytes",
        "fetch_ms",
        "http_status",
        "charset",
        "format",
        "backup_key",
        "items_new",
    ]
    assert (found.count, found.feed_id, found.url) == (2, "a", ASKED)
    assert feed_row(known)["changed_at"] == instant(NOW)


def test_two_changes_not_reported_yet_are_one_with_the_items_of_both(known: Database) -> None:
    visit(known, [item("1"), item("2"), item("3")], at=NOW)
    visit(known, [item("4")], at=NOW + HOUR)
    visit(known, [item("4")], at=NOW + 2 * HOUR)
    unchanged(known, *claim_one(known), now=NOW + 3 * HOUR)
    [found] = feed_changes.unreported(known)
    assert found.facts.items_new == 3
    assert found.count == 3
    report(known, now=NOW + 3 * HOUR)
    assert visit(known, [item("5")], at=NOW + 4 * HOUR) == 1
    assert report(known)[0].facts.items_new == 1


def test_a_change_after_the_one_that_is_being_reported_stays_unreported_with_its_own_items(
    known: Database,
) -> None:
    visit(known, [item("2"), item("3")], at=NOW)
    [first] = feed_changes.unreported(known)
    visit(known, [item("4")], at=NOW)
    for _ in range(2):
        feed_changes.mark_reported(known, [first], now=NOW)
    [second] = report(known)
    assert second.count == first.count + 1
    assert (first.facts.items_new, second.facts.items_new) == (2, 1)
    feed_changes.mark_reported(known, [first], now=NOW)
    assert feed_changes.unreported(known) == []


def test_the_last_change_can_be_read_reported_or_not(known: Database) -> None:
    found = feed_changes.last_changes(known, ["a", "unknown"])
    assert list(found) == ["a"]
    assert (found["a"].is_reported, found["a"].facts.items_new) == (True, 1)
    visit(known, [item("2")])
    assert not feed_changes.last_changes(known, ["a"])["a"].is_reported


def test_the_version_of_the_items_changes_with_new_items_only(known: Database) -> None:
    version = feed_row(known)["items_version"]
    assert version is not None
    failed(known, *claim_one(known))
    visit(known, [item("1")], at=NOW)
    unchanged(known, *claim_one(known), now=NOW + 8 * DAY)
    assert feed_row(known)["change_count"] > 1
    assert feed_row(known)["items_version"] == version
    visit(known, [item("2")], at=NOW + 9 * DAY)
    second = feed_row(known)["items_version"]
    visit(known, [item("3")], at=NOW + 9 * DAY)
    assert len({version, second, feed_row(known)["items_version"]}) == 3


def test_a_visit_without_new_items_says_none_were_new_whatever_the_last_change_was(
    known: Database,
) -> None:
    assert visit(known, [item("2"), item("3")], at=NOW) == 2
    report(known)
    assert visit(known, [item("3")], at=NOW + HOUR) == 0
    assert feed_changes.last_changes(known, ["a"])["a"].facts.items_new == 2


def test_items_that_a_crashed_run_stored_are_new_to_the_run_that_closes(known: Database) -> None:
    feed, token = claim_one(known)
    known.batch(inserts(feed, token, [item("2"), item("3")], at=NOW))
    leases.end(known, token, forgive=True)
    feed, token = claim_one(known)
    some = [item("2"), item("3"), item("4")]
    assert store(known, feed, token, some, at=NOW, now=NOW + HOUR) == 3
    assert report(known)[0].facts.items_new == 3


def test_they_are_new_also_where_the_document_has_changed_meanwhile(known: Database) -> None:
    feed, token = claim_one(known)
    known.batch(inserts(feed, token, [item("1"), item("2"), item("3")], at=NOW))
    leases.end(known, token, forgive=True)
    assert visit(known, [item("1"), item("2"), item("3")], at=NOW + HOUR, content_hash="changed") == 2
    [found] = report(known)
    assert found.facts.items_new == 2
    assert visit(known, [item("1"), item("2"), item("3")], at=NOW + 2 * HOUR) == 0


def test_items_left_by_a_document_that_was_refused_half_way_are_not_forgotten(known: Database) -> None:
    change(known, "UPDATE feeds SET images_pending = 0")
    feed, token = claim_one(known)
    known.batch(inserts(feed, token, [item("2")], at=NOW))
    failed(known, feed, token, kind="storage_rejected", answered=True, document_hash="x")
    assert feed_row(known)["images_pending"] == 1
    assert visit(known, [item("1"), item("2")], at=NOW + HOUR) == 1


def test_new_items_have_their_images_pending(known: Database) -> None:
    change(known, "UPDATE feeds SET images_pending = 0")
    visit(known, [item("1")])
    assert feed_row(known)["images_pending"] == 0
    visit(known, [item("2")])
    assert feed_row(known)["images_pending"] == 1
    visit(known, [item("2")])
    assert feed_row(known)["images_pending"] == 1


def test_a_feed_without_images_has_none_pending_until_it_wants_them(database: Database) -> None:
    register(database, spec("a", images=False))
    visit(database, [item("1")])
    assert feed_row(database)["images_pending"] == 0
    register(database, spec("a"))
    assert feed_row(database)["images_pending"] == 1


@pytest.mark.parametrize("end", ["not modified", "same bytes", "failed"])
@pytest.mark.parametrize("forgive", [True, False])
def test_an_interrupted_visit_leaves_images_pending_whatever_the_next_one_ends_with(
    known: Database, end: str, forgive: bool
) -> None:
    change(known, "UPDATE feeds SET images_pending = 0")
    ENDINGS[end](known, *claim_one(known))
    assert feed_row(known)["images_pending"] == 0
    feed, token = claim_one(known)
    known.batch(inserts(feed, token, [item("2")], at=NOW))
    leases.end(known, token, forgive=forgive)
    ENDINGS[end](known, *claim_one(known))
    assert feed_row(known)["images_pending"] == 1
