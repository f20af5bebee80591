"""Feeds that their last subscriber left: those whose time is over, and the start of their removal.

Their items and images go first, by pipeline.retention's; the removal ends like that of `forget` (forget.py).
"""

from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.predicates import UNUSED
from rss_pipeline.storage.sql import NOW

UNUSED_AFTER = timedelta(days=7)
"""Time that a feed is kept after its last subscriber left it."""

# A run that claimed the feed before it was left may be about to write.
_DUE = f"""{UNUSED} AND unused_since <= ?
    AND (lease_token IS NULL OR lease_token NOT IN (SELECT token FROM leases WHERE expires_at > {NOW}))"""


def due_feeds(database: Database, *, now: datetime) -> list[str]:
    """Ids of the unused feeds whose time is over at `now`."""
    rows = database.query(
        f"SELECT id FROM feeds WHERE {_DUE} ORDER BY id",
        [instant(now - UNUSED_AFTER)],
        name="find unused feeds",
    ).rows
    return [row["id"] for row in rows]


def begin_removal(database: Database, feed_id: str, *, now: datetime) -> bool:
    """Forget this feed's validators, so that its next visit, if it has one, brings its items again; False if
    its time is not over any more."""
    changed = database.query(
        f"""UPDATE feeds SET last_etag = NULL, last_modified = NULL, validators_url = NULL,
        content_hash = NULL, failed_hash = NULL, failed_version = NULL, cut_hash = NULL
        WHERE id = ? AND {_DUE}""",
        [feed_id, instant(now - UNUSED_AFTER)],
        name="begin removal of an unused feed",
    )
    return changed.changes > 0
