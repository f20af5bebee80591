"""Marks of a user: items read, unread, starred; all that a list has shown; and such a mark undone.

Each function does its rows in one batch and answers with values; all may be repeated.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.batched import batched
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import read_failures_of
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.subscriptions import item_states as states
from rss_pipeline.storage.subscriptions import undo
from rss_pipeline.storage.subscriptions.chosen import ALL, MAX_CHOSEN, Chosen, Shown
from rss_pipeline.storage.subscriptions.item_lists import known_ids
from rss_pipeline.storage.subscriptions.listing import FeedRow, feed_rows, list_feeds
from rss_pipeline.storage.subscriptions.undo import Undoable

__all__ = ["Undoable"]

UNDONE_WITHIN = timedelta(hours=1)
"""The time in which a mark of many items can be undone."""

_SECOND = 1_000_000
_TIME_DIGITS = 14
_ID = re.compile(r"[0-9a-f]{30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemMarks:
    """The marks that items get; None leaves one as it is."""

    is_read: bool | None = None
    is_starred: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkResult:
    """The result of `mark_shown`."""

    undoable: Undoable | None
    """The mark, to be undone; None where it marked nothing."""
    feed: FeedRow | None
    """The feed afterwards, where one was marked; None also for one that the user does not subscribe to."""
    read_failures: frozenset[int] | None = None
    """The numbers of read failures, where all feeds were marked and the user wants to see them."""


def mark_items(caller: Caller, ids: Sequence[str], marks: ItemMarks) -> frozenset[str]:
    """Mark these items; those of them that are items of the user's feeds. The others are left out."""
    # Postgres writes no row twice in one statement.
    ids = list(dict.fromkeys(ids))
    *_, found = caller.write(*_statements(caller, Chosen.by_ids(ids), marks), known_ids(caller.user_id, ids))
    return frozenset(row["id"] for row in found.rows)


def mark_numbers(caller: Caller, numbers: Sequence[int], marks: ItemMarks) -> None:
    """Mark the items with these arrival numbers, at most MAX_CHOSEN; unknown ones are left out."""
    caller.write(*_statements(caller, Chosen.by_numbers(numbers), marks))


def mark_shown(caller: Caller, shown: Shown, *, beside: Sequence[int] = ()) -> MarkResult:
    """Mark all items read that were shown, and those with these arrival numbers; what came since stays
    unread. It can be undone for UNDONE_WITHIN."""
    user_id, now = caller.user_id, caller.clock()
    until = now + UNDONE_WITHIN
    # Marks of the same second are listed in their order.
    id = f"{int(now.timestamp() * _SECOND):0{_TIME_DIGITS}x}{secrets.token_hex(8)}"
    feed_id = shown.scope.feed_id
    chosen = [Chosen.by_numbers(some) for some in batched(beside, MAX_CHOSEN)]
    remembered, *_, after = caller.write(
        *undo.remember(user_id, id, shown, until=until, now=now, beside=chosen),
        states.note_reading_of_shown(user_id, shown, at=now),
        *states.mark_shown(user_id, shown),
        *(statement for each in chosen for statement in states.mark_items(user_id, each, is_read=True)),
        users.preferences(user_id) if feed_id is None else list_feeds(user_id, feed_id),
    )
    return MarkResult(
        undoable=undo.remembered(remembered, id, until=until),
        feed=None if feed_id is None else next(iter(feed_rows(after)), None),
        read_failures=read_failures_of(after.values[0][0]) if shown.scope == ALL else None,
    )


def undoable(user_id: str, *, now: datetime) -> Query[Sequence[Undoable]]:
    """The marks that can be undone, the last one first."""
    return Query.of(undo.list_undoable(user_id, now=now), undo.undoable_marks)


def undo_mark(caller: Caller, id: str) -> int:
    """Make the items unread again that `mark_shown` marked, but for those that were read since; how many
    these are. 0 if the mark is undone already, or its time is over: then nothing changes."""
    found, *_ = caller.write(*undo.undo(caller.user_id, id, now=caller.clock()))
    return int(found.rows[0]["items"])


def is_of_last_hour(caller: Caller, id: str) -> bool:
    """True for the id of a mark within UNDONE_WITHIN: it can be undone, or is undone already."""
    if _ID.fullmatch(id) is None:
        return False
    age = int(caller.clock().timestamp() * _SECOND) - int(id[:_TIME_DIGITS], 16)
    return 0 <= age < UNDONE_WITHIN.total_seconds() * _SECOND


def mark_failures(caller: Caller, read: Sequence[int]) -> None:
    """Replace the numbers of the failures of feeds that the user has read."""
    caller.write(users.put_read_failures(caller.user_id, read))


def _statements(caller: Caller, chosen: Chosen, marks: ItemMarks) -> list[Statement]:
    user_id, found = caller.user_id, list[Statement]()
    if marks.is_read:
        found.append(states.note_reading(user_id, chosen, at=caller.clock()))
    if marks.is_read is not None:
        found += states.mark_items(user_id, chosen, is_read=marks.is_read)
    if marks.is_read:
        found.append(undo.keep_read(user_id, chosen))
    if marks.is_starred:
        found += states.star_items(user_id, chosen, at=caller.clock())
    elif marks.is_starred is not None:
        found += states.unstar_items(user_id, chosen)
    return found
