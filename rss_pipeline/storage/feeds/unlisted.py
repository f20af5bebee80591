"""Feeds that no one wants any more: a list of them, and the start of the removal of empty ones.

The removal ends like that of `forget` (feeds.py): first the partition key, then the row.
"""

from collections.abc import Sequence

from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.predicates import UNLISTED, WITHOUT_DOCUMENT
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, chunked, compact

# A run that claimed the feed before it was taken out may be about to write.
_EMPTY = f"""{UNLISTED} AND unused_since IS NULL AND {WITHOUT_DOCUMENT}
    AND (lease_token IS NULL OR lease_token NOT IN ({LIVE_TOKENS_NOW}))
    AND NOT EXISTS (SELECT 1 FROM items WHERE feed_id = feeds.id)
    AND NOT EXISTS (SELECT 1 FROM expired_items WHERE feed_id = feeds.id)"""
"""Taken out of feeds.yaml, without an item, also a retired one, and without a claim; its backups are not
known here. A feed that its subscribers left waits for the clean: its back-off is known until then."""


def empty(database: Database) -> list[str]:
    """Ids of the unlisted feeds of which the database has nothing."""
    rows = database.query(
        f"SELECT id FROM feeds WHERE {_EMPTY} ORDER BY id", name="find empty unlisted feeds"
    ).rows
    return [row["id"] for row in rows]


def begin_removal(database: Database, ids: Sequence[str]) -> list[str]:
    """Mark those of these feeds as forgotten that are still empty; return their ids, sorted."""
    marked: list[str] = []
    for chunk in chunked(map(compact, ids)):
        marked += (
            row["id"]
            for row in database.query(
                f"""UPDATE feeds SET forgotten = 1, url = 'forgotten:' || id
                WHERE id IN (SELECT value FROM json_each(?)) AND {_EMPTY} RETURNING id""",
                [chunk],
                name="mark empty feeds forgotten",
            ).rows
        )
    return sorted(marked)


def unlisted(database: Database) -> list[Row]:
    """Id, URL and number of items of each unlisted feed."""
    return database.query(
        f"""SELECT id, url, (SELECT count(*) FROM items WHERE feed_id = feeds.id) AS items
        FROM feeds WHERE {UNLISTED} ORDER BY id""",
        name="list unlisted feeds",
    ).rows
