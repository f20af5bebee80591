"""The row of a feed when its visit has ended: validators, counts, schedule and failures, if still ours."""

import json
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.collector.models.outcome import NotModified
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import closings
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline_tests.storage.feeds.closed_visits import ASKED, ENDINGS
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    NOW,
    change,
    claim,
    claim_one,
    closing,
    ending,
    failed,
    feed_row,
    item,
    later,
    register,
    response,
    spec,
    unchanged,
    visit,
)


def validators(database: Database) -> tuple[str | None, str | None, str | None]:
    row = feed_row(database)
    return row["last_etag"], row["last_modified"], row["validators_url"]


@pytest.mark.parametrize("end", ENDINGS)
def test_a_visit_with_a_lease_that_was_taken_over_changes_nothing(known: Database, end: str) -> None:
    change(known, "UPDATE feeds SET next_fetch_at = ?", instant(NOW))
    [feed], token = (found := claim(known, lease_now=NOW)).feeds, found.token
    [_], other = (found := claim(known, suspects=True, lease_now=NOW + HOUR)).feeds, found.token
    tables = [f"SELECT * FROM {table}" for table in ("feeds", "items", "hosts")]
    before = [known.query(sql).rows for sql in tables]
    assert not ENDINGS[end](known, feed, token)
    assert [known.query(sql).rows for sql in tables] == before
    assert ENDINGS[end](known, feed, other)


@pytest.mark.parametrize("end", ENDINGS)
def test_to_close_twice_is_to_close_once(known: Database, end: str) -> None:
    feed, token = claim_one(known)
    assert ENDINGS[end](known, feed, token)
    before = feed_row(known)
    assert not ENDINGS[end](known, feed, token)
    assert feed_row(known) == before


@pytest.mark.parametrize("end", ENDINGS)
def test_every_ending_releases_the_claim_and_says_when_next_and_why(known: Database, end: str) -> None:
    feed, token = claim_one(known)
    assert ENDINGS[end](known, feed, token)
    row = feed_row(known)
    assert (row["lease_token"], row["unclosed_claims"], row["backup_unsure"]) == (None, 0, 0)
    assert (row["next_fetch_at"], row["schedule_reason"]) == (instant(NOW + HOUR), "in an hour")
    assert row["last_visited_at"] == instant(NOW)


@pytest.mark.slow
def test_many_visits_close_at_once_each_with_its_own_values(database: Database) -> None:
    register(database, *(spec(f"f{n:03}") for n in range(400)))
    found = claim(database)
    visits = [
        closings.UnchangedVisit(
            feed=feed,
            token=found.token if n % 2 else "lost",
            outcome=NotModified(response=response(etag=f'"{feed.id}"')),
            ending=ending(feed, later(NOW + n * HOUR)),
        )
        for n, feed in enumerate(found.feeds)
    ]
    ours = closings.close_unchanged(database, visits, now=NOW)
    assert ours == {feed.id for n, feed in enumerate(found.feeds) if n % 2}
    rows = database.query("SELECT id, last_etag, lease_token FROM feeds").rows
    assert all((row["last_etag"] == f'"{row["id"]}"') == (row["id"] in ours) for row in rows)
    assert all((row["lease_token"] is None) == (row["id"] in ours) for row in rows)


def test_nothing_to_close_is_no_batch(database: Database) -> None:
    assert closings.close_unchanged(database, [], now=NOW) == set()
    assert closings.close_failed(database, [], now=NOW) == set()


@pytest.mark.parametrize(
    "etag", ['"a"', 'W/"a-gzip"', "unquoted", "1", "true", "null", "0x10", '"\\u0041"', "1e5"]
)
def test_an_etag_is_kept_byte_for_byte(known: Database, etag: str) -> None:
    visit(known, [item("2")], answer=response(etag=etag))
    assert validators(known) == (etag, None, ASKED)
    feed, token = claim_one(known)
    assert feed.http.etag == etag
    unchanged(known, feed, token, etag=etag + "x", last_modified="007")
    assert validators(known) == (etag + "x", "007", ASKED)


def test_a_document_overwrites_both_validators_also_with_nothing(known: Database) -> None:
    visit(known, [item("2")], answer=response(etag='"2"', url="https://cdn.example/a"))
    assert validators(known) == ('"2"', None, "https://cdn.example/a")
    visit(known, [item("3")], answer=response())
    assert validators(known) == (None, None, None)


def test_a_304_updates_the_validators_it_carries_and_keeps_the_others(known: Database) -> None:
    unchanged(known, *claim_one(known), etag='"2"')
    assert validators(known) == ('"2"', "Tue, 17 Feb 2026 10:00:00 GMT", ASKED)
    unchanged(known, *claim_one(known), last_modified="Wed, 18 Feb 2026 10:00:00 GMT")
    assert validators(known) == ('"2"', "Wed, 18 Feb 2026 10:00:00 GMT", ASKED)
    unchanged(known, *claim_one(known))
    assert validators(known) == ('"2"', "Wed, 18 Feb 2026 10:00:00 GMT", ASKED)


def test_same_bytes_overwrite_both_validators_also_with_nothing(known: Database) -> None:
    unchanged(known, *claim_one(known), body_bytes=9, etag='"2"')
    assert validators(known) == ('"2"', None, ASKED)
    unchanged(known, *claim_one(known), body_bytes=9)
    assert validators(known) == (None, None, None)
    assert feed_row(known)["content_hash"] == "first"


def test_a_failure_never_touches_validators_nor_the_hash_of_what_is_stored(known: Database) -> None:
    before = validators(known)
    for n in range(3):
        failed(
            known, *claim_one(known), now=NOW + n * HOUR, kind="not_a_feed", answered=True, document_hash="x"
        )
    row = feed_row(known)
    assert validators(known) == before
    assert (row["content_hash"], row["last_success_at"]) == ("first", instant(NOW - HOUR))


def test_a_stored_document_leaves_what_it_said_of_the_feed(known: Database) -> None:
    hints = PublisherHints(
        max_age=600,
        ttl=timedelta(minutes=90),
        updates=(NOW, NOW - DAY),
        skip_hours=frozenset({0, 23}),
        skip_days=frozenset({6}),
    )
    visit(
        known,
        [item("2")],
        at=NOW,
        content_hash="second",
        title="Title",
        link="https://a.example/home",
        description="Notes",
        language="ja",
        charset="cp932",
        hints=hints,
    )
    feed = feeds.feeds_by_id(known, ["a", "unknown"])["a"]
    assert (feed.title, feed.link, feed.language) == ("Title", "https://a.example/home", "ja")
    assert feed_row(known)["description"] == "Notes"
    assert (feed.http.content_hash, feed.http.charset, feed.schedule.hints) == ("second", "cp932", hints)
    assert feed.http.last_body_at == feed.schedule.last_fetched_at == feed.schedule.last_success_at == NOW
    visit(known, [item("3")], title=None, link=None, language=None)
    feed = feeds.feeds_by_id(known, ["a"])["a"]
    assert (feed.title, feed.link, feed.language) == ("Title", None, None)
    assert feed_row(known)["description"] is None


def test_a_title_that_looks_like_a_number_stays_text(known: Database) -> None:
    visit(known, [item("2")], title="1984", link="007", charset="1e3")
    row = feed_row(known)
    assert (row["title"], row["link"], row["charset"]) == ("1984", "007", "1e3")


def test_the_registry_s_title_wins_over_the_document_s(database: Database) -> None:
    register(database, spec("a", title="Mine"))
    visit(database, title="Theirs")
    assert feed_row(database)["title"] == "Mine"
    register(database, spec("a"))
    visit(database, title="Theirs")
    assert feed_row(database)["title"] == "Theirs"


def test_only_an_answer_counts_as_fetched(known: Database) -> None:
    failed(known, *claim_one(known), now=NOW, answered=False)
    row = feed_row(known)
    assert (row["last_fetched_at"], row["last_visited_at"]) == (instant(NOW - HOUR), instant(NOW))
    assert row["host_answered"] == 0
    failed(known, *claim_one(known), now=NOW, kind="http_status", status=500, answered=True)
    assert (feed_row(known)["last_fetched_at"], feed_row(known)["host_answered"]) == (instant(NOW), 1)


@pytest.mark.parametrize("end", ["not modified", "same bytes", "stored"])
def test_failures_are_counted_and_a_success_forgives_them(known: Database, end: str) -> None:
    for n in range(1, 4):
        failed(known, *claim_one(known), message=f"failure {n}", document_hash="x")
        assert feed_row(known)["consecutive_failures"] == n
    row = feed_row(known)
    assert (row["last_error_kind"], row["last_error"]) == ("timeout", "failure 3")
    ENDINGS[end](known, *claim_one(known))
    row = feed_row(known)
    assert (row["consecutive_failures"], row["last_error_kind"], row["last_error"]) == (0, None, None)
    assert (row["host_answered"], row["last_success_at"]) == (1, instant(NOW))
    # The unreadable document may come again after a 304, and is known then.
    assert row["failed_hash"] == ("x" if end == "not modified" else None)


def test_the_hash_of_a_failed_document_stays_through_other_failures(known: Database) -> None:
    failed(known, *claim_one(known), kind="not_a_feed", document_hash="broken", answered=True)
    failed(known, *claim_one(known))
    assert feed_row(known)["failed_hash"] == "broken"
    failed(known, *claim_one(known), kind="not_a_feed", document_hash="broken too", answered=True)
    assert feed_row(known)["failed_hash"] == "broken too"


@pytest.mark.parametrize("message", ["a\0b", "x\ud83dy", "語" * 5000, '{"json": "\\u0000"}', ""])
def test_whatever_a_failure_quotes_it_can_be_recorded(known: Database, message: str) -> None:
    feed, token = claim_one(known)
    outcome = Failure(kind="http_status", message=message)
    visited = closings.FailedVisit(feed=feed, token=token, outcome=outcome, ending=ending(feed))
    assert closings.close_failed(known, [visited], now=NOW) == {"a"}
    assert len(feed_row(known)["last_error"]) <= 2000


def test_visits_are_counted_by_day_and_outcome(known: Database) -> None:
    evening = NOW.replace(hour=23)
    for at, body in [(NOW, "second"), (evening, "second"), (evening + 2 * HOUR, "third")]:
        visit(known, [item("1"), item(body)], at=at, content_hash=body)
    unchanged(known, *claim_one(known, now=evening), now=evening)
    failed(known, *claim_one(known, now=evening + 3 * HOUR), now=evening + 3 * HOUR)
    failed(known, *claim_one(known, now=evening + 4 * HOUR), now=evening + 4 * HOUR)
    # Of this day: the fixture's visit and `second` with news, the same items again, and a 304.
    assert json.loads(feed_row(known)["visit_days"]) == {
        "18": ["2026-02-18", 2, 2, 0],
        "19": ["2026-02-19", 1, 0, 2],
    }


def test_a_day_of_visits_takes_the_place_of_that_of_the_month_before(known: Database) -> None:
    for day in range(1, 60):
        unchanged(known, *claim_one(known, now=NOW + day * DAY), now=NOW + day * DAY)
    days = json.loads(feed_row(known)["visit_days"])
    last = NOW + 59 * DAY
    assert len(days) == 31
    kept = {date for date, *_ in days.values()}
    assert {(last - back * DAY).date().isoformat() for back in range(28)} <= kept
    assert all(count == [0, 1, 0] for _, *count in days.values())


def test_a_value_no_store_takes_is_refused_and_closes_nothing(known: Database) -> None:
    feed, token = claim_one(known)
    for etag in ("\ud800", "a\0b", "x" * 2_000_001):
        with pytest.raises(StorageRejected):
            unchanged(known, feed, token, etag=etag)
    assert feed_row(known)["lease_token"] == token


def test_a_warning_goes_with_the_next_stored_document(known: Database) -> None:
    closings.add_warning(known, "a", FeedWarning(kind="unstable_guids", sentence="9 of 9 are known"))
    unchanged(known, *claim_one(known))
    failed(known, *claim_one(known))
    warned = feed_row(known)
    assert (warned["warning"], warned["warning_kinds"]) == ("9 of 9 are known", '["unstable_guids"]')
    visit(known, [item("1")])
    stored = feed_row(known)
    assert (stored["warning"], stored["warning_kinds"]) == (None, None)


def test_the_close_is_one_statement_below_a_megabyte_for_five_thousand_items(known: Database) -> None:
    feed, token = claim_one(known)
    statement = closing(feed, token, [item(f"{n}") for n in range(5_000)])
    assert sum(len(str(value).encode()) for value in statement.params) < 500_000
    assert len(json.loads(str(statement.params[0]))) == 5_000
