"""Items into rows and back: nothing twice, nothing by a lost claim, nothing too large for a row."""

import json
from datetime import UTC, datetime

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.item import Enclosure, Item, item_id
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.database import (
    MAX_PARAMETER_BYTES,
    MAX_VALUE_BYTES,
    Database,
    Row,
    item_bytes,
)
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.items import items
from rss_pipeline.storage.stale import mark_stale
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    claim,
    claim_one,
    inserts,
    item,
    register,
    spec,
    store,
    visit,
)


@pytest.fixture
def known(database: Database) -> Database:
    register(database, spec("a"))
    return database


def put(database: Database, *some: Item) -> tuple[str, ...]:
    """Insert without a close; ids of the new ones."""
    feed, token = claim_one(database)
    statements = inserts(feed, token, some, item_bytes=item_bytes(database))
    fresh = items.new_ids(database.batch(statements))
    leases.end(database, token, forgive=True)
    return fresh


def row_of(database: Database, guid: str) -> Row:
    row = items.item(database, item_id("a", guid))
    assert row is not None
    return row


FULL = Item(
    guid=" guid with blanks ",
    guid_source="link",
    link="https://a.example/1?a=1&b=2",
    title='日本語 "quoted" \\ \u2028 👩‍👩‍👧',
    author="Ada",
    authors=("Ada", "小嶋 陽菜"),
    pub_date=datetime(2026, 2, 17, 23, 59, 59, 999_999, UTC),
    pub_date_raw="Tue, 17 Feb 2026 23:59:59 GMT",
    updated_at=datetime(2026, 2, 18, tzinfo=UTC),
    categories=("one", "二"),
    enclosures=(
        Enclosure(url="https://a.example/1.mp3", type="audio/mpeg", length=2**40),
        Enclosure(url="x"),
    ),
    summary="<b>s</b>",
    content_html="<p>\r\n\t中文 &amp; </p>\n",
    base_url="https://a.example/base/",
)


def test_an_item_is_stored_as_published(known: Database) -> None:
    assert put(known, FULL) == (item_id("a", FULL.guid),)
    row = row_of(known, FULL.guid)
    for name in (
        "guid",
        "guid_source",
        "link",
        "title",
        "author",
        "pub_date_raw",
        "summary",
        "content_html",
        "base_url",
    ):
        assert row[name] == getattr(FULL, name)
    assert (row["pub_date"], row["pub_date_source"]) == ("2026-02-17T23:59:59Z", "feed")
    assert (row["updated_at"], row["created_at"]) == ("2026-02-18T00:00:00Z", instant(NOW))
    assert json.loads(row["authors"]) == ["Ada", "小嶋 陽菜"]
    assert json.loads(row["categories"]) == ["one", "二"]
    assert json.loads(row["enclosures"])[0] == {
        "url": "https://a.example/1.mp3",
        "type": "audio/mpeg",
        "length": 2**40,
    }
    assert (row["content_omitted"], row["images_extracted_at"]) == (None, None)
    assert row["backup_key"] == "backups/a/2026-02-18T08:30:00Z.xml"
    assert (row["feed_url"], row["feed_title"]) == ("https://a.example/a", None)


def test_what_finding_images_needs_comes_back_from_rows_and_from_the_table(known: Database) -> None:
    put(known, FULL)
    [row] = items.rows_of(items.item_rows("a", [FULL], fetched_at=NOW))
    id, from_chunk = row["id"], items.image_source(row)
    from_table = items.image_source(row_of(known, FULL.guid))
    assert id == item_id("a", FULL.guid)
    assert from_chunk == from_table
    assert (from_table.content_html, from_table.base_url) == (FULL.content_html, FULL.base_url)
    assert from_table.enclosures == FULL.enclosures


def test_an_item_without_a_date_takes_the_fetch_time_and_says_so(known: Database) -> None:
    put(known, item("1", pub_date=None, pub_date_raw="soon"))
    row = row_of(known, "1")
    assert (row["pub_date"], row["pub_date_source"], row["pub_date_raw"]) == (instant(NOW), "fetched", "soon")


@pytest.mark.parametrize("text", ["1", "1.0", "007", "true", "null", "1e5", "[1]", '{"a":1}', "", " "])
def test_text_that_looks_like_something_else_stays_text(known: Database, text: str) -> None:
    put(known, item("x" + text, title=text, author=text, content_html=text, link=text), item(text))
    row = row_of(known, "x" + text)
    assert [row[name] for name in ("title", "author", "content_html", "link")] == [text] * 4
    assert row_of(known, text)["guid"] == text


def test_what_is_stored_already_stays_as_it_was(known: Database) -> None:
    assert len(put(known, item("1", title="first"), item("2"))) == 2
    before = known.query("SELECT * FROM items ORDER BY id").rows
    assert put(known, item("1", title="changed"), item("2")) == ()
    assert known.query("SELECT * FROM items ORDER BY id").rows == before
    assert put(known, item("1"), item("3"), item("3", title="twice")) == (item_id("a", "3"),)
    assert row_of(known, "3")["title"] == "Title 3"


def test_the_same_guid_in_two_feeds_is_two_items(known: Database) -> None:
    register(known, spec("a"), spec("b"))
    visit(known, [item("1")], id="a")
    visit(known, [item("1")], id="b")
    assert known.query("SELECT feed_id FROM items ORDER BY feed_id").rows == [
        {"feed_id": "a"},
        {"feed_id": "b"},
    ]


@pytest.mark.parametrize("size", [10, 1_500_000])
def test_a_lost_claim_writes_nothing(known: Database, size: int) -> None:
    feed, token = claim_one(known)
    some = [item("1", content_html="x" * size)]
    assert items.new_ids(known.batch(inserts(feed, "another token", some))) == ()
    assert items.new_ids(known.batch(inserts(feed, token, some))) == (item_id("a", "1"),)


def test_a_forgotten_feed_gets_no_items(known: Database) -> None:
    feed, token = claim_one(known)
    known.query("DELETE FROM feeds")
    assert items.new_ids(known.batch(inserts(feed, token, [item("1")]))) == ()


def test_many_items_go_in_chunks_below_a_megabyte_in_their_order() -> None:
    some = [item(f"{n}", content_html="x" * 1_000) for n in range(3_000)]
    chunks = list(items.item_rows("a", some, fetched_at=NOW))
    assert len(chunks) > 3
    assert all(len(chunk.text.encode()) <= MAX_PARAMETER_BYTES for chunk in chunks)
    assert [id for chunk in chunks for id in chunk.ids] == [item_id("a", f"{n}") for n in range(3_000)]
    assert not any(chunk.alone for chunk in chunks)
    assert [row[1] for chunk in chunks for row in json.loads(chunk.text)] == [f"{n}" for n in range(3_000)]


def test_no_items_are_no_chunks() -> None:
    assert list(items.item_rows("a", [], fetched_at=NOW)) == []


def test_chinese_and_japanese_text_is_not_doubled() -> None:
    text = "日本語中文" * 20_000
    [chunk] = items.item_rows("a", [item("1", content_html=text, title=None)], fetched_at=NOW)
    assert len(chunk.text.encode()) < len(text.encode()) + 1_000
    assert text in chunk.text


@pytest.mark.parametrize("letter", ["x", "語", '"', "\n"])
def test_an_item_of_a_megabyte_and_a_half_goes_alone_and_whole(known: Database, letter: str) -> None:
    large = letter * (1_500_000 // len(letter.encode()))
    feed, token = claim_one(known)
    statements = inserts(feed, token, [item("1"), item("2", content_html=large), item("3")])
    marks = bool(mark_stale("[]"))
    assert len(statements) == 2 * (2 + marks), "each with the mark on topics and the count of its numbers"
    assert len(items.new_ids(known.batch(statements))) == 3
    row = row_of(known, "2")
    assert row["content_html"] == large
    assert row["content_omitted"] is None


@pytest.mark.parametrize("letter", ["x", "語", '"', "\n"])
def test_a_text_that_is_larger_than_a_row_of_d1_is_whole_where_there_is_room(
    known: Database, letter: str
) -> None:
    text = letter * (3_000_000 // len(letter.encode()))
    put(known, item("1", content_html=text, summary="kept"), item("2"))
    row = row_of(known, "1")
    assert (row["summary"], row["title"]) == ("kept", "Title 1")
    if item_bytes(known) > MAX_VALUE_BYTES:
        assert row["content_html"] == text
        assert row["content_omitted"] is None
    else:
        size = len(row["content_html"].encode())
        assert text.startswith(row["content_html"])
        assert size > 1_850_000
        assert row["content_omitted"].startswith("3,00")
        end = f"bytes do not fit into a row of 2,000,000; its text ends after {size:,} bytes"
        assert row["content_omitted"].endswith(end)
    assert row_of(known, "2")["content_omitted"] is None


def test_what_else_is_too_large_goes_in_every_store(known: Database) -> None:
    put(
        known,
        item("1", summary="s" * 1_000_000, enclosures=(Enclosure(url="u" * 1_100_000),)),
        item("2", summary="s" * 2_000_000, content_html="a text"),
        item("3", categories=("c" * 2_000_000,)),
    )
    rows = [row_of(known, guid) for guid in "123"]
    assert [row["content_omitted"].partition("2,000,000; left out: ")[2] for row in rows] == [
        "summary",
        "summary",
        "summary, enclosures, categories",
    ]
    assert [len(json.loads(row["enclosures"])) for row in rows] == [1, 0, 0]
    assert rows[1]["content_html"] == "a text"


def test_a_row_at_the_edge_is_taken_by_the_database(known: Database) -> None:
    edge = item_bytes(known)
    step = 400 if edge == MAX_VALUE_BYTES else 3_100
    for n, size in enumerate(range(edge - 3_000, edge + 200, step)):
        put(known, item(f"{n}", content_html="<p>é</p>".ljust(size - 1, "x")))
    rows = known.query(
        "SELECT content_omitted, length(CAST(content_html AS BLOB)) AS size FROM items ORDER BY guid"
    ).rows
    whole = [row["content_omitted"] is None for row in rows]
    assert whole == sorted(whole, reverse=True)
    assert {*whole} == {True, False}
    assert all(edge - 3_100 < row["size"] < edge for row in rows)


def test_an_item_too_large_by_its_title_alone_is_stored_without_it(known: Database) -> None:
    put(known, item("1", title="t" * 2_000_001), item("2", title="t" * 1_999_900, link="http://a.example/"))
    for guid in "12":
        row = row_of(known, guid)
        assert row["title"] is None
        assert row["content_omitted"].endswith("categories, authors, title")
    assert row_of(known, "2")["link"] == "http://a.example/"


def test_too_many_names_of_authors_go_and_the_first_author_stays(known: Database) -> None:
    put(known, item("1", author="Ada", authors=("Ada", *(f"{n}" * 21_000 for n in range(99)))))
    row = row_of(known, "1")
    assert row["content_omitted"].endswith("categories, authors")
    assert (row["author"], row["authors"], items.stored_authors(row)) == ("Ada", None, ("Ada",))


def test_an_item_with_a_guid_that_alone_is_too_large_is_refused_and_not_its_neighbours(
    known: Database,
) -> None:
    register(known, spec("a"), spec("b"))
    feed, token = claim_one(known)
    with pytest.raises(StorageRejected):
        known.batch(inserts(feed, token, [item("g" * 2_000_001)]))
    assert visit(known, [item("1")], id="b") == 1


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "\\\0"])
def test_what_stores_differ_on_is_refused_and_never_cut(known: Database, text: str) -> None:
    feed, token = claim_one(known)
    with pytest.raises((StorageRejected, UnicodeEncodeError)):
        known.batch(inserts(feed, token, [item("1", title=text)]))
    assert known.query("SELECT count(*) AS n FROM items").rows == [{"n": 0}]


def test_an_article_about_escapes_is_no_offence(known: Database) -> None:
    text = r"In JSON, \u0000 is NUL, \\u0000 is not, \ud800 is half of something"
    put(known, item("1", title=text, content_html=text * 30_000))
    assert row_of(known, "1")["title"] == text


def test_items_go_in_before_the_close_or_not_at_all(known: Database) -> None:
    feed, token = claim_one(known)
    with pytest.raises(StorageRejected):
        store(known, feed, token, [item("1")], title="\ud800")
    assert known.query("SELECT count(*) AS n FROM items").rows == [{"n": 0}]
    assert store(known, feed, token, [item("1")]) == 1


def test_new_items_under_known_titles_are_counted(known: Database) -> None:
    visit(known, [item(f"old-{n}", title=f"t{n}") for n in range(5)] + [item("none", title=None)])
    fresh = put(
        known,
        *(item(f"new-{n}", title=f"t{n}") for n in range(3, 8)),
        item("new-none", title=None),
        item("again", title="t6"),
    )
    assert items.known_titles(known, "a", fresh) == 2
    assert items.known_titles(known, "a", []) == 0


def test_the_newest_items_come_first_without_their_content(known: Database) -> None:
    visit(known, [item(f"{n}", pub_date=NOW - n * HOUR, content_html="日本" * n) for n in range(5)])
    rows = items.newest(known, "a", limit=3)
    assert [row["guid"] for row in rows] == ["0", "1", "2"]
    assert [row["content_characters"] for row in rows] == [0, 2, 4]
    assert "content_html" not in rows[0]
    assert items.newest(known, "unknown", limit=3) == []


def test_an_item_is_found_by_a_start_of_its_id_that_no_other_has(known: Database) -> None:
    visit(known, [item(f"{n}") for n in range(40)])
    id = item_id("a", "7")
    assert row_of(known, "7")["guid"] == "7"
    found = items.item(known, id[:12])
    assert found is not None
    assert found["guid"] == "7"
    assert items.item(known, "") is None
    assert items.item(known, "zz") is None
    assert any(items.item(known, letter) is None for letter in "0123456789abcdef")


def test_items_alone_release_no_claim(known: Database) -> None:
    feed, token = claim_one(known)
    known.batch(inserts(feed, token, [item("1")]))
    assert claim(known).feeds == claim(known, suspects=True).feeds == ()
