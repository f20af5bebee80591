"""The state of a user, read for a backup: subscriptions, folders, read states and stars, by the ids of items.

Arrival numbers are not in it: a restored item has another one. Of the items of a subscription the read or
the unread ones are named, whichever are fewer, so that a backup stays small and is exact all the same.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.feature import UserRows
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backups.user_states import (
    IDS_OF_A_LINE,
    KeptMarks,
    KeptRows,
    KeptStars,
    KeptSubscription,
    Part,
    UserHead,
    user_rows,
)
from rss_pipeline.storage.database import Database, Row, Statement, one
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.subscriptions.item_query import unread

_ALWAYS_NAMED = 100
"""So many unread items are named without a look at how many are read."""
_FEEDS_AT_ONCE = 500


def read_state(database: Database, user_id: str, *, now: datetime) -> tuple[UserHead, Iterator[Part]] | None:
    """The head of a user's state and the rest of it, read as it is taken; None if there is no such user.

    What the user does meanwhile may be in it or not; it raises the version that the head does not have.
    """
    head, folders, feeds = database.batch([users.head(user_id), _folders(user_id), _subscriptions(user_id)])
    row = one(head)
    if row is None:
        return None
    kept = UserHead(
        id=user_id,
        name=row["name"],
        created_at=row["created_at"],
        taken_at=instant(now),
        version=int(row["state_version"]),
        preferences=json.loads(row["preferences"]),
        folders=tuple(row["name"] for row in folders.rows),
    )
    return kept, _rest(database, user_id, [_Counted.of(row) for row in feeds.rows])


@dataclass(frozen=True, slots=True)
class _Counted:
    subscription: KeptSubscription
    named: int
    """Items that are named, when they were counted."""

    @classmethod
    def of(cls, row: Row) -> "_Counted":
        unread, stored = int(row["unread"]), row["stored"]
        read = None if stored is None else int(stored) - unread
        rest_is_read = read is None or unread <= read
        kept = KeptSubscription(
            feed_id=row["feed_id"],
            url=row["url"],
            title=row["title"],
            folder=row["folder"],
            position=int(row["position"]),
            wished_interval=None if row["wished_interval"] is None else int(row["wished_interval"]),
            added_at=row["added_at"],
            known_until=row["last_success_at"] or "",
            rest_is_read=rest_is_read,
            last_read_at=row["last_read_at"],
            origin=row["origin"],
            full_text=row["full_text_after"] is not None,
            leads=bool(row["leads"]),
            requested_url=row["requested_url"],
        )
        return cls(kept, unread if rest_is_read or read is None else read)


def _rest(database: Database, user_id: str, counted: Sequence[_Counted]) -> Iterator[Part]:
    yield from (each.subscription for each in counted)
    for group in _groups(counted):
        rest_is_read = group[0].subscription.rest_is_read
        feeds = [[each.subscription.feed_id, each.subscription.known_until] for each in group]
        after = 0
        while True:
            rows = database.batch([_named(user_id, feeds, after, is_read=not rest_is_read)])[0].rows
            if rows:
                yield KeptMarks(not rest_is_read, tuple(row["id"] for row in rows))
            if len(rows) < IDS_OF_A_LINE:
                break
            after = int(rows[-1]["arrived"])
        if rest_is_read:
            # Stored by a visit that has not ended, and read already.
            late = database.batch([_read_late(user_id, feeds)])[0].rows
            for some in batched(late, IDS_OF_A_LINE):
                yield KeptMarks(True, tuple(row["id"] for row in some))
    after = 0
    while rows := database.batch([_stars(user_id, after)])[0].rows:
        yield KeptStars(tuple((row["item_id"], row["starred_at"]) for row in rows))
        after = int(rows[-1]["arrived"])
    for name, kept in user_rows().items():
        last = ""
        while values := database.batch([_rows(user_id, kept, last)])[0].columns(*kept.columns):
            yield KeptRows(name, tuple(values))
            last = values[-1][0]


def _groups(counted: Iterable[_Counted]) -> Iterator[list[_Counted]]:
    """Subscriptions with items that fit into a page together."""
    for rest_is_read in (True, False):
        group: list[_Counted] = []
        size = 0
        for each in (each for each in counted if each.subscription.rest_is_read == rest_is_read):
            if group and (size + each.named > IDS_OF_A_LINE // 2 or len(group) == _FEEDS_AT_ONCE):
                yield group
                group, size = [], 0
            group.append(each)
            size += each.named
        if group:
            yield group


def _folders(user_id: str) -> Statement:
    return Statement(
        "SELECT name FROM folders WHERE user_id = ? ORDER BY name", [user_id], name="read folders to back up"
    )


def _subscriptions(user_id: str) -> Statement:
    return Statement(
        f"""WITH mine AS MATERIALIZED (
          SELECT s.*, f.url, coalesce(f.fetch_url, f.url) AS requested_url, f.last_success_at,
            {unread(with_hidden=True)} AS unread
          FROM subscriptions AS s JOIN feeds AS f ON f.id = s.feed_id WHERE s.user_id = ?)
        SELECT *, CASE WHEN unread > {_ALWAYS_NAMED} THEN (
          SELECT count(*) FROM items AS i INDEXED BY items_of_feed
          WHERE i.feed_id = mine.feed_id AND i.arrived IS NOT NULL) END AS stored
        FROM mine ORDER BY feed_id""",
        [user_id],
        name="read subscriptions to back up",
    )


_MINE = """json_each(?) AS j
  CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = json_extract(j.value, '$[0]')"""
_STATE = "t.user_id = s.user_id AND t.feed_id = s.feed_id"


def _named(user_id: str, feeds: list[list[str]], after: int, *, is_read: bool) -> Statement:
    """A page of the items that are read, or unread; those that the number decides, and the exceptions."""
    above, below = ("<=", ">") if is_read else (">", "<=")
    wanted = int(is_read)
    params: list[Any] = [compact(feeds), user_id, after]
    return Statement(
        f"""SELECT i.arrived AS arrived, i.id AS id FROM {_MINE}
          CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id AND i.arrived > ?
        WHERE i.arrived {above} s.read_up_to AND NOT EXISTS (SELECT 1 FROM item_states AS t
          WHERE {_STATE} AND t.arrived = i.arrived AND t.is_read = {1 - wanted})
        UNION ALL SELECT t.arrived, t.item_id FROM {_MINE}
          CROSS JOIN item_states AS t ON {_STATE} AND t.arrived > ?
        WHERE t.is_read = {wanted} AND t.arrived {below} s.read_up_to
        ORDER BY 1 LIMIT {IDS_OF_A_LINE}""",
        [*params, *params],
        name="read marks to back up",
    )


def _read_late(user_id: str, feeds: list[list[str]]) -> Statement:
    return Statement(
        f"""SELECT i.id FROM {_MINE} CROSS JOIN items AS i INDEXED BY items_age
          ON i.feed_id = s.feed_id AND i.created_at > json_extract(j.value, '$[1]')
        WHERE coalesce((SELECT t.is_read FROM item_states AS t WHERE {_STATE} AND t.arrived = i.arrived),
          CAST(i.arrived <= s.read_up_to AS INTEGER)) = 1 ORDER BY i.arrived""",
        [compact(feeds), user_id],
        name="read late marks to back up",
    )


def _rows(user_id: str, kept: UserRows, after: str) -> Statement:
    key, *_ = kept.columns
    return Statement(
        f"""SELECT {", ".join(kept.columns)} FROM {kept.table} WHERE user_id = ? AND {key} > ?
        ORDER BY {key} LIMIT {IDS_OF_A_LINE}""",
        [user_id, after],
        name="read rows of a feature to back up",
    )


def _stars(user_id: str, after: int) -> Statement:
    return Statement(
        f"""SELECT arrived, item_id, starred_at FROM item_states INDEXED BY item_states_starred
        WHERE user_id = ? AND arrived > ? AND starred_at IS NOT NULL
        ORDER BY arrived LIMIT {IDS_OF_A_LINE}""",
        [user_id, after],
        name="read stars to back up",
    )
