"""The ids of all feeds, a page at a time: a million of them are some 100 MB in memory at once."""

from collections.abc import Iterator

from rss_pipeline.storage.database import Database

_PAGE = 5_000


def pages_of_ids(database: Database) -> Iterator[list[str]]:
    """The ids of all feeds, in their order."""
    after = ""
    while rows := database.query(
        f"SELECT id FROM feeds WHERE id > ? ORDER BY id LIMIT {_PAGE}", [after], name="read ids of feeds"
    ).rows:
        yield [row["id"] for row in rows]
        after = rows[-1]["id"]
