"""Statements that mark items read, unread and starred, for one batch each; all may be repeated.

Items up to a subscription's number (`read_up_to`) are read, those above it are not; item_states has only the
exceptions. So a whole feed is marked by one row, and a state that says what the number says is deleted. The
number goes back only where a mark is undone (undo.py), and never beyond the newest item that is stored: what
comes later is unread.
"""

from collections.abc import Sequence
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Statement, Value
from rss_pipeline.storage.subscriptions.chosen import Chosen, Shown
from rss_pipeline.storage.subscriptions.item_query import listed

_STATE = "t.user_id = s.user_id AND t.feed_id = s.feed_id"


def mark_items(user_id: str, chosen: Chosen, *, is_read: bool) -> list[Statement]:
    """Mark these items read, or unread."""
    wanted = int(is_read)
    differing = Statement(
        f"""INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read)
        SELECT s.user_id, i.feed_id, i.arrived, i.id, {wanted}
        FROM {chosen.rows} CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        WHERE CAST(i.arrived <= s.read_up_to AS INTEGER) <> {wanted} OR EXISTS (SELECT 1 FROM item_states AS t
          WHERE t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived
            AND t.is_read = {1 - wanted})
        ON CONFLICT (user_id, feed_id, arrived) DO UPDATE SET is_read = excluded.is_read
          WHERE item_states.is_read IS NOT excluded.is_read""",
        [chosen.names, user_id],
        name="mark items read" if is_read else "mark items unread",
    )
    return [differing, *settle(user_id, *_feeds_of(chosen), advance=is_read)]


def mark_shown(user_id: str, shown: Shown) -> list[Statement]:
    """Mark all items read that were shown: those that came since stay unread, and those that are hidden."""
    table, params = shown.of(user_id)
    of_one_feed = shown.scope.feed_id is not None
    kept = Statement(
        f"""{table} UPDATE item_states SET is_read = 1 FROM shown
        WHERE item_states.user_id = ? AND item_states.feed_id = shown.feed_id
          AND item_states.arrived <= shown.number AND item_states.is_read = 0
          {listed("shown", "item_states", of_one_feed=of_one_feed)}""",
        [*params, user_id],
        name="mark kept items read",
    )
    moved = Statement(
        f"""{table} UPDATE subscriptions SET read_up_to = shown.number FROM shown
        WHERE subscriptions.user_id = ? AND subscriptions.feed_id = shown.feed_id
          AND shown.number > subscriptions.read_up_to""",
        [*params, user_id],
        name="mark feeds read",
    )
    condition, scope_params = shown.scope.of(user_id)
    feeds = f"SELECT s.feed_id FROM subscriptions AS s WHERE {condition}"
    hidden = [_keep_hidden(user_id, shown)] if listed("shown", "i", of_one_feed=of_one_feed) else []
    return [kept, *hidden, moved, *settle(user_id, feeds, scope_params, advance=True)]


def _keep_hidden(user_id: str, shown: Shown) -> Statement:
    """Unread items that no list shows stay unread below the number that is about to move over them."""
    table, params = shown.of(user_id)
    is_shown = listed("shown", "i", of_one_feed=shown.scope.feed_id is not None)
    return Statement(
        f"""{table} INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read)
        SELECT shown.user_id, i.feed_id, i.arrived, i.id, 0 FROM shown
        CROSS JOIN items AS i INDEXED BY items_of_feed
          ON i.feed_id = shown.feed_id AND i.arrived > shown.read_up_to AND i.arrived <= shown.number
        WHERE NOT (true{is_shown})
        ON CONFLICT (user_id, feed_id, arrived) DO UPDATE SET is_read = 0
          WHERE item_states.is_read IS NULL""",
        params,
        name="keep hidden items unread",
    )


def note_reading(user_id: str, chosen: Chosen, *, at: datetime) -> Statement:
    """Note the time in the feeds of these items that are unread: goes before `mark_items` into the batch."""
    return Statement(
        f"""UPDATE subscriptions SET last_read_at = ? WHERE user_id = ? AND feed_id IN (
          SELECT i.feed_id FROM {chosen.rows} CROSS JOIN subscriptions AS s
            ON s.user_id = ? AND s.feed_id = i.feed_id
          LEFT JOIN item_states AS t ON {_STATE} AND t.arrived = i.arrived
          WHERE coalesce(t.is_read, CAST(i.arrived <= s.read_up_to AS INTEGER)) = 0)""",
        [instant(at), user_id, chosen.names, user_id],
        name="note when items are read",
    )


def note_reading_of_shown(user_id: str, shown: Shown, *, at: datetime) -> Statement:
    """The same for the feeds with unread items among these; goes before `mark_shown` into the batch."""
    table, params = shown.of(user_id)
    state = "t.user_id = subscriptions.user_id AND t.feed_id = shown.feed_id"
    of_item, of_state = (listed("shown", each, of_one_feed=shown.scope.feed_id is not None) for each in "it")
    return Statement(
        f"""{table} UPDATE subscriptions SET last_read_at = ? FROM shown
        WHERE subscriptions.user_id = ? AND subscriptions.feed_id = shown.feed_id AND (
          EXISTS (SELECT 1 FROM item_states AS t
            WHERE {state} AND t.arrived <= shown.number AND t.is_read = 0{of_state})
          OR EXISTS (SELECT 1 FROM items AS i INDEXED BY items_of_feed
            WHERE i.feed_id = shown.feed_id AND i.arrived > shown.read_up_to AND i.arrived <= shown.number
              AND NOT EXISTS (SELECT 1 FROM item_states AS t
                WHERE {state} AND t.arrived = i.arrived AND t.is_read = 1){of_item}))""",
        [*params, instant(at), user_id],
        name="note when feeds are read",
    )


def star_items(user_id: str, chosen: Chosen, *, at: datetime) -> list[Statement]:
    """Give these items a star; one that has a star keeps the time of it."""
    return [
        Statement(
            f"""INSERT INTO item_states (user_id, feed_id, arrived, item_id, starred_at)
            SELECT s.user_id, i.feed_id, i.arrived, i.id, ?
            FROM {chosen.rows} CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
            WHERE i.arrived IS NOT NULL
            ON CONFLICT (user_id, feed_id, arrived) DO UPDATE SET starred_at = excluded.starred_at
              WHERE item_states.starred_at IS NULL""",
            [instant(at), chosen.names, user_id],
            name="star items",
        )
    ]


def unstar_items(user_id: str, chosen: Chosen) -> list[Statement]:
    """Take the star of these items."""
    taken = Statement(
        f"""UPDATE item_states SET starred_at = NULL
        WHERE (user_id, feed_id, arrived) IN (SELECT ?, i.feed_id, i.arrived FROM {chosen.rows})
          AND starred_at IS NOT NULL""",
        [user_id, chosen.names],
        name="unstar items",
    )
    return [taken, *settle(user_id, *_feeds_of(chosen), advance=False)]


def _feeds_of(chosen: Chosen) -> tuple[str, list[Value]]:
    return f"SELECT DISTINCT i.feed_id FROM {chosen.rows}", [chosen.names]


_FIRST_UNREAD = f"""SELECT i.arrived FROM items AS i
  WHERE i.feed_id = s.feed_id AND i.arrived > s.read_up_to AND NOT EXISTS (
    SELECT 1 FROM item_states AS t WHERE {_STATE} AND t.arrived = i.arrived AND t.is_read = 1)
  ORDER BY i.arrived LIMIT 1"""
# The number moves only over items that are read, so nothing is marked by it.
_READ_UP_TO = f"""SELECT s.feed_id, (SELECT max(t.arrived) FROM item_states AS t
    WHERE {_STATE} AND t.is_read = 1 AND t.arrived > s.read_up_to
      AND t.arrived < coalesce(({_FIRST_UNREAD}), 9e18)) AS number
  FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id IN ({{feeds}})"""
_SAYS_THE_SAME = """is_read = (SELECT CAST(item_states.arrived <= s.read_up_to AS INTEGER)
  FROM subscriptions AS s
  WHERE s.user_id = item_states.user_id AND s.feed_id = item_states.feed_id)"""


def settle(user_id: str, feeds: str, params: Sequence[Value], *, advance: bool) -> list[Statement]:
    """Statements that leave no state of these feeds that says nothing. `advance`: where all items above the
    number are read up to some item, the number moves there, so that who reads item by item has few states."""
    moved = Statement(
        f"""UPDATE subscriptions SET read_up_to = read.number
        FROM ({_READ_UP_TO.format(feeds=feeds)}) AS read
        WHERE subscriptions.user_id = ? AND subscriptions.feed_id = read.feed_id
          AND read.number > subscriptions.read_up_to""",
        [user_id, *params, user_id],
        name="move over read items",
    )
    among = f"user_id = ? AND feed_id IN ({feeds})"
    return [
        *([moved] if advance else []),
        Statement(
            f"""DELETE FROM item_states WHERE {among} AND starred_at IS NULL
            AND (is_read IS NULL OR {_SAYS_THE_SAME})""",
            [user_id, *params],
            name="delete states that say nothing",
        ),
        Statement(
            f"""UPDATE item_states SET is_read = NULL WHERE {among} AND starred_at IS NOT NULL
            AND {_SAYS_THE_SAME}""",
            [user_id, *params],
            name="leave only the star",
        ),
    ]
