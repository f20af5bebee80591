"""Statements that take back marks of many items at once (states.mark_shown), for one batch each.

What a mark changes is remembered before it: the items that become read, by feed. Items that are read since,
or by another mark, are taken out of that, so that to undo a mark makes no other item unread, in whichever
order marks are undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Result, Row, Statement
from rss_pipeline.storage.sql import number
from rss_pipeline.storage.subscriptions.chosen import Chosen, Shown
from rss_pipeline.storage.subscriptions.item_query import listed
from rss_pipeline.storage.subscriptions.item_states import settle

MOST_OF_A_FEED = 100_000
"""Items of one feed that can be undone: their numbers are one value. A feed with more is marked for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoable:
    """A mark that can be undone."""

    id: str
    items: int
    """The items that would be unread again."""
    until: datetime


def remember(
    user_id: str, id: str, shown: Shown, *, until: datetime, now: datetime, beside: Sequence[Chosen] = ()
) -> list[Statement]:
    """Remember what `mark_shown` is about to mark, and what is marked beside that; goes before it into the
    batch. The first statement gives `items` of each feed, how many were shown. What ended by `now` is
    forgotten."""
    table, params = shown.of(user_id)
    state = "t.user_id = ? AND t.feed_id = shown.feed_id"
    of_item, of_state = (listed("shown", each, of_one_feed=shown.scope.feed_id is not None) for each in "it")
    return [
        Statement(
            f"""{table} INSERT INTO undoable_marks (user_id, id, feed_id, until, read_up_to, items)
            SELECT ?, ?, marked.feed_id, ?, marked.read_up_to, json_group_array(marked.arrived) FROM (
              SELECT shown.feed_id, shown.read_up_to, i.arrived FROM shown
              CROSS JOIN items AS i INDEXED BY items_of_feed
                ON i.feed_id = shown.feed_id AND i.arrived > shown.read_up_to AND i.arrived <= shown.number
              WHERE NOT EXISTS (SELECT 1 FROM item_states AS t
                WHERE {state} AND t.arrived = i.arrived AND t.is_read = 1){of_item}
              UNION ALL SELECT shown.feed_id, shown.read_up_to, t.arrived FROM shown
              CROSS JOIN item_states AS t ON {state} AND t.arrived <= shown.number
              WHERE t.arrived <= shown.read_up_to AND t.is_read = 0{of_state}) AS marked
            GROUP BY marked.feed_id, marked.read_up_to HAVING count(*) <= {MOST_OF_A_FEED}
            RETURNING json_array_length(items) AS items""",
            [*params, user_id, id, instant(until), user_id, user_id],
            name="remember what is marked",
        ),
        *(_remember_beside(user_id, id, each, until=until) for each in beside),
        _take_out(
            user_id,
            f"""SELECT {number("v.value")} FROM undoable_marks AS m, json_each(m.items) AS v
            WHERE m.user_id = ? AND m.id = ?""",
            [user_id, id],
            """id <> ? AND feed_id IN (
              SELECT m.feed_id FROM undoable_marks AS m WHERE m.user_id = ? AND m.id = ?)""",
            [id, user_id, id],
        ),
        Statement(
            "DELETE FROM undoable_marks WHERE user_id = ? AND until <= ?",
            [user_id, instant(now)],
            name="forget marks that are for good",
        ),
    ]


def _remember_beside(user_id: str, id: str, chosen: Chosen, *, until: datetime) -> Statement:
    return Statement(
        f"""INSERT INTO undoable_marks (user_id, id, feed_id, until, read_up_to, items)
        SELECT s.user_id, ?, s.feed_id, ?, s.read_up_to, json_group_array(i.arrived)
        FROM {chosen.rows} CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        LEFT JOIN item_states AS t
          ON t.user_id = s.user_id AND t.feed_id = i.feed_id AND t.arrived = i.arrived
        WHERE coalesce(t.is_read, {number("i.arrived <= s.read_up_to")}) = 0
        GROUP BY s.user_id, s.feed_id, s.read_up_to
        ON CONFLICT (user_id, id, feed_id) DO UPDATE SET items = (
          SELECT json_group_array(v.value) FROM (
            SELECT {number("a.value")} AS value FROM json_each(undoable_marks.items) AS a
            UNION SELECT {number("b.value")} FROM json_each(excluded.items) AS b) AS v)""",
        [id, instant(until), chosen.names, user_id],
        name="remember what is marked beside",
    )


def keep_read(user_id: str, chosen: Chosen) -> Statement:
    """Take these items out of what can be undone: they are read, whatever becomes of the mark."""
    return _take_out(
        user_id,
        f"SELECT i.arrived FROM {chosen.rows}",
        [chosen.names],
        f"feed_id IN (SELECT i.feed_id FROM {chosen.rows})",
        [chosen.names],
    )


def _take_out(
    user_id: str, numbers: str, number_params: list[str], condition: str, params: list[str]
) -> Statement:
    return Statement(
        f"""UPDATE undoable_marks SET items = (
          SELECT json_group_array({number("v.value")}) FROM json_each(undoable_marks.items) AS v
          WHERE {number("v.value")} NOT IN ({numbers}))
        WHERE user_id = ? AND {condition}""",
        [*number_params, user_id, *params],
        name="keep what is read since",
    )


_OF_MARK = "u.user_id = ? AND u.id = ? AND u.until > ?"
_MARKED = f"""WITH marked AS MATERIALIZED (
  SELECT u.feed_id, u.read_up_to, {number("v.value")} AS arrived
  FROM undoable_marks AS u, json_each(u.items) AS v WHERE {_OF_MARK}),
touched AS MATERIALIZED (SELECT DISTINCT feed_id, read_up_to FROM marked)"""
"""The items of a mark, and the feeds that have any, each with the number that it had before."""


def undo(user_id: str, id: str, *, now: datetime) -> list[Statement]:
    """Make the items unread that a mark made read. The first statement gives `items`, how many these are; 0
    for a mark that is for good, or undone.

    The numbers of the feeds go back, and what else is read above them gets states: as many as before the
    mark, and those that are read since.
    """
    marked = [user_id, id, instant(now)]
    state = "t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived"
    insert = "INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read)"
    return [
        Statement(f"{_MARKED} SELECT count(*) AS items FROM marked", marked, name="count what is undone"),
        Statement(
            f"""{_MARKED} {insert} SELECT s.user_id, i.feed_id, i.arrived, i.id, 1
            FROM touched CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = touched.feed_id
            CROSS JOIN items AS i INDEXED BY items_of_feed
              ON i.feed_id = touched.feed_id AND i.arrived > touched.read_up_to AND i.arrived <= s.read_up_to
            WHERE i.arrived NOT IN (SELECT arrived FROM marked)
            ON CONFLICT (user_id, feed_id, arrived) DO UPDATE SET is_read = 1
              WHERE item_states.is_read IS NULL""",
            [*marked, user_id],
            name="keep the rest read",
        ),
        Statement(
            f"""{_MARKED} UPDATE subscriptions SET read_up_to = touched.read_up_to FROM touched
            WHERE subscriptions.user_id = ? AND subscriptions.feed_id = touched.feed_id
              AND touched.read_up_to < subscriptions.read_up_to""",
            [*marked, user_id],
            name="move numbers back",
        ),
        Statement(
            f"""{_MARKED} {insert} SELECT s.user_id, i.feed_id, i.arrived, i.id, 0
            FROM marked CROSS JOIN items AS i INDEXED BY items_of_feed
              ON i.feed_id = marked.feed_id AND i.arrived = marked.arrived
            CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
            WHERE i.arrived <= s.read_up_to
              OR EXISTS (SELECT 1 FROM item_states AS t WHERE {state} AND t.is_read = 1)
            ON CONFLICT (user_id, feed_id, arrived) DO UPDATE SET is_read = 0
              WHERE item_states.is_read IS NOT 0""",
            [*marked, user_id],
            name="mark undone items unread",
        ),
        *settle(user_id, f"SELECT u.feed_id FROM undoable_marks AS u WHERE {_OF_MARK}", marked, advance=True),
        Statement(
            "DELETE FROM undoable_marks WHERE user_id = ? AND id = ?", [user_id, id], name="forget a mark"
        ),
    ]


def remembered(result: Result, id: str, *, until: datetime) -> Undoable | None:
    """The mark by the result of the first statement of `remember`; None where it is about no item."""
    items = sum(int(count) for (count,) in result.columns("items"))
    return Undoable(id=id, items=items, until=datetime.fromisoformat(instant(until))) if items else None


def list_undoable(user_id: str, *, now: datetime) -> Statement:
    """A query for the marks of a user that can be undone, the last one first, for `undoable_marks`."""
    return Statement(
        """SELECT id, until, sum(json_array_length(items)) AS items FROM undoable_marks
        WHERE user_id = ? AND until > ? AND items <> '[]' GROUP BY id, until ORDER BY until DESC, id DESC""",
        [user_id, instant(now)],
        name="list marks that can be undone",
    )


def undoable_marks(result: Result) -> list[Undoable]:
    """The result of `list_undoable`."""
    return [_undoable(row) for row in result.rows]


def _undoable(row: Row) -> Undoable:
    return Undoable(id=row["id"], items=int(row["items"]), until=datetime.fromisoformat(row["until"]))
