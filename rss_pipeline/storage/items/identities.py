"""The rows that are stored under the guids that items without a guid of their own may have. Reads only.

Which of them an item has is decided in collector.models.identity.
"""

from collections.abc import Iterable

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.identity import MAX_TITLE_CHARACTERS, Known
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.sql import chunked, compact


def known_identities(database: Database, feed_id: str, guids: Iterable[str]) -> dict[str, Known]:
    """The feed's stored items and tombstones among these guids; one query for each megabyte of guids."""
    known: dict[str, Known] = {}
    for some in chunked(map(compact, dict.fromkeys(guids))):
        rows = database.query(
            f"""WITH listed AS MATERIALIZED (SELECT value AS guid FROM json_each(?))
            SELECT i.guid, substr(i.title, 1, {MAX_TITLE_CHARACTERS}) AS title, i.link, i.pub_date,
              i.pub_date_source, i.pub_date_raw, i.backup_key, NULL AS expired_at
            FROM listed CROSS JOIN items AS i ON i.feed_id = ? AND i.guid = listed.guid
            UNION ALL SELECT e.guid, NULL, NULL, NULL, NULL, NULL, NULL, e.expired_at
            FROM listed CROSS JOIN expired_items AS e ON e.feed_id = ? AND e.guid = listed.guid""",
            [some, feed_id, feed_id],
            name="find known identities",
        ).rows
        known |= {row["guid"]: _known(row) for row in rows}
    return known


def _known(row: Row) -> Known:
    dated = row["pub_date_source"] == "feed"
    return Known(
        title=row["title"],
        link=row["link"],
        pub_date=from_instant(row["pub_date"]) if dated else None,
        pub_date_raw=row["pub_date_raw"],
        backup_key=row["backup_key"],
        retired_at=from_instant(row["expired_at"]),
    )
