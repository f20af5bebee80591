"""The mark on topics that are to be published again, for the batch of whatever changes what they show.

The mark counts: a publication takes back what it has read, and not what came meanwhile.
"""

from collections.abc import Sequence

from rss_pipeline.storage.database import Database, Statement, Value
from rss_pipeline.storage.sql import NOW, chunked, compact

STALE = f"stale = topics.stale + 1, stale_at = coalesce(topics.stale_at, {NOW})"
"""The mark on a row of topics."""
_MARK = f"""UPDATE topics SET {STALE} WHERE id IN (
  SELECT topic_id FROM topic_members WHERE feed_id {{feeds}})"""


def mark_stale(feed_ids: str) -> Statement:
    """Mark all topics with one of these feeds, a JSON list of their ids."""
    return mark_stale_of("SELECT value FROM json_each(?)", [feed_ids])


def mark_stale_of(feeds: str, params: Sequence[Value]) -> Statement:
    """Mark all topics with a feed that this query names."""
    return Statement(_MARK.format(feeds=f"IN ({feeds})"), params, name="mark topics stale")


def mark_stale_if(
    feed_id: str, condition: str, params: Sequence[Value], *, before: str = "", first: Sequence[Value] = ()
) -> Statement:
    """Mark all topics with this feed where a condition holds, which is not looked at for a feed in no topic.

    `before` is a WITH clause for the condition, with its own parameters `first`.
    """
    return Statement(
        f"{before} {_MARK.format(feeds='= ?')} AND {condition}",
        [*first, feed_id, *params],
        name="mark topics stale",
        planned_once=True,
    )


def mark_topics_stale(database: Database, topic_ids: Sequence[str]) -> None:
    """Mark these topics: they are published again, although nothing of them changed."""
    for chunk in chunked(map(compact, topic_ids)):
        database.query(
            f"UPDATE topics SET {STALE} WHERE id IN (SELECT value FROM json_each(?))",
            [chunk],
            name="mark topics stale",
        )
