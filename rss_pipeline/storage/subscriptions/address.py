"""The address of a feed that a user changes: the condition, and the statements.

Which address may be one, and whose it is now, is decided in reader; the addresses of feeds.yaml are
written by storage.feeds.registered.
"""

from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import bucket_of
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.feeds.holds import leave_address
from rss_pipeline.storage.feeds.predicates import UNUSED
from rss_pipeline.storage.feeds.registered import OF_OLD_ADDRESS
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.refresh.new_addresses import NOT_OWNER, give_turn_anew, hold_until_turn
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.stale import mark_stale

_OTHERS = "EXISTS (SELECT 1 FROM subscriptions AS o WHERE o.feed_id = feeds.id AND o.user_id <> ?)"
_MAY_CHANGE = f"""(feeds.listed = 0 AND (NOT {NOT_OWNER} OR NOT {_OTHERS})
  AND EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.feed_id = feeds.id AND s.user_id = ?)
  AND NOT EXISTS (SELECT 1 FROM feeds AS f WHERE f.url = ?))"""
"""The user may change the address of this feed, and no feed has the new one. Binds the user three times, and
the new URL."""
_FORGOTTEN = ", ".join(
    f"{column} = {value}"
    for column, value in {
        "fetch_url": "NULL",
        "move_url": "NULL",
        "move_since": "NULL",
        "answered_url": "NULL",
        "items_listed": "NULL",
        "not_before": "NULL",
        **OF_OLD_ADDRESS,
    }.items()
)
_REASON = "it has another address"


def look_at_address(user_id: str, feed_id: str) -> Statement:
    """A query for `url`, `listed`, `has_others` and `is_owner`: one row if the user subscribes to this feed.
    `has_others`: so do others; `is_owner`: the user is the owner of the installation."""
    return Statement(
        f"""SELECT feeds.url, feeds.listed, {_OTHERS} AS has_others, NOT {NOT_OWNER} AS is_owner
        FROM subscriptions AS s CROSS JOIN feeds ON feeds.id = s.feed_id
        WHERE s.user_id = ? AND s.feed_id = ?""",
        [user_id, user_id, user_id, feed_id],
        name="look at the address of a feed",
    )


def change_address(user_id: str, feed_id: str, *, url: str, host: str, now: datetime) -> list[Statement]:
    """Statements that give a feed another URL, as far as its user may do that; the one named CHANGE changes
    one row then. The feed is due, and for a user with many new addresses it waits for its turn.

    Its items, subscriptions and backups stay. Nothing of the old address holds for it any more. A feed that
    nobody uses makes room for it: its items stay until it is removed, and no one can name it.
    """
    may = [user_id, user_id, user_id, url]
    return [
        Statement(
            f"UPDATE feeds SET url = url || '#' || id WHERE url = ? AND {UNUSED}",
            [url],
            name="free the address of an unused feed",
        ),
        *give_turn_anew(user_id, feed_id, condition=_MAY_CHANGE, params=may, now=now),
        *mark_stale(compact([feed_id])),
        *leave_address(f"SELECT id FROM feeds WHERE id = ? AND {_MAY_CHANGE}", [feed_id, *may]),
        Statement(
            """UPDATE users SET state_version = state_version + 1 WHERE id <> ? AND id IN (
              SELECT user_id FROM subscriptions WHERE feed_id = ?)""",
            [user_id, feed_id],
            name="note a changed address",
        ),
        Statement(
            f"""UPDATE feeds SET url = ?, host = ?, bucket = ?, next_fetch_at = ?, schedule_reason = ?,
              {_FORGOTTEN} WHERE id = ? AND {_MAY_CHANGE}""",
            [url, host, bucket_of(host), instant(now), _REASON, feed_id, *may],
            name=CHANGE,
        ),
        *hold_until_turn(user_id, [feed_id], now=now, has_new_address=True),
    ]


def restore_address(feed: NewFeed, *, only_where: str, now: datetime) -> list[Statement]:
    """Statements that give a feed, if this condition holds, the address to which a user had changed it.

    A feed for which it holds as well makes room for it, as for `change_address`.
    """
    return [
        Statement(
            f"""UPDATE feeds SET url = url || '#' || id WHERE url = ? AND id <> ? AND {only_where}
              AND EXISTS (SELECT 1 FROM feeds AS f WHERE f.id = ? AND f.listed = 0)""",
            [feed.url, feed.id, feed.id],
            name="free an address that is restored",
        ),
        Statement(
            f"""UPDATE feeds SET url = ?, host = ?, bucket = ?, next_fetch_at = ?, schedule_reason = ?,
              {_FORGOTTEN} WHERE id = ? AND {only_where}
              AND NOT EXISTS (SELECT 1 FROM feeds AS f WHERE f.url = ?)""",
            [feed.url, feed.host, bucket_of(feed.host), instant(now), _REASON, feed.id, feed.url],
            name="restore the address of a feed",
        ),
    ]


CHANGE = "change the address of a feed"
