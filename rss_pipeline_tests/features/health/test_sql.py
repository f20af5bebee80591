"""Queries of the health checks: every question names exactly the feeds it concerns, on both databases."""

from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.hold import FeedHold, HostHold
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.features.health import sql as health
from rss_pipeline.features.health.sql import Concerned
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.stored_holds import Kept, keep_holds
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    claim_one,
    failed,
    feed_row,
    item,
    register,
    spec,
    visit,
)

MINUTE = timedelta(minutes=1)


@pytest.fixture
def known(database: Database) -> Database:
    """Feeds a to d, visited in the hour from which on the tests look."""
    register(database, *(spec(id) for id in "abcd"))
    database.query("UPDATE feeds SET next_fetch_at = ?", [instant(NOW + HOUR)])
    return database


def set_(database: Database, id: str, **values: str | int | None) -> None:
    columns = ", ".join(f"{name} = ?" for name in values)
    database.query(f"UPDATE feeds SET {columns} WHERE id = ?", [*values.values(), id])


def feeds(found: Concerned) -> list[str]:
    assert found.count == len(found.rows)
    return [row["feed"] for row in found.rows]


def test_overdue_feeds_are_listed_the_longest_due_first(known: Database) -> None:
    set_(known, "b", next_fetch_at=instant(NOW - 40 * MINUTE))
    set_(known, "a", next_fetch_at=instant(NOW - 31 * MINUTE))
    set_(known, "c", next_fetch_at=instant(NOW - 29 * MINUTE))
    set_(known, "d", next_fetch_at=instant(NOW - 90 * MINUTE), enabled=0)
    found = health.overdue(known, since=NOW - 30 * MINUTE)
    assert feeds(found) == ["b", "a"]
    assert found.rows[0]["due_since"] == instant(NOW - 40 * MINUTE)


def test_a_feed_that_is_to_be_left_alone_is_due_from_then_on(known: Database) -> None:
    known.query("UPDATE feeds SET next_fetch_at = ?, host = id", [instant(NOW - 9 * HOUR)])
    on_host = [
        HostHold(host=host, until=NOW + n * MINUTE, reason="429", times=1) for n, host in enumerate("ab")
    ]
    on_feed = FeedHold(feed_id="c", host="x", until=NOW + MINUTE, reason="503")
    keep_holds(known, "hosts", hosts=on_host, feeds=[on_feed], now=NOW)
    found = health.overdue(known, since=NOW)
    assert [(row["feed"], row["due_since"]) for row in found.rows] == [
        ("d", instant(NOW - 9 * HOUR)),
        ("a", instant(NOW)),
    ]
    assert feeds(health.overdue(known, since=NOW + MINUTE)) == ["d", "a", "b", "c"]


def test_a_feed_does_not_answer_from_its_third_failure_on_or_the_first_if_it_was_never_read(
    known: Database,
) -> None:
    known.query("UPDATE feeds SET last_success_at = ?", [instant(NOW - HOUR)])
    set_(known, "a", consecutive_failures=2, last_error_kind="timeout")
    set_(known, "b", consecutive_failures=3, last_error_kind="timeout", last_error="no answer within 30 s")
    set_(known, "c", consecutive_failures=12, last_error_kind="gone", last_error="410")
    set_(known, "d", consecutive_failures=30, last_error_kind="dns", registered=0)
    assert feeds(health.not_answering(known)) == ["b"]
    set_(known, "a", consecutive_failures=1, last_success_at=None)
    assert feeds(health.not_answering(known)) == ["a", "b"]
    assert feeds(health.gone(known)) == ["c"]


def test_the_table_says_what_happened_since_when_how_often_and_when_it_is_visited_again(
    known: Database,
) -> None:
    for number in range(3):
        feed, token = claim_one(known, now=NOW + number * HOUR)
        assert failed(known, feed, token, now=NOW + number * HOUR, kind="timeout", message="no answer")
    [row] = health.not_answering(known).rows
    assert row == {
        "feed": "a",
        "kind": "timeout",
        "reason": "no answer",
        "failures": 3,
        "since": instant(NOW),
        "next_visit": instant(NOW + 3 * HOUR),
        "last_success": "never",
        "url": feed_row(known)["url"],
        "brought_by": "feeds.yaml",
    }


def test_moved_feeds_and_gaps(known: Database) -> None:
    set_(known, "a", fetch_url="https://new.example/a")
    set_(known, "b", move_url="https://soon.example/b", move_since=instant(NOW))
    set_(known, "c", fetch_url="https://new.example/c", enabled=0)
    assert feeds(health.moved(known)) == ["a"]
    assert feeds(health.redirecting(known)) == ["b"]
    addresses = [
        (row["address"], row["adopted"])
        for row in (*health.moved(known).rows, *health.redirecting(known).rows)
    ]
    assert addresses == [("https://new.example/a", 1), ("https://soon.example/b", 0)]
    set_(known, "c", gaps=2, last_gap_at=instant(NOW), enabled=1)
    set_(known, "d", gaps=9, last_gap_at=instant(NOW - MINUTE))
    assert feeds(health.with_gaps(known, since=NOW)) == ["c"]
    assert feeds(health.with_gaps(known, since=NOW - HOUR)) == ["c", "d"]


def test_guids_and_dates(known: Database) -> None:
    visit(known, [item("1")])
    set_(known, "b", warning="9 of 9", warning_kinds='["unstable_guids"]')
    set_(known, "c", warning="of another kind", warning_kinds='["cut_off"]')
    set_(known, "d", warning="2 of 3", warning_kinds='["cut_off","shared_guids"]')
    set_(known, "c", last_body_at=instant(NOW), rhythm="[]", last_change='{"items_seen": 3}')
    set_(known, "d", last_body_at=instant(NOW), rhythm="[]", last_change='{"items_seen": 0}')
    assert feeds(health.unstable(known)) == ["b", "d"]
    undated = health.undated(known)
    assert [row for row in undated.rows if row["feed"] != "a"] == [
        {"feed": "c", "url": known.query("SELECT url FROM feeds WHERE id = 'c'").rows[0]["url"], "items": 3}
    ]


def test_a_count_goes_on_where_the_rows_end(database: Database) -> None:
    register(database, *(spec(f"f{number}") for number in range(health.NAMED + 5)))
    database.query("UPDATE feeds SET last_error_kind = 'gone'")
    found = health.gone(database)
    assert (found.count, len(found.rows)) == (health.NAMED + 5, health.NAMED)


def test_images_given_up_are_listed_by_feed_and_those_that_wait_by_host(known: Database) -> None:
    visit(known, [item("1")])
    visit(known, [item("1")], id="b")
    for feed, count in (("a", 3), ("b", 2)):
        urls = tuple(f"https://{feed}.example/{number}" for number in range(count))
        wanted = [ItemImages(item_id=item_id(feed, "1"), urls=urls)]
        for batch in tasks.record_statements(wanted, feeds=[], rules="now", now=NOW):
            known.batch(batch)
    waiting = health.waiting_images(known, since=NOW)
    assert [(row["host"], row["images"]) for row in waiting.rows] == [("a.example", 3), ("b.example", 2)]
    assert health.waiting_images(known, since=NOW - MINUTE) == Concerned(0, [])
    assert 1 <= sum(row["images"] for row in health.waiting_images(known, since=NOW, most=1).rows) <= 2

    known.query(
        "UPDATE image_tasks SET status = 'failed', updated_at = ?, last_error = '404'", [instant(NOW)]
    )
    found = health.given_up_images(known, since=NOW, least=3)
    assert (found.count, found.rows) == (
        1,
        [{"feed": "a", "images": 3, "hosts": 1, "host": "a.example", "example": "404"}],
    )
    assert health.given_up_images(known, since=NOW + MINUTE, least=1).count == 0
    assert health.waiting_images(known, since=NOW).count == 0


def test_images_wait_for_us_from_the_end_of_their_hosts_pause_on_and_while_their_feed_wants_any(
    known: Database,
) -> None:
    visit(known, [item("1")])
    hosts = ("paused", "paused-for-feeds", "free")
    urls = tuple(f"https://{host}/1" for host in hosts)
    wanted = [ItemImages(item_id=item_id("a", "1"), urls=urls)]
    for batch in tasks.record_statements(wanted, feeds=[], rules="now", now=NOW - HOUR):
        known.batch(batch)

    def waiting(since: datetime) -> list[tuple[str, str]]:
        return [(row["host"], row["due_since"]) for row in health.waiting_images(known, since=since).rows]

    held: list[tuple[Kept, str]] = [("image_holds", "paused"), ("hosts", "paused-for-feeds")]
    for kept, host in held:
        hold = HostHold(host=host, until=NOW + MINUTE, reason="429", times=1)
        keep_holds(known, kept, hosts=[hold], now=NOW)
    free = ("free", instant(NOW - HOUR))
    assert waiting(NOW) == [free]
    end = instant(NOW + MINUTE)
    assert waiting(NOW + MINUTE) == [free, ("paused", end), ("paused-for-feeds", end)]
    set_(known, "a", images=0)
    assert waiting(NOW + MINUTE) == []


def test_the_tenth_failure_is_reported_until_a_success_however_often_it_failed_since(known: Database) -> None:
    for id, count in (("a", 9), ("b", 10), ("c", 11)):
        set_(known, id, consecutive_failures=count, last_visited_at=instant(NOW))
    for id, at in (("a", NOW), ("b", NOW), ("c", NOW - HOUR)):
        set_(known, id, prominent_at=instant(at))
    set_(known, "d", consecutive_failures=30, last_visited_at=instant(NOW))
    assert [row["id"] for row in health.just_prominent(known, since=NOW)] == ["b"]
    assert [row["id"] for row in health.just_prominent(known, since=NOW - HOUR)] == ["c", "b"]


def test_when_failures_become_prominent_is_written_once_in_a_row(known: Database) -> None:
    def fail(count: int, *, hours: int) -> str | None:
        for n in range(count):
            at = NOW + (hours + n) * HOUR
            failed(known, *claim_one(known, now=at), now=at)
        prominent_at: str | None = feed_row(known)["prominent_at"]
        return prominent_at

    assert fail(9, hours=0) is None
    assert fail(3, hours=9) == instant(NOW + 9 * HOUR)
    set_(known, "a", consecutive_failures=0)
    assert fail(9, hours=20) == instant(NOW + 9 * HOUR)
    assert fail(1, hours=29) == instant(NOW + 29 * HOUR)


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("SELECT id FROM feeds WHERE consecutive_failures >= 10 AND last_visited_at >= '2'", "feeds_failing"),
        ("SELECT 1 FROM image_tasks WHERE status = 'failed' AND updated_at >= '2'", "image_tasks_failed"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite", "d1"], indirect=True)
def test_what_grows_is_read_by_an_index(database: Database, question: str, index: str) -> None:
    plan = database.query(f"EXPLAIN QUERY PLAN {question}").rows
    assert any(index in row["detail"] for row in plan)
