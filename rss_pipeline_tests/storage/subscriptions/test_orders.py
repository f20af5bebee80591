"""Lists by date of publication, and by arrival with first documents at their dates, on every database."""

import contextlib
import random
import sqlite3
from pathlib import Path

import pytest

from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.subscriptions import item_lists
from rss_pipeline.storage.subscriptions.chosen import ALL, Filter, Key, Order, Page, Scope
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.storage.values import DAY, HOUR, MINUTE, NOW, change, item, register, spec, visit
from rss_pipeline_tests.support.databases import migrated


def listed(
    database: Database,
    order: Order,
    filter: Filter | None = None,
    *,
    size: int = 100,
    oldest: bool = False,
    between: list[str] | None = None,
) -> list[str]:
    """The guids of a whole list of Ann's, page by page. `between`: guids of a feed that come in after the
    first page."""
    known = {row["id"]: row["guid"] for row in database.query("SELECT id, guid FROM items").rows}
    found: list[str] = []
    after: Key | None = None
    while True:
        page = Page(limit=size, after=after, newest_first=not oldest, order=order)
        [result] = database.batch([item_lists.list_items("ann", filter or Filter(), page)])
        items = item_lists.items_of(result, page)
        keys = [item_lists.item_keys(each).get(order) for each in _placed(database, items)]
        assert keys == [items.key(nth) for nth in range(len(items.items))]
        found += [known[one.id] for one in items.items]
        if items.next_key is None:
            return found
        after = Key.read(str(items.next_key))
        if between:
            visit(database, [item(guid) for guid in between], id="a", at=NOW + 9 * DAY)
            known |= {row["id"]: row["guid"] for row in database.query("SELECT id, guid FROM items").rows}
            between = None


def _placed(database: Database, items: item_lists.Items) -> list[Result]:
    if not items.items:
        return []
    return database.batch([item_lists.keys_of("ann", one.id) for one in items.items])


@pytest.fixture
def news(two: Database) -> Database:
    """Feed a, known for a day, has today's news; b, new, brings in an archive."""
    readers.subscribe(two, "ann", "a", "b")
    visit(two, [item("old", pub_date=NOW - 2 * DAY)], id="a", at=NOW - DAY)
    visit(two, [item("noon", pub_date=NOW - 3 * HOUR), item("morning", pub_date=NOW - 6 * HOUR)], id="a")
    archive = [item(f"b{n}", pub_date=NOW - (n - 1) * DAY - HOUR) for n in range(1, 5)]
    visit(two, archive, id="b", at=NOW + MINUTE)
    return two


def test_a_first_document_never_buries_today_s_news(news: Database) -> None:
    """Its items are at their dates; only by arrival alone would all of them be first."""
    expected = ["b1", "noon", "morning", "b2", "old", "b3", "b4"]
    assert listed(news, "published") == expected
    placed = listed(news, "placed")
    assert set(placed[:2]) == {"noon", "morning"}
    assert placed[2:] == ["b1", "b2", "old", "b3", "b4"]
    assert set(listed(news, "arrived")[:4]) == {"b1", "b2", "b3", "b4"}


def test_items_of_a_first_document_without_a_date_or_dated_ahead_are_older_than_today_s_news(
    two: Database,
) -> None:
    readers.subscribe(two, "ann", "a", "b")
    visit(two, [item("old", pub_date=NOW - 3 * DAY)], id="a", at=NOW - DAY)
    visit(two, [item("noon", pub_date=NOW - 3 * HOUR)], id="a")
    first = [item("u1"), item("u2", pub_date=NOW + 300 * DAY)]
    visit(two, first, id="b", at=NOW + MINUTE)
    visit(two, [*first, item("u3")], id="b", at=NOW + HOUR)
    for order in ("published", "placed"):
        found = listed(two, order)
        assert found[:2] == ["u3", "noon"]
        assert set(found[2:4]) == {"u1", "u2"}
        assert found[4] == "old"


def test_an_item_dated_ahead_is_as_new_as_the_time_at_which_it_was_found(two: Database) -> None:
    readers.subscribe(two, "ann", "a")
    visit(two, [item("first", pub_date=NOW - 9 * DAY)], id="a", at=NOW - DAY)
    visit(two, [item("ahead", pub_date=NOW + 300 * DAY)], id="a")
    visit(two, [item("later", pub_date=NOW + HOUR)], id="a", at=NOW + 2 * HOUR)
    assert listed(two, "published") == ["later", "ahead", "first"]


@pytest.mark.parametrize("order", ["published", "placed"])
def test_what_comes_in_or_is_read_between_two_pages_moves_no_other_item(news: Database, order: Order) -> None:
    whole = listed(news, order)
    assert listed(news, order, size=2, between=["new1", "new2"]) == whole
    assert listed(news, order, size=2, oldest=True) == listed(news, order, oldest=True)


@pytest.mark.parametrize("order", ["published", "placed"])
def test_every_list_is_exact_in_pages_of_any_size(two: Database, order: Order) -> None:
    """Against a naive model: items of few dates, so that many are of one second."""
    chance = random.Random(35)
    readers.subscribe(two, "ann", "a")
    readers.subscribe(two, "ann", "b", folder="News")
    items: dict[str, tuple[tuple[int, int], str, bool]] = {}
    for n in range(8):
        feed, at = chance.choice("ab"), NOW + n * HOUR
        is_first = not any(of == feed for _, of, _ in items.values())
        dates = [None, *(NOW + k * HOUR - MINUTE for k in range(-30, 12, 3))]
        fresh = {f"{n}-{m}": chance.choice(dates) for m in range(3)}
        visit(two, [item(guid, pub_date=date) for guid, date in fresh.items()], id=feed, at=at)
        for guid, date in fresh.items():
            known = readers.numbers(two, feed)[guid]
            date = date or at
            when = at - DAY if date >= at and is_first else min(date, at)
            second = int(when.timestamp())
            place = second if order == "published" else second * 1_000_000 if is_first else known
            items[guid] = ((place, known), feed, False)
    for guid, (_, feed, _) in items.items():
        if chance.random() < 0.4:
            readers.mark(two, "ann", feed, [guid], is_read=True)
            items[guid] = (*items[guid][:2], True)
    for scope, feeds in ((ALL, "ab"), (Scope(feed_id="a"), "a"), (Scope(folder="News"), "b")):
        for is_read in (None, True, False):
            mine = {
                guid: place
                for guid, (place, feed, read) in items.items()
                if feed in feeds and is_read in (None, read)
            }
            for oldest in (False, True):
                expected = sorted(mine, key=lambda guid: mine[guid], reverse=not oldest)
                filter = Filter(scope=scope, is_read=is_read)
                assert listed(two, order, filter, size=5, oldest=oldest) == expected


@pytest.mark.parametrize("order", ["arrived", "placed", "published"])
def test_a_page_costs_the_same_however_many_items_are_stored_or_unread(tmp_path: Path, order: Order) -> None:
    """In steps of SQLite's machine, for the first page and for one behind a key."""
    steps = []
    for number, size in enumerate((100, 2_000)):
        path = tmp_path / f"{number}.sqlite"
        with contextlib.closing(migrated(path)) as database:
            readers.add_user(database, "ann")
            register(database, spec("a"), spec("b"))
            readers.subscribe(database, "ann", "a", "b")
            database.query(_MANY, [size])
            change(database, "UPDATE feeds SET first_stored_at = '2026-01-01T00:00:00Z'")
            middle = Key.of_number((1_767_225_600 + size // 2 * 60) * 1_000_000)
            pages = [Page(limit=20, order=order), Page(limit=20, order=order, after=middle.within(order))]
            statements = [
                item_lists.list_numbers("ann", Filter(is_read=is_read), page)
                for is_read in (None, False)
                for page in pages
            ]
        steps.append([_steps(path, statement) for statement in statements])
    for few, many in zip(*steps, strict=True):
        assert many < 1.3 * few


_MANY = """WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
  INSERT INTO items (id, feed_id, guid, guid_source, title, pub_date, pub_date_source, created_at, arrived,
    content_html, categories, enclosures)
  SELECT feeds.id || n, feeds.id, n, 'guid', 't',
    strftime('%Y-%m-%dT%H:%M:%SZ', 1767225600 + n * 60, 'unixepoch'), 'feed',
    strftime('%Y-%m-%dT%H:%M:%SZ', 1767225630 + n * 60, 'unixepoch'),
    (1767225640 + n * 60) * 1000000 + feeds.rowid, '<p>x</p>', '[]', '[]'
  FROM n CROSS JOIN feeds"""


def _steps(path: Path, statement: Statement) -> int:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.set_progress_handler(step, 1)
        connection.execute(statement.sql, statement.params).fetchall()
    return count


@pytest.mark.parametrize("key", [Key(5, 5), Key(-62, 1795339112000017), Key(1795339112, 3)])
def test_a_key_is_the_same_after_it_was_text(key: Key) -> None:
    assert Key.read(str(key)) == key
    assert Key.read(str(key.as_json)) == key


@pytest.mark.parametrize("text", ["", "x", "1~", "~1", "1~2~3", "-1", "9" * 16, "1" * 17, "1 ", "\u0661"])
def test_a_text_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        Key.read(text)
