"""Unread items of a user's feeds: exact, from indexes alone.

The number of items above a subscription's number, less those that are read above it, and those that are kept
unread below it: as many rows are looked at as items are unread, or have a state.
"""

from typing import NamedTuple

from rss_pipeline.storage.database import Result, Statement

UNREAD = """((SELECT count(*) FROM items AS i INDEXED BY items_of_feed
    WHERE i.feed_id = s.feed_id AND i.arrived > s.read_up_to)
  + coalesce((SELECT sum(CASE t.is_read WHEN 1 THEN -CAST(t.arrived > s.read_up_to AS INTEGER)
      WHEN 0 THEN CAST(t.arrived <= s.read_up_to AS INTEGER) ELSE 0 END)
    FROM item_states AS t WHERE t.user_id = s.user_id AND t.feed_id = s.feed_id), 0))"""
"""The unread items of `subscriptions AS s`."""
NEWEST = """coalesce((SELECT max(i.arrived) FROM items AS i INDEXED BY items_of_feed
  WHERE i.feed_id = s.feed_id), 0)"""
"""The arrival number of the newest item of `subscriptions AS s`, 0 for none: what a client that lists the
feed has seen, to be passed to `mark_read_up_to`."""


class UnreadCount(NamedTuple):
    """The unread items of one feed."""

    feed_id: str
    folder: str | None
    unread: int
    newest: int
    """The arrival number of its newest item, read or not; 0 for none."""


def count_unread(user_id: str) -> Statement:
    """A query for the unread items of all feeds of a user, for `unread_counts`."""
    return Statement(
        f"""SELECT s.feed_id, s.folder, {UNREAD} AS unread, {NEWEST} AS newest
        FROM subscriptions AS s WHERE s.user_id = ? ORDER BY s.feed_id""",
        [user_id],
        name="count unread items",
        is_kept=True,
    )


def unread_counts(result: Result) -> list[UnreadCount]:
    """The result of `count_unread`, by feed id; feeds without unread items too."""
    return list(map(UnreadCount._make, result.columns(*UnreadCount._fields)))


def count_items(user_id: str) -> Statement:
    """A query for `n`, all items of the user's feeds: an index entry is read of each."""
    return Statement(
        """SELECT count(*) AS n FROM subscriptions AS s
        CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id
        WHERE s.user_id = ? AND i.arrived IS NOT NULL""",
        [user_id],
        name="count items",
        is_kept=True,
    )


def count_all_starred(user_id: str) -> Statement:
    """A query for `n`, all items to which the user has given a star."""
    return Statement(
        """SELECT count(*) AS n FROM item_states INDEXED BY item_states_starred
        WHERE user_id = ? AND starred_at IS NOT NULL""",
        [user_id],
        name="count stars",
        is_kept=True,
    )


def count_starred(user_id: str, feed_id: str) -> Statement:
    """A query for `n`, the items of a feed to which the user has given a star."""
    return Statement(
        "SELECT count(*) AS n FROM item_states WHERE user_id = ? AND feed_id = ? AND starred_at IS NOT NULL",
        [user_id, feed_id],
        name="count stars of a feed",
    )
