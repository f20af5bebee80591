"""Bytes of new backups of a day, by user: a feed counts to its first subscriber, one of feeds.yaml to none.

What they limit is pipeline.session.backup_budget's.
"""

from collections.abc import Iterable, Mapping

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.sql import compact

_IS_FIRST = """NOT EXISTS (SELECT 1 FROM subscriptions AS o WHERE o.feed_id = s.feed_id
    AND (o.added_at < s.added_at OR (o.added_at = s.added_at AND o.user_id < s.user_id)))"""


def first_subscribers(database: Database, feed_ids: Iterable[str]) -> Mapping[str, str]:
    """The user of each of these feeds to whom it counts."""
    rows = database.query(
        f"""SELECT s.feed_id, s.user_id FROM json_each(?) AS j
        CROSS JOIN feeds AS f ON f.id = j.value CROSS JOIN subscriptions AS s ON s.feed_id = f.id
        WHERE f.listed = 0 AND {_IS_FIRST}""",
        [compact(sorted(feed_ids))],
        name="find first subscribers",
    ).rows
    return {row["feed_id"]: row["user_id"] for row in rows}


def backup_bytes(database: Database, user_ids: Iterable[str], *, day: str) -> Mapping[str, int]:
    """The bytes of these users' new backups on a day, `YYYY-MM-DD`, as far as visits are closed."""
    wanted = sorted(user_ids)
    rows = database.query(
        f"""SELECT s.user_id, sum(f.day_backup_bytes) AS bytes FROM json_each(?) AS j
        CROSS JOIN subscriptions AS s ON s.user_id = j.value CROSS JOIN feeds AS f ON f.id = s.feed_id
        WHERE f.listed = 0 AND f.counted_day = ? AND f.day_backup_bytes > 0 AND {_IS_FIRST}
        GROUP BY s.user_id""",
        [compact(wanted), day],
        name="count bytes of users' backups",
    ).rows
    return {**dict.fromkeys(wanted, 0), **{row["user_id"]: int(row["bytes"]) for row in rows}}
