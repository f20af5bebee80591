"""Aliases: guids that publishers gave to stored items later, each with the guid that its item keeps.

Which they are is decided in collector.models.rewritten; identities.py looks them up.
"""

from collections.abc import Mapping
from datetime import datetime

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Statement, Value
from rss_pipeline.storage.sql import chunked, compact

ALIASES_KEPT = 3
"""The most of an item, those of the newest documents: some feeds make new guids at every visit."""
_AT_ONCE = 3
"""Parameters of 1 MB in one batch: 5,000 aliases of 600 bytes."""


def add_aliases(
    database: Database,
    feed_id: str,
    aliases: Mapping[str, str],
    *,
    fetched_at: datetime,
    token: str | None = None,
) -> None:
    """Write these guids of a document, each with the guid that its item is stored under.

    It has to come before the document's items. A run that died with some of them stored, or with some aliases
    written, would leave a document with fewer new guids, which shows no rewriting any more. So the aliases
    are one batch. With `token`, nothing is written if the lease was lost.
    """
    guard = "id = ?" if token is None else "id = ? AND lease_token = ?"
    guarded: list[Value] = [feed_id] if token is None else [feed_id, token]
    statements = [
        Statement(
            f"""INSERT INTO item_aliases (feed_id, guid, item_guid, created_at)
            SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ? FROM json_each(?)
            WHERE EXISTS (SELECT 1 FROM feeds WHERE {guard}) ON CONFLICT (feed_id, guid) DO NOTHING""",
            [feed_id, instant(fetched_at), some, *guarded],
            name="add aliases",
        )
        for some in chunked(compact([new, old]) for new, old in aliases.items())
    ]
    for batch in batched(statements, _AT_ONCE):
        database.batch([*batch, _drop_oldest(feed_id, guard, guarded)])


def _drop_oldest(feed_id: str, guard: str, guarded: list[Value]) -> Statement:
    return Statement(
        f"""DELETE FROM item_aliases WHERE feed_id = ? AND guid IN (
          SELECT guid FROM (
            SELECT guid, row_number() OVER (PARTITION BY item_guid ORDER BY created_at DESC, guid) AS place
            FROM item_aliases WHERE feed_id = ?) AS placed
          WHERE place > {ALIASES_KEPT})
        AND EXISTS (SELECT 1 FROM feeds WHERE {guard})""",
        [feed_id, feed_id, *guarded],
        name="drop oldest aliases",
    )


def alias_counts(database: Database, feed_id: str) -> dict[str, int]:
    """The number of aliases of each item that has any, by its guid."""
    rows = database.query(
        "SELECT item_guid, count(*) AS n FROM item_aliases WHERE feed_id = ? GROUP BY item_guid",
        [feed_id],
        name="count aliases",
    ).rows
    return {row["item_guid"]: int(row["n"]) for row in rows}


def drop_unused(feed_id: str, token: str) -> Statement:
    """A statement that drops the aliases of items that are neither stored nor retired any more."""
    gone = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} AS s WHERE s.feed_id = item_aliases.feed_id"
        " AND s.guid = item_aliases.item_guid)"
        for table in ("items", "expired_items")
    )
    return Statement(
        f"""DELETE FROM item_aliases WHERE feed_id = ? AND {gone}
        AND EXISTS (SELECT 1 FROM feeds WHERE id = ? AND lease_token = ?)""",
        [feed_id, feed_id, token],
        name="drop unused aliases",
    )
