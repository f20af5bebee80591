"""The ids of feeds: of all, read page by page, for there may be a million; and those that are taken."""

from collections.abc import Iterable, Iterator

from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.sql import chunked, compact

_PAGE = 5_000


def feed_ids(database: Database) -> Iterator[str]:
    """The ids of all feeds, in their order."""
    after = ""
    while True:
        rows = database.query(
            f"SELECT id FROM feeds WHERE id > ? ORDER BY id LIMIT {_PAGE}", [after], name="read feed ids"
        ).rows
        yield from (row["id"] for row in rows)
        if len(rows) < _PAGE:
            return
        after = rows[-1]["id"]


def stored_urls(ids: Iterable[str]) -> list[Statement]:
    """Queries for the feeds with these ids, and with each of these and a number; `urls_by_id` reads them."""
    return [
        Statement(
            # All that begin with the id and a hyphen: no other sign of an id comes before the dot.
            """SELECT feeds.id, feeds.url FROM json_each(?) AS j
            CROSS JOIN feeds ON feeds.id >= j.value AND feeds.id < j.value || '.'
            WHERE feeds.forgotten = 0""",
            [chunk],
            name="find taken ids",
        )
        for chunk in chunked(map(compact, ids))
    ]


def urls_by_id(found: Iterable[Result]) -> dict[str, str]:
    """The results of `stored_urls`."""
    return {row["id"]: row["url"] for result in found for row in result.rows}
