"""The registry into the feeds table: what is new, changed, gone or back, and what is refused."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import EXAMPLE_URLS, Access, FeedSpec, NextVisit
from rss_pipeline.collector.models.hold import HostHold
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.collector.registry.load import load_registry
from rss_pipeline.errors import RegistryError, StorageRejected
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline.storage.feeds import forget
from rss_pipeline.storage.feeds.registered import RegistryChanges, registry_changes, registry_rows
from rss_pipeline.storage.feeds.stored_holds import keep_holds
from rss_pipeline.storage.reports.overview import feed_health, find_feeds, overview
from rss_pipeline.storage.sql import chunked, compact
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    NOW,
    change,
    claim,
    claim_one,
    failed,
    feed_row,
    ids,
    item,
    later,
    register,
    spec,
    unchanged,
    visit,
)
from rss_pipeline_tests.support.examples import examples

LATER = NOW + HOUR


def test_a_new_feed_is_due_at_once(database: Database) -> None:
    changes = register(
        database,
        spec(
            "a",
            title="Mine",
            interval=timedelta(minutes=30),
            key="link",
            images=False,
            allow_private=True,
            private_hosts=("nas.lan",),
        ),
    )
    assert [one.id for one in changes.added] == ["a"]
    row = feed_row(database)
    assert (row["url"], row["host"], row["title"]) == ("https://a.example/a", "a.example", "Mine")
    assert (row["next_fetch_at"], row["created_at"]) == (instant(NOW), instant(NOW))
    feed = feeds.feeds_by_id(database, ["a"])["a"]
    assert (feed.interval, feed.key, feed.images, feed.allow_private) == (
        timedelta(minutes=30),
        "link",
        False,
        True,
    )
    assert feed.private_hosts == ("nas.lan",)
    assert (feed.needs_access, feed.schedule.last_visited_at, feed.schedule.hints) == (
        False,
        None,
        PublisherHints(),
    )


def test_the_same_registry_again_changes_nothing(database: Database) -> None:
    some = [spec("a", title="1984", interval=HOUR), spec("b", enabled=False), spec("c", key="title+date")]
    register(database, *some)
    before = database.query("SELECT * FROM feeds").rows
    assert register(database, *some, now=LATER).is_empty
    assert database.query("SELECT * FROM feeds").rows == before


def test_headers_and_passwords_leave_a_mark_and_no_trace(database: Database) -> None:
    access = Access(username="ada", password="hunter2", headers={"X-Key": "hunter3"})
    register(database, spec("a", access=access))
    assert feed_row(database)["needs_access"] == 1
    assert "hunter" not in str(feed_row(database))


@pytest.mark.parametrize(
    ("fields", "column", "value"),
    [
        ({"title": "New"}, "title", "New"),
        ({"interval": 2 * HOUR}, "interval", 7200),
        ({"key": "link"}, "item_key", "link"),
        ({"images": False}, "images", 0),
        ({"enabled": False}, "enabled", 0),
        ({"allow_private": True}, "allow_private", 1),
        (
            {"allow_private": True, "private_hosts": ("nas.lan", "10.0.0.0/8")},
            "private_hosts",
            '["nas.lan","10.0.0.0/8"]',
        ),
        ({"access": Access(password="x")}, "needs_access", 1),
    ],
)
def test_what_the_registry_changes_is_updated(
    database: Database, fields: dict[str, Any], column: str, value: object
) -> None:
    register(database, spec("a"), spec("b"))
    changes = register(database, spec("a", **fields), spec("b"))
    assert ([one.id for one in changes.updated], changes.added, changes.unregistered) == (["a"], (), ())
    assert feed_row(database)[column] == value


def test_what_is_gone_keeps_its_history_and_is_not_requested(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    visit(database, [item("1")])
    changes = register(database, spec("b"), now=LATER)
    assert changes.unregistered == ("a",)
    row = feed_row(database)
    assert (row["registered"], row["last_success_at"]) == (0, instant(NOW))
    assert register(database, spec("b")).is_empty
    assert ids(claim(database, now=LATER + DAY)) == ["b"]


@pytest.mark.parametrize("away", ["gone", "disabled"])
def test_what_comes_back_is_due_at_once_with_its_history(database: Database, away: str) -> None:
    register(database, spec("a"))
    visit(database, [item("1")])
    register(database, *([] if away == "gone" else [spec("a", enabled=False)]))
    change(database, "UPDATE feeds SET next_fetch_at = ?", instant(NOW + DAY))
    register(database, spec("a"), now=LATER)
    row = feed_row(database)
    assert (row["registered"], row["enabled"], row["next_fetch_at"]) == (1, 1, instant(LATER))
    assert (row["last_success_at"], row["created_at"], row["content_hash"]) == (
        instant(NOW),
        instant(NOW),
        "hash",
    )


def test_a_shorter_interval_counts_from_now(database: Database) -> None:
    register(database, spec("a", interval=12 * HOUR))
    unchanged(database, *claim_one(database), next=later(NOW + 12 * HOUR))
    register(database, spec("a", interval=2 * HOUR), now=LATER)
    assert feed_row(database)["next_fetch_at"] == instant(LATER + 2 * HOUR)
    register(database, spec("a", interval=24 * HOUR), now=LATER)
    assert feed_row(database)["next_fetch_at"] == instant(LATER + 2 * HOUR)
    register(database, spec("a"), now=LATER)
    assert feed_row(database)["next_fetch_at"] == instant(LATER + 2 * HOUR)


def test_a_shorter_interval_leads_to_no_time_that_the_publisher_does_not_want(database: Database) -> None:
    register(database, spec("a", interval=12 * HOUR))
    planned = NextVisit(at=NOW + 12 * HOUR, reason="every 12 h", not_before=NOW + 6 * HOUR)
    unchanged(database, *claim_one(database), next=planned)

    def plan(*specs: FeedSpec) -> tuple[object, object]:
        register(database, *specs, now=LATER)
        row = feed_row(database)
        return row["next_fetch_at"], row["schedule_reason"]

    assert plan(spec("a", interval=24 * HOUR)) == (instant(NOW + 12 * HOUR), "every 12 h")
    sooner = "sooner than planned: interval set by the operator"
    assert plan(spec("a", interval=8 * HOUR)) == (instant(LATER + 8 * HOUR), sooner)
    assert plan(spec("a", interval=HOUR)) == (instant(NOW + 6 * HOUR), sooner)
    assert plan(spec("a", interval=HOUR / 4)) == (instant(NOW + 6 * HOUR), sooner)
    unchanged(database, *claim_one(database, now=NOW + DAY), next=planned)
    assert plan(spec("a", interval=HOUR, url="https://a.example/other")) == (instant(LATER), "every 12 h")
    assert feed_row(database)["not_before"] is None, "it was another document's"


def test_a_shorter_interval_ends_no_backoff(database: Database) -> None:
    register(database, spec("a", interval=12 * HOUR))
    failed(database, *claim_one(database), next=later(NOW + 20 * HOUR))
    register(database, spec("a", interval=HOUR), now=LATER)
    assert feed_row(database)["next_fetch_at"] == instant(NOW + 20 * HOUR)


def test_a_password_that_was_missing_makes_it_due(database: Database) -> None:
    register(database, spec("a"))
    failed(database, *claim_one(database), next=later(NOW + DAY))
    register(database, spec("a", access=Access(password="x")), now=LATER)
    assert feed_row(database)["next_fetch_at"] == instant(LATER)


def test_a_url_that_changes_under_its_id_is_requested_at_once_and_keeps_the_history(
    database: Database,
) -> None:
    register(database, spec("a"))
    visit(database, [item("1")])
    change(database, "UPDATE feeds SET fetch_url = 'https://moved.example/a'")
    moved = spec("a", host="new.example")
    changes = register(database, moved, now=LATER)
    assert [one.id for one in changes.updated] == ["a"]
    row = feed_row(database)
    assert (row["url"], row["host"], row["fetch_url"]) == (moved.url, "new.example", None)
    assert (row["next_fetch_at"], row["content_hash"]) == (instant(LATER), "hash")


def test_another_change_keeps_where_a_redirect_led(database: Database) -> None:
    register(database, spec("a"))
    change(database, "UPDATE feeds SET fetch_url = 'https://moved.example/a'")
    register(database, spec("a", title="New"))
    assert feed_row(database)["fetch_url"] == "https://moved.example/a"


def test_a_url_stored_under_another_id_is_refused_with_both_ways_out(database: Database) -> None:
    register(database, spec("old"), spec("b"))
    clash = spec("new", url="https://old.example/old")
    with pytest.raises(RegistryError) as caught:
        registry_changes([clash, spec("b")], registry_rows(database), path="feeds.yaml")
    text = str(caught.value)
    assert "feeds.yaml: 1 mistake" in text
    assert "`id: old`" in text
    assert "`rss-pipeline forget old`" in text


def test_two_feeds_that_swap_their_urls_are_refused(database: Database) -> None:
    one, other = spec("a"), spec("b")
    register(database, one, other)
    swapped = [spec("a", url=other.url), spec("b", url=one.url)]
    with pytest.raises(RegistryError, match="2 mistake"):
        registry_changes(swapped, registry_rows(database), path="feeds.yaml")


@pytest.mark.parametrize(
    ("before", "gone", "suspicious"),
    [(2, 2, False), (3, 1, False), (3, 2, True), (10, 5, False), (10, 6, True), (100, 51, True)],
)
def test_to_lose_more_than_half_of_three_feeds_or_more_is_suspicious(
    before: int, gone: int, suspicious: bool
) -> None:
    unregistered = tuple(f"f{n}" for n in range(gone))
    assert RegistryChanges(unregistered=unregistered, registered_before=before).is_suspicious is suspicious


def test_to_replace_the_examples_is_not_suspicious(database: Database) -> None:
    shipped = load_registry(Path(__file__).parents[3] / "feeds.yaml", environ={}).feeds
    assert {feed.url for feed in shipped} == EXAMPLE_URLS
    own = [spec("a"), spec("b"), spec("c")]
    register(database, *shipped, *own)

    def suspicious(*left: FeedSpec) -> bool:
        return registry_changes(left, registry_rows(database), path="").is_suspicious

    assert not suspicious(*own)
    assert not suspicious(spec("new"), *own[:2])
    assert suspicious(spec("new"), own[0])
    assert suspicious(spec("new"))


def test_feeds_that_were_gone_before_are_not_lost_again(database: Database) -> None:
    register(database, *(spec(f"f{n}") for n in range(30)))
    register(database, *(spec(f"f{n}") for n in range(12)))
    changes = registry_changes([spec(f"f{n}") for n in range(6)], registry_rows(database), path="")
    assert (changes.registered_before, len(changes.unregistered), changes.is_suspicious) == (12, 6, False)


@pytest.mark.slow
def test_a_large_registry_goes_in_and_out(database: Database) -> None:
    many = [spec(f"f{n:05}", title="語" * 100) for n in range(3_000)]
    register(database, *many)
    assert overview(database, now=NOW).registered == 3_000
    assert register(database, *many).is_empty
    register(database)
    assert overview(database, now=NOW).unregistered == 3_000


def test_a_value_that_no_store_takes_is_refused(database: Database) -> None:
    for title in ("\ud800", "a\0b"):
        with pytest.raises(StorageRejected):
            register(database, spec("a", title=title))
    assert registry_rows(database) == []


def test_the_first_stored_document_is_known_by_its_time(database: Database) -> None:
    register(database, spec("a"))
    feed, token = claim_one(database)
    failed(database, feed, token)
    assert feed_row(database)["first_stored_at"] is None
    for at in (LATER, LATER + DAY, LATER + 2 * DAY):
        visit(database, [item(instant(at))], at=at)
        assert feed_row(database)["first_stored_at"] == instant(LATER)


names = st.sampled_from("abcd")
registries = st.lists(
    st.builds(
        spec, names, title=st.sampled_from([None, "1", "t"]), enabled=st.booleans(), images=st.booleans()
    ),
    unique_by=lambda one: one.id,
    max_size=4,
)


# D1 has SQLite's engine, and runs the same statements in other tests.
@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=registries, second=registries)
def test_whatever_stood_there_the_table_says_what_the_registry_says(
    database: Database, first: list[FeedSpec], second: list[FeedSpec]
) -> None:
    database.query("DELETE FROM feeds")
    register(database, *first)
    changes = register(database, *second)
    touched = [one.id for one in (*changes.added, *changes.updated)] + list(changes.unregistered)
    assert len(touched) == len(set(touched))
    rows = {row["id"]: row for row in registry_rows(database)}
    assert rows.keys() == {one.id for one in (*first, *second)}
    wanted = {one.id: (1, int(one.enabled), one.title, int(one.images)) for one in second}
    for id, row in rows.items():
        stands = (row["registered"], row["enabled"], row["registered_title"], row["images"])
        assert stands == wanted.get(id, (0, *stands[1:]))
    assert registry_changes(second, registry_rows(database), path="").is_empty


@given(
    elements=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    most=st.integers(1, 200),
)
def test_chunks_hold_everything_in_its_order(elements: list[str], most: int) -> None:
    chunks = list(chunked(map(compact, elements), most=most))
    read = [json.loads(chunk) for chunk in chunks]
    assert [element for chunk in read for element in chunk] == elements
    assert all(len(chunk.encode()) <= most for chunk, held in zip(chunks, read, strict=True) if len(held) > 1)


def test_forgetting_takes_the_feed_its_items_and_their_tasks_and_nothing_else(
    database: Database,
) -> None:
    register(database, spec("a"), spec("b"))
    for id in "ab":
        visit(database, [item("1"), item("2")], id=id)
    database.query(
        "INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position)"
        " SELECT id, id, 'u', '', '', 'h', 0 FROM items"
    )
    database.query("INSERT INTO streams (feed_id, name) SELECT id, 'one' FROM feeds")
    database.query("INSERT INTO item_streams (feed_id, stream, item_id) SELECT feed_id, 'one', id FROM items")
    assert forget.end_forget(database, "a", "b") == 0, "neither is marked"
    assert forget.begin_forget(database, "a") == {"image_tasks": 2, "items": 2}
    assert (forget.end_forget(database, "a", "b"), forget.end_forget(database, "a")) == (1, 0)
    assert overview(database, now=NOW).items == 2
    assert overview(database, now=NOW).image_tasks == {"pending": 2}
    left = "SELECT count(*) AS n, min(feed_id) AS feed FROM "
    assert database.query(f"{left} item_streams").rows == [{"n": 2, "feed": "b"}]
    assert database.query(f"{left} streams").rows == [{"n": 1, "feed": "b"}]


def test_an_overview_counts_each_kind(database: Database) -> None:
    assert overview(database, now=NOW).registered == 0
    register(database, spec("gone"))
    register(database, spec("a"), spec("b"), spec("off", enabled=False))
    visit(database, [item("1"), item("2")])
    for _ in range(10):
        failed(database, *claim_one(database, "b"), next=later(NOW + DAY))
    for status in ("pending", "failed", "failed", "success", "success", "success"):
        database.query(
            "INSERT INTO image_tasks (id, item_id, original_url, status, created_at, updated_at, host,"
            " position) SELECT hex(randomblob(8)), id, 'u', ?, '', '', 'h', 0 FROM items LIMIT 1",
            [status],
        )
    found = overview(database, now=NOW + HOUR)
    assert (found.registered, found.disabled, found.unregistered) == (2, 1, 1)
    assert (found.due, found.failing, found.failing_long, found.items) == (1, 1, 1, 2)
    assert found.next_fetch_at == instant(NOW + HOUR)
    assert found.image_tasks == {"pending": 1, "success": 3, "failed": 2}
    host = feed_row(database, "a")["host"]
    hold = HostHold(host=host, until=NOW + 2 * HOUR, reason="429", times=1)
    keep_holds(database, "hosts", hosts=[hold], now=NOW)
    assert [overview(database, now=NOW + n * HOUR).due for n in (1, 2)] == [0, 1]


def test_the_health_of_feeds_begins_with_failures(database: Database) -> None:
    register(database, spec("gone"))
    register(database, spec("a"), spec("b"), spec("c"))
    visit(database, [item("1"), item("2")], id="c")
    failed(database, *claim_one(database, "b"))
    change(database, "UPDATE feeds SET warning = 'w' WHERE id = 'c'")
    rows = feed_health(database)
    assert [row["id"] for row in rows] == ["b", "c", "a", "gone"]
    assert [row["items"] for row in rows] == [0, 2, 0, 0]
    assert [row["id"] for row in feed_health(database, limit=2)] == ["b", "c"]


def test_a_feed_is_found_by_id_url_or_a_part_of_either_or_its_title(database: Database) -> None:
    register(database, spec("a"), spec("aa"), spec("b", title="The Daily 100%"))
    for text, found in (
        ("a", ["a"]),
        ("https://aa.example/aa", ["aa"]),
        ("AA", ["aa"]),
        ("example", ["a", "aa", "b"]),
        ("daily 100%", ["b"]),
        ("%", ["b"]),
        ("_", []),
    ):
        assert [row["id"] for row in find_feeds(database, text)] == found


def test_chunks_stay_below_their_size_where_their_elements_allow() -> None:
    elements = ['"' + "語" * 100 + '"'] * 10_000
    chunks = list(chunked(elements))
    assert all(len(chunk.encode()) <= MAX_PARAMETER_BYTES for chunk in chunks)
    assert sum(chunk.count("語") for chunk in chunks) == 1_000_000
    assert list(chunked([])) == []
    assert list(chunked(["1", "2"], most=1)) == ["[1]", "[2]"]
