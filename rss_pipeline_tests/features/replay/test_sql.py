"""The rows that a replay writes: missing items, once; repairs, with the old version kept; nothing else."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.item import Item, item_id
from rss_pipeline.features.replay import sql as replay
from rss_pipeline.storage.database import (
    MAX_PARAMETER_BYTES,
    Database,
    Row,
)
from rss_pipeline.storage.items import items
from rss_pipeline_tests.storage.items.test_items import put, row_of
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    change,
    claim_one,
    feed_row,
    item,
    register,
    spec,
    visit,
)

KEY = "backups/a/2026-02-18T08:30:00Z.xml"


@pytest.fixture
def known(database: Database) -> Database:
    """A feed with items 1 and 2 of one backup."""
    register(database, spec("a"), spec("b"))
    visit(database, [item("1"), item("2", author="Zoë")])
    change(database, "UPDATE items SET images_extracted_at = ?", instant(NOW))
    change(database, "UPDATE feeds SET images_pending = 0")
    return database


def insert(
    database: Database, *some: Item, feed: str = "a", at: Any = NOW, key: str = KEY
) -> tuple[str, ...]:
    chunks = list(items.item_rows(feed, some, fetched_at=at))
    return replay.insert(database, chunks, feed_id=feed, fetched_at=at, backup_key=key)


def rows(database: Database) -> list[Row]:
    return database.query("SELECT * FROM items ORDER BY guid").rows


def repair(database: Database, *some: Item, key: str = KEY, now: Any = NOW + HOUR) -> tuple[str, ...]:
    known = items.known_rows(items.item_rows("a", some, fetched_at=NOW))
    return replay.repair(database, known.values(), feed_id="a", backup_key=key, now=now)


def versions(database: Database) -> list[Row]:
    return database.query("SELECT * FROM item_versions ORDER BY replaced_at, item_id").rows


def test_an_insert_needs_no_lease_and_gives_what_a_visit_would_have(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    assert insert(database, item("1"), item("2")) == (item_id("a", "1"), item_id("a", "2"))
    replayed = rows(database)
    change(database, "DELETE FROM items")
    visit(database, [item("1"), item("2")])
    assert rows(database) == [{**row, "arrived": ANY} for row in replayed]


def test_an_item_that_shows_no_image_is_not_looked_at(database: Database) -> None:
    register(database, spec("a"))
    [chunk] = items.item_rows("a", [item("1"), item("2")], fetched_at=NOW)
    chunk = replace(chunk, imageless=(item_id("a", "1"),))
    replay.insert(database, [chunk], feed_id="a", fetched_at=NOW, backup_key=KEY)
    assert [row["images_extracted_at"] for row in rows(database)] == [instant(NOW), None]
    assert feed_row(database)["images_pending"] == 1
    [last] = items.item_rows("a", [item("3")], fetched_at=NOW)
    change(database, "UPDATE feeds SET images_pending = 0")
    last = replace(last, imageless=last.ids)
    replay.insert(database, [last], feed_id="a", fetched_at=NOW, backup_key=KEY)
    assert feed_row(database)["images_pending"] == 0


def test_what_is_there_stays_as_it_is(known: Database) -> None:
    before, feed = rows(known), feed_row(known)
    assert insert(known, item("1", title="Other"), item("2"), at=NOW - HOUR, key="older") == ()
    assert (rows(known), feed_row(known)) == (before, feed)


def test_an_insert_holds_against_a_claim_of_another_run(known: Database) -> None:
    _, token = claim_one(known, now=NOW + timedelta(days=2))
    insert(known, item("3"))
    row = feed_row(known)
    assert (row["lease_token"], row["content_hash"], row["images_pending"]) == (token, "hash", 1)


def test_only_the_search_for_images_is_noted_on_the_feed(known: Database) -> None:
    before = feed_row(known)
    insert(known, item("3"))
    assert feed_row(known) == {**before, "images_pending": 1}
    change(known, "UPDATE feeds SET images = 0, images_pending = 0")
    insert(known, item("4"))
    assert feed_row(known)["images_pending"] == 0


def test_what_retention_removed_does_not_come_back(known: Database) -> None:
    change(known, "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('a', '3', ?)", instant(NOW))
    pairs = [(item_id("a", guid), guid) for guid in "1345"]
    assert items.not_stored(known, "a", pairs) == {item_id("a", "4"), item_id("a", "5")}
    assert insert(known, item("3"), item("4")) == (item_id("a", "4"),)
    assert insert(known, item("3"), feed="b") == (item_id("b", "3"),), "a tombstone is one feed's"


def test_without_its_feed_nothing_is_inserted(known: Database) -> None:
    assert insert(known, item("1"), feed="forgotten") == ()
    assert items.not_stored(known, "forgotten", [(item_id("forgotten", "1"), "1")]) == set()


def test_a_row_of_more_than_a_megabyte_goes_in_and_is_repaired_too(known: Database) -> None:
    text = "大" * 500_000
    assert insert(known, item("3", content_html=text)) == (item_id("a", "3"),)
    assert repair(known, item("3", content_html=text + "。")) == (item_id("a", "3"),)
    [row] = known.query("SELECT content_html FROM items WHERE guid = '3'").rows
    assert row["content_html"] == text + "。"
    assert [version["content_html"] for version in versions(known)] == [text]


def test_what_was_stored_of_a_backup_comes_in_pages(known: Database) -> None:
    many = [item(f"n{n}", content_html="x" * (MAX_PARAMETER_BYTES // 3)) for n in range(9)]
    insert(known, *many, at=NOW + HOUR, key="another")
    insert(known, item("same second"), key="the next key")
    found = list(replay.stored_of(known, "a", fetched_at=NOW + HOUR, backup_key="another"))
    assert {row["guid"] for row in found} == {each.guid for each in many}
    found = list(replay.stored_of(known, "a", fetched_at=NOW, backup_key=KEY))
    assert [tuple(row) for row in found] == [items.COLUMNS] * 2
    assert {row["guid"] for row in found} == {"1", "2"}


def test_the_columns_that_read_otherwise_are_named(known: Database) -> None:
    read = items.known_rows(
        items.item_rows("a", [item("1"), item("2", title=None, author="Zoe")], fetched_at=NOW)
    )
    stored = {row["guid"]: row for row in replay.stored_of(known, "a", fetched_at=NOW, backup_key=KEY)}
    assert replay.differing(stored["1"], read[item_id("a", "1")]) == ()
    assert replay.differing(stored["2"], read[item_id("a", "2")]) == ("title", "author", "authors")


def test_a_repair_adds_the_authors_that_an_older_version_did_not_store(known: Database) -> None:
    change(known, "UPDATE items SET authors = NULL")
    both = item("2", author="Zoë", authors=("Zoë", "Ada"))
    read = items.known_rows(items.item_rows("a", [item("1"), both], fetched_at=NOW))
    alone = items.known_rows(
        items.item_rows("a", [item("2", author="Zoë", authors=("Zoë",))], fetched_at=NOW)
    )
    stored = {row["guid"]: row for row in replay.stored_of(known, "a", fetched_at=NOW, backup_key=KEY)}
    assert replay.differing(stored["1"], read[item_id("a", "1")]) == ()
    assert replay.differing(stored["2"], alone[item_id("a", "2")]) == ()
    assert replay.differing(stored["2"], read[item_id("a", "2")]) == ("authors",)
    assert repair(known, both) == (item_id("a", "2"),)
    assert [row["authors"] for row in rows(known)] == [None, '["Zoë","Ada"]']
    assert [version["authors"] for version in versions(known)] == [None]


def test_a_repair_keeps_the_old_version_and_what_names_the_item(known: Database) -> None:
    before = rows(known)
    assert repair(known, item("1"), item("2", title="Mended", author=None)) == (item_id("a", "2"),)
    after = rows(known)
    assert after[0] == before[0]
    assert after[1] == {**before[1], "title": "Mended", "author": None, "images_extracted_at": None}
    [version] = versions(known)
    assert version == {
        "item_id": item_id("a", "2"),
        "replaced_at": instant(NOW + HOUR),
        **{name: before[1][name] for name in replay.READ},
    }
    assert feed_row(known)["images_pending"] == 1


def test_a_repair_done_twice_changes_nothing_the_second_time(known: Database) -> None:
    mended = item("2", title="Mended")
    repair(known, mended)
    after = (rows(known), versions(known), feed_row(known))
    for now in (NOW + HOUR, NOW + 2 * HOUR):
        assert repair(known, mended, now=now) == ()
        assert (rows(known), versions(known), feed_row(known)) == after


def test_two_repairs_leave_two_versions(known: Database) -> None:
    repair(known, item("2", title="Once"))
    repair(known, item("2", title="Twice"), now=NOW + 2 * HOUR)
    assert [version["title"] for version in versions(known)] == ["Title 2", "Once"]


def test_a_backup_repairs_only_what_was_stored_of_it(known: Database) -> None:
    before = rows(known)
    assert repair(known, item("1", title="Newer"), key="another backup") == ()
    assert (rows(known), versions(known)) == (before, [])


def test_items_that_were_not_searched_for_images_are_found_by_their_backup(known: Database) -> None:
    insert(known, item("3"), at=NOW + HOUR, key="another")
    assert replay.without_images(known, "a", fetched_at=NOW, backup_key=KEY) == ()
    assert replay.without_images(known, "a", fetched_at=NOW + HOUR, backup_key="another") == (
        item_id("a", "3"),
    )


def test_a_row_with_a_large_text_is_written_again_and_kept_as_a_version(database: Database) -> None:
    """Whatever else is written of it later meets no limit of a row that it had not before."""
    register(database, spec("a"))
    put(database, item("1", content_html="x" * 5_000_000))
    database.query("UPDATE items SET images_extracted_at = NULL, backup_key = 'k'")
    row = [row_of(database, "1")[name] for name in items.COLUMNS]
    row[items.COLUMNS.index("title")] = "Another"
    assert replay.repair(database, [row], feed_id="a", backup_key="k", now=NOW) == (row[0],)
    [kept] = database.query("SELECT title, length(content_html) AS size FROM item_versions").rows
    assert kept["title"] == "Title 1"
    assert kept["size"] > 1_900_000
