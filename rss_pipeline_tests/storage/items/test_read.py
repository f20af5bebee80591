"""Reading items in the order in which they came in: a reader that remembers a cursor misses nothing.

Whatever clocks, replays, retention, other writers and the size of pages do to the order of everything else.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.item import Enclosure, Item, item_id
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.forget import begin_forget, end_forget
from rss_pipeline.storage.items import cursor as arrivals
from rss_pipeline.storage.items import items
from rss_pipeline.storage.items import stored_items as reading
from rss_pipeline.storage.items.cursor import Position
from rss_pipeline_tests.storage import values
from rss_pipeline_tests.storage.values import HOUR, NOW, change, item, register, spec, visit
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.examples import examples

START = Position()


@pytest.fixture
def known(database: Database) -> Database:
    """Two feeds without items."""
    register(database, spec("a"), spec("b"))
    return database


def read(database: Database, feed: str | None = "a", since: Position = START) -> list[reading.StoredItem]:
    return [reading.stored_item(row) for page in reading.pages(database, feed, since=since) for row in page]


def guids(database: Database, feed: str | None = "a", since: Position = START) -> list[str]:
    return [each.guid for each in read(database, feed, since)]


def last(database: Database, feed: str | None = "a") -> Position:
    return Position.of(read(database, feed)[-1].cursor)


def bring(database: Database, *some: Item, feed: str = "a", at: datetime = NOW) -> None:
    """Items of a document that a run with another clock fetched, or a replay read."""
    database.query("UPDATE feeds SET lease_token = 'other' WHERE id = ?", [feed])
    for chunk in items.item_rows(feed, some, fetched_at=at):
        statements = items.insert_statements(
            chunk, feed_id=feed, token="other", fetched_at=at, backup_key="backups/a/x.xml"
        )
        database.batch(statements)
    database.query("UPDATE feeds SET lease_token = NULL WHERE id = ?", [feed])


def retire(database: Database, *guids_: str, feed: str = "a") -> None:
    ids = [item_id(feed, guid) for guid in guids_]
    values.retire(database, *ids, at=NOW)


def test_items_come_in_the_order_of_their_documents_and_in_these_in_theirs(known: Database) -> None:
    visit(known, [item("2"), item("1")])
    visit(known, [item("4"), item("3"), item("2"), item("1")], now=NOW + HOUR)
    assert guids(known) == ["2", "1", "4", "3"]


def test_a_cursor_is_the_place_behind_its_item(known: Database) -> None:
    visit(known, [item(str(n)) for n in range(5)])
    found = read(known)
    for n, each in enumerate(found):
        assert guids(known, since=Position.of(each.cursor)) == [other.guid for other in found[n + 1 :]]


def test_a_clock_that_ran_backwards_hides_nothing(known: Database) -> None:
    visit(known, [item("1")])
    cursor = last(known)
    bring(known, item("2"), at=NOW - timedelta(days=400))
    assert guids(known, since=cursor) == ["2"]


def test_the_database_s_own_clock_running_backwards_hides_nothing(known: Database) -> None:
    visit(known, [item("1")])
    ahead = 10 * 365 * 86_400 * 1_000_000
    change(known, "UPDATE items SET arrived = arrived + ?", ahead)
    change(known, "UPDATE sequences SET value = value + ?", ahead)
    cursor = last(known)
    visit(known, [item("2")], now=NOW + HOUR)
    assert guids(known, since=cursor) == ["2"]


def test_an_item_that_comes_after_the_newest_was_retired_is_not_taken_for_read(known: Database) -> None:
    visit(known, [item("1"), item("2")])
    cursor = last(known)
    retire(known, "1", "2")
    assert guids(known) == []
    visit(known, [item("3")], now=NOW + HOUR)
    assert guids(known, since=cursor) == ["3"]


def test_a_cursor_of_an_item_that_is_gone_still_names_its_place(known: Database) -> None:
    visit(known, [item("1"), item("2"), item("3")])
    cursor = Position.of(read(known)[1].cursor)
    retire(known, "1", "2")
    assert guids(known, since=cursor) == ["3"]


def test_a_feed_that_was_forgotten_and_came_again_is_read_from_its_start(known: Database) -> None:
    visit(known, [item("1"), item("2")])
    cursor = last(known)
    begin_forget(known, "a")
    end_forget(known, "a")
    register(known, spec("a"))
    visit(known, [item("1")], now=NOW + HOUR)
    assert guids(known, since=cursor) == ["1"]


def test_one_cursor_serves_for_all_feeds_at_once(known: Database) -> None:
    visit(known, [item("1")], id="a")
    visit(known, [item("2")], id="b")
    cursor = last(known, None)
    visit(known, [item("3")], id="b", now=NOW + HOUR)
    bring(known, item("4"), feed="a", at=NOW - HOUR)
    assert guids(known, None) == ["1", "2", "3", "4"]
    assert guids(known, None, since=cursor) == ["3", "4"]
    assert guids(known, "a", since=cursor) == ["4"]


def test_the_end_is_behind_all_that_is_stored_and_before_all_that_comes(known: Database) -> None:
    assert arrivals.end(known).arrival == 0
    visit(known, [item("1")])
    end = arrivals.end(known)
    assert guids(known, since=end) == []
    visit(known, [item("2")], now=NOW + HOUR)
    assert guids(known, since=end) == ["2"]


def test_since_a_moment_is_what_came_in_then_or_later(known: Database) -> None:
    visit(known, [item("1")])
    change(known, "UPDATE items SET arrived = ?", 1_772_452_800_000_007)
    moment = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert guids(known, since=Position.at(moment)) == ["1"]
    assert guids(known, since=Position.at(moment.astimezone(timezone(timedelta(hours=5))))) == ["1"]
    assert guids(known, since=Position.at(moment + timedelta(seconds=1))) == []
    with pytest.raises(ValueError, match="time zone"):
        Position.at(datetime(2026, 3, 2))  # noqa: DTZ001


@pytest.mark.parametrize("text", ["", "x", "12", "-", "1-x y", "1-ab; --", "1 -ab", "12345678901234567-a"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no cursor"):
        Position.of(text)


def test_a_document_that_brings_nothing_writes_no_number(known: Database) -> None:
    visit(known, [item("1")])
    results = known.batch([*_insert_again(known), Statement("SELECT value FROM sequences")])
    assert {result.changes for result in results} == {0}


def _insert_again(database: Database) -> list[Statement]:
    change(database, "UPDATE feeds SET lease_token = 't' WHERE id = 'a'")
    [chunk] = items.item_rows("a", [item("1")], fetched_at=NOW)
    return items.insert_statements(chunk, feed_id="a", token="t", fetched_at=NOW, backup_key="k")


@pytest.mark.slow
def test_large_items_come_one_by_one_and_an_item_too_large_for_json_is_in_its_place(known: Database) -> None:
    big = "世" * 300_000
    bring(known, *(item(str(n), content_html=big) for n in range(4)))
    bring(known, item("alone", content_html="x" * 1_500_000))
    found = list(reading.pages(known, "a", since=START))
    assert [len(page) for page in found] == [1] * 5
    assert guids(known) == ["0", "1", "2", "3", "alone"]


def test_pages_end_and_begin_anywhere(known: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PLACES", 3)
    monkeypatch.setattr(reading, "PAGE_ITEMS", 2)
    visit(known, [item(f"{n:02}") for n in range(10)], id="a")
    visit(known, [item(f"{n:02}") for n in range(10, 13)], id="b")
    assert guids(known) == [f"{n:02}" for n in range(10)]
    assert guids(known, None) == [f"{n:02}" for n in range(13)]


def test_what_comes_and_goes_while_one_reads_disturbs_nothing(
    known: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PAGE_ITEMS", 2)
    monkeypatch.setattr(reading, "PLACES", 6)
    visit(known, [item(str(n)) for n in range(6)])
    found = []
    for page in reading.pages(known, "a", since=START):
        found += [row["guid"] for row in page]
        if found == ["0", "1"]:
            retire(known, "2", "3")
            bring(known, item("late"))
    assert found == ["0", "1", "4", "5", "late"]


def test_a_value_has_what_the_row_has(known: Database) -> None:
    enclosure = Enclosure(url="https://a/1.mp3", type="audio/mpeg", length=7)
    visit(
        known,
        [
            item(
                "1",
                categories=("x", "世"),
                enclosures=(enclosure,),
                author="Zoë",
                authors=("Zoë", "世"),
                pub_date=NOW - HOUR,
            ),
            item("2"),
        ],
    )
    dated, undated = read(known)
    assert (dated.id, dated.feed_id, dated.author) == (item_id("a", "1"), "a", "Zoë")
    assert (dated.authors, undated.authors) == (("Zoë", "世"), ())
    assert (dated.categories, dated.enclosures) == (("x", "世"), (enclosure,))
    assert (dated.published_at, dated.is_dated) == (NOW - HOUR, True)
    assert (undated.published_at, undated.is_dated, undated.collected_at) == (NOW, False, NOW)
    assert dated.published_at.utcoffset() == timedelta(0)
    assert (dated.content_html, dated.html) == ("<p>1</p>", None)


def test_a_row_from_before_there_was_a_list_of_authors_has_its_one_author(known: Database) -> None:
    visit(known, [item("1", author="Zoë"), item("2")])
    change(known, "UPDATE items SET authors = NULL")
    assert [each.authors for each in read(known)] == [("Zoë",), ()]


def test_feeds_are_listed_with_what_their_documents_say(known: Database) -> None:
    visit(known, [item("1")])
    a, b = reading.feeds(known)
    assert (a.id, a.is_registered, a.last_success_at) == ("a", True, NOW)
    assert (b.id, b.last_success_at) == ("b", None)


def _into(target: Database, source: Database, table: str, columns: list[str] | None = None) -> None:
    names = columns or [
        row["name"] for row in target.query(f"SELECT name FROM pragma_table_info('{table}')").rows
    ]
    for row in source.query(f"SELECT {', '.join(names)} FROM {table}").rows:
        marks = ", ".join("?" * len(names))
        values = [row[name] for name in names]
        target.query(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", values)


def test_new_items_are_found_in_the_index_alone(sqlite: SqliteDatabase) -> None:
    highest = arrivals.count_on("a", "2026-01-01T00:00:00Z")
    plan = sqlite.query(f"EXPLAIN QUERY PLAN {highest.sql}", highest.params).rows
    assert "COVERING INDEX items_age (feed_id=? AND created_at=? AND arrived>?)" in json.dumps(plan)
    last = "SELECT max(arrived) FROM items INDEXED BY items_age WHERE feed_id = 'a'"
    plan = sqlite.query(f"EXPLAIN QUERY PLAN {last}").rows
    assert "COVERING INDEX items_age (feed_id=?)" in json.dumps(plan)


Step = tuple[str, str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["store", "replay", "retire", "read", "read all"]),
        st.sampled_from(["a", "b"]),
        st.integers(min_value=0, max_value=30),
    ),
    max_size=30,
)


@pytest.fixture
def empty(tmp_path: Any) -> Iterator[SqliteDatabase]:
    database = migrated(tmp_path / "empty.sqlite")
    yield database
    database.close()


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_whatever_happens_between_two_reads_each_item_is_read_once(
    empty: SqliteDatabase, steps: list[Step]
) -> None:
    """Readers with a cursor each, one a feed and one over all; clocks jump by hours in both directions."""
    database = empty
    for table in ("items", "expired_items", "feeds", "sequences"):
        database.query(f"DELETE FROM {table}")
    register(database, spec("a"), spec("b"))
    cursors = {"a": START, "b": START, None: START}
    came: dict[str | None, list[tuple[str, str]]] = {"a": [], "b": [], None: []}
    seen: dict[str | None, list[tuple[str, str]]] = {"a": [], "b": [], None: []}
    stored: set[tuple[str, str]] = set()

    def look(who: str | None) -> None:
        for each in read(database, who, cursors[who]):
            seen[who].append((each.feed_id, each.guid))
            cursors[who] = Position.of(each.cursor)

    for number, (act, feed, n) in enumerate(steps):
        guid = f"{number}-{n}"
        if act in ("store", "replay"):
            bring(database, item(guid), item(guid + "b"), feed=feed, at=NOW + (n - 15) * HOUR)
            stored |= {(feed, guid), (feed, guid + "b")}
            for who in (feed, None):
                came[who] += [(feed, guid), (feed, guid + "b")]
        elif act == "retire":
            # The newest too; only what both readers have had, so that all that came must have been seen.
            look(feed)
            look(None)
            mine = sorted((f, g) for f, g in stored if f == feed)[: n + 1]
            retire(database, *(g for _, g in mine), feed=feed)
            stored -= set(mine)
        else:
            look(feed if act == "read" else None)
    for reader in cursors:
        look(reader)
    assert seen == came
