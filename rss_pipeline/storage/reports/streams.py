"""What streams are made of: the fields of a feed's items that selectors look at. Reads only."""

from collections.abc import Iterator

from rss_pipeline.storage.database import Database, Row

_PAGE = 2_000
"""Items read at once: some hundred kilobytes of titles, links and names."""


def selectable_fields(database: Database, feed_id: str) -> Iterator[Row]:
    """The rows of a feed's items with what a selector by field looks at, and `id` and `pub_date`."""
    last = ""
    while True:
        rows = database.query(
            """SELECT id, guid, title, link, author, authors, categories, pub_date FROM items
            WHERE feed_id = ? AND guid > ? ORDER BY guid LIMIT ?""",
            [feed_id, last, _PAGE],
            name="read fields of items",
        ).rows
        yield from rows
        if len(rows) < _PAGE:
            return
        last = rows[-1]["guid"]


def stored_members(database: Database, feed_id: str) -> dict[str, frozenset[str]]:
    """The ids of the items of each stream of a feed, as they are stored."""
    found: dict[str, set[str]] = {}
    for row in database.query(
        "SELECT stream, item_id FROM item_streams WHERE feed_id = ?",
        [feed_id],
        name="read members of streams",
    ).rows:
        found.setdefault(row["stream"], set()).add(row["item_id"])
    return {name: frozenset(ids) for name, ids in found.items()}
