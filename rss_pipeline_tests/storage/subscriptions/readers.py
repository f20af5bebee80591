"""Users, their feeds and items for the tests of this room, and the statements' results as plain values."""

from collections.abc import Sequence

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions import item_lists, item_query, listing, subscriptions
from rss_pipeline.storage.subscriptions import item_states as states
from rss_pipeline.storage.subscriptions.chosen import Chosen, Filter, Page
from rss_pipeline_tests.storage.values import NOW, item, visit


def add_user(database: Database, id: str) -> None:
    database.query(
        """INSERT INTO users (id, name, password_hash, preferences, created_at)
        VALUES (?, ?, 'x', '{"order":"newest"}', '2026-02-18T08:30:00Z')""",
        [id, id],
    )


def subscribe(database: Database, user: str, *feeds: str, **fields: str) -> None:
    wanted = [subscriptions.Wanted(feed_id=feed, **fields) for feed in feeds]  # type: ignore[arg-type]
    database.batch(subscriptions.subscribe(user, wanted, at=NOW))


def arrive(database: Database, feed: str, *guids: str) -> None:
    """New items of a feed; it is claimed and visited."""
    visit(database, [item(guid) for guid in guids], id=feed)


def numbers(database: Database, feed: str) -> dict[str, int]:
    """Guid to arrival number."""
    rows = database.query("SELECT guid, arrived FROM items WHERE feed_id = ?", [feed]).rows
    return {row["guid"]: int(row["arrived"]) for row in rows}


def mark(
    database: Database, user: str, feed: str, guids: Sequence[str], *, is_read: bool, by_ids: bool = False
) -> None:
    database.batch(states.mark_items(user, chosen(database, feed, guids, by_ids=by_ids), is_read=is_read))


def chosen(database: Database, feed: str, guids: Sequence[str], *, by_ids: bool = False) -> Chosen:
    if not by_ids:
        known = numbers(database, feed)
        return Chosen.by_numbers([known[guid] for guid in guids])
    rows = database.query("SELECT id, guid FROM items WHERE feed_id = ?", [feed]).rows
    return Chosen.by_ids([row["id"] for row in rows if row["guid"] in guids])


def guids(
    database: Database, user: str, filter: Filter, *, size: int = 100, oldest: bool = False
) -> list[str]:
    """The guids of a whole list, read page by page; each page's numbers are those of its items."""
    found: list[str] = []
    after = None
    known = {row["id"]: row["guid"] for row in database.query("SELECT id, guid FROM items").rows}
    while True:
        page = Page(limit=size, after=after, newest_first=not oldest)
        rows, ids = database.batch(
            [item_lists.list_items(user, filter, page), item_lists.list_numbers(user, filter, page)]
        )
        items = item_lists.items_of(rows, page)
        assert item_lists.numbers_of(ids, page).numbers == tuple(one.arrived for one in items.items)
        found += [known[one.id] for one in items.items]
        if items.next_key is None:
            return found
        after = items.next_key


def unread(database: Database, user: str) -> dict[str, int]:
    """Feed to number of unread items; the list of feeds says the same."""
    counted, listed = database.batch([item_query.count_unread(user), listing.list_feeds(user)])
    found = {one.feed_id: one.unread for one in item_query.unread_counts(counted)}
    assert {one.feed_id: one.unread for one in listing.feed_rows(listed)} == found
    return found


def version(database: Database, user: str, feed: str) -> int:
    """The version that a client sees of a feed."""
    (row,) = listing.feed_rows(database.batch([listing.list_feeds(user, feed)])[0])
    return row.version


def state_rows(database: Database, user: str) -> int:
    return len(database.query("SELECT 1 FROM item_states WHERE user_id = ?", [user]).rows)
