"""The ids of all feeds, read page by page: there may be a million."""

from collections.abc import Iterator

from rss_pipeline.storage.database import Database

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
