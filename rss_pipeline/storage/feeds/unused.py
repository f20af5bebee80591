"""Feeds that their last subscriber left: those past their time, and the start of their removal.

Their items and images go first (features/retention); the removal ends like that of `forget` (forget.py).
"""

from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.predicates import UNUSED
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW

UNUSED_AFTER = timedelta(days=7)
"""Time that a feed is kept after its last subscriber left it."""

# A run that claimed the feed before it was left may be about to write.
_DUE = f"""{UNUSED} AND unused_since <= ?
    AND (lease_token IS NULL OR lease_token NOT IN ({LIVE_TOKENS_NOW}))"""


def due_feeds(database: Database, *, now: datetime) -> list[str]:
    """Ids of the unused feeds past their time at `now`."""
    rows = database.query(
        f"SELECT id FROM feeds WHERE {_DUE} ORDER BY id",
        [instant(now - UNUSED_AFTER)],
        name="find unused feeds",
    ).rows
    return [row["id"] for row in rows]


def begin_removal(database: Database, feed_id: str, *, now: datetime) -> int | None:
    """Delete the image tasks of this feed, and forget its validators, so that its next visit, if somebody
    subscribes to it now, brings what it lists again. Return the number of tasks; None if it is not due now.
    """
    before = instant(now - UNUSED_AFTER)
    begun, tasks = database.batch(
        [
            Statement(
                f"""UPDATE feeds SET last_etag = NULL, last_modified = NULL, validators_url = NULL,
                content_hash = NULL, failed_hash = NULL, failed_version = NULL, cut_hash = NULL, cuts = 0
                WHERE id = ? AND {_DUE}""",
                [feed_id, before],
                name="begin removal of an unused feed",
            ),
            Statement(
                f"""DELETE FROM image_tasks WHERE item_id IN (SELECT items.id FROM items
                WHERE feed_id IN (SELECT id FROM feeds WHERE id = ? AND {_DUE}))""",
                [feed_id, before],
                name="delete image tasks of an unused feed",
            ),
        ]
    )
    return tasks.changes if begun.changes else None


def sizes(database: Database, feed_id: str) -> tuple[int, int]:
    """The numbers of items and image tasks of a feed."""
    row = database.query(
        """SELECT count(*) AS items, coalesce(sum((
          SELECT count(*) FROM image_tasks WHERE item_id = items.id)), 0) AS tasks
        FROM items WHERE feed_id = ?""",
        [feed_id],
        name="count what an unused feed has",
    ).rows[0]
    return int(row["items"]), int(row["tasks"])
