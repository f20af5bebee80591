"""The mark on topics that are to be published again, for the batch of whatever changes what they show."""

from rss_pipeline.storage.database import Statement


def mark_stale(feed_ids: str) -> Statement:
    """Mark all topics with one of these feeds, a JSON list of their ids.

    The mark counts: a publication takes back what it has read, and not what came meanwhile.
    """
    return Statement(
        """UPDATE topics SET stale = stale + 1 WHERE id IN (
          SELECT topic_id FROM topic_members WHERE feed_id IN (SELECT value FROM json_each(?)))""",
        [feed_ids],
        name="mark topics stale",
    )
