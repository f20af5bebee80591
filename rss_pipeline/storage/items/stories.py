"""Stored stories: the items of several feeds on one event, and why they stand together.

Which items do is decided by features/stories; nobody else writes them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.sql import compact

_STORIES_AT_ONCE = 200
STORY = """(SELECT m.story_id FROM story_members AS m WHERE m.item_id = {}.id AND EXISTS (
    SELECT 1 FROM story_members AS o WHERE o.story_id = m.story_id AND o.item_id <> m.item_id))"""
"""The name of the story of an item of this table; NULL for none: for one by itself, too, as a user makes."""
LATER = 2**52
"""Added to the arrival number of an item without a full text: it leads no story that has another one."""
REPLACED = 2**53
"""Added to the place of an item that a newer one of its feed replaces: it leads no story that has another."""
JOINS = """coalesce({0}.joins, '[["' || json_extract({0}.evidence, '$.nearest') || '","'
  || json_extract({0}.evidence, '$.kind') || '"]]')"""
"""The joins of a row of story_members, a JSON list (schema.sql); NULL for an older row that has none."""


JOINT = ""
"""In place of an id, in the one join of an item that stands with several together alone."""


def names(joins: str, id: str) -> str:
    """The condition that one of these joins is with this item alone."""
    return f"coalesce(instr({joins}, '[\"' || {id} || '\"') > 0, false)"


def is_named(id: str, joins: str | None) -> bool:
    """True if one of these joins is with this item alone."""
    return f'["{id}"' in (joins or "")


def paired(one: str, other: str) -> str:
    """The condition that two rows of story_members are a stored pair: they stand together by themselves."""
    return (
        f"({names(JOINS.format(one), f'{other}.item_id')} OR {names(JOINS.format(other), f'{one}.item_id')})"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJoin:
    """A reason for which an item stands with earlier ones."""

    kind: str
    """`event`, for a copy `link`, `text` or `retitled`, `reissue`: it replaces one of its own feed."""
    items: tuple[str, ...]
    """The id of one item, or of several that only together are a reason."""


def stored_joins(text: str | None) -> tuple[StoredJoin, ...]:
    """The joins of a member (`JOINS`)."""
    return tuple(
        StoredJoin(kind=kind, items=tuple(ids) if id == JOINT else (id,))
        for id, kind, *ids in json.loads(text or "[]")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """An item of a story."""

    item_id: str
    feed_id: str
    title: str | None
    link: str | None
    arrived_at: datetime
    kind: str
    """`first`, `event`, for a copy `link`, `text` or `retitled`, `reissue`: it replaces one of its own feed;
    `operator`: a command put it here."""
    nearest: str | None
    """The item with which it was compared and that is most like it."""
    score: float | None
    names: tuple[str, ...]
    """Names of both texts."""
    numbers: tuple[str, ...]
    """Numbers of both texts."""
    version: int
    """The version of the method that decided it."""
    joins: tuple[StoredJoin, ...]
    """The earlier members with which it stands by itself: a reader who has none of these in their feeds sees
    it apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStory:
    """A story of two items and more."""

    id: str
    """Stable: the item that began it, mostly."""
    members: tuple[StoredMember, ...]
    """The one that leads it first."""
    updated_at: datetime
    """The arrival of its newest member."""


def stored_stories(
    database: Database, *, since: datetime, until: datetime | None = None
) -> Iterator[StoredStory]:
    """The stories with a member that came in from `since` on, and before `until`, by id."""
    lowest = int(since.timestamp() * 1_000_000)
    highest = 2**53 if until is None else int(until.timestamp() * 1_000_000)
    after = ""
    while True:
        ids = [
            row["story_id"]
            for row in database.query(
                f"""SELECT DISTINCT story_id FROM story_members
                WHERE story_id > ? AND arrived >= ? AND arrived < ?
                ORDER BY story_id LIMIT {_STORIES_AT_ONCE}""",
                [after, lowest, highest],
                name="find stories",
            ).rows
        ]
        yield from stories_by_id(database, ids)
        if len(ids) < _STORIES_AT_ONCE:
            return
        after = ids[-1]


def stories_by_id(database: Database, ids: Sequence[str]) -> list[StoredStory]:
    """The stories with these ids, by id; one that has a single member left is none."""
    if not ids:
        return []
    rows = database.query(
        f"""SELECT m.story_id, m.item_id, m.feed_id, m.arrived, m.evidence, m.version, i.title, i.link,
          {JOINS.format("m")} AS joins
        FROM json_each(?) AS j CROSS JOIN story_members AS m ON m.story_id = j.value
        CROSS JOIN items AS i ON i.id = m.item_id ORDER BY m.story_id, m.lead""",
        [compact(list(ids))],
        name="read stories",
    ).rows
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["story_id"], []).append(row)
    return [_story(id, members) for id, members in grouped.items() if len(members) > 1]


def story_of(database: Database, item_id: str) -> StoredStory | None:
    """The story of an item; None where it stands alone."""
    rows = database.query(
        "SELECT story_id FROM story_members WHERE item_id = ?", [item_id], name="find the story of an item"
    ).rows
    return next(iter(stories_by_id(database, [rows[0]["story_id"]])), None) if rows else None


def story_named(database: Database, start: str) -> StoredStory | None:
    """The story with this name, or the one whose name begins so: its first item may be gone."""
    rows = database.query(
        """SELECT DISTINCT story_id FROM story_members WHERE story_id >= ? AND story_id < ?
        ORDER BY story_id LIMIT 2""",
        [start, f"{start}~~"],
        name="find a story by its name",
    ).rows
    is_one = len(rows) == 1 or (rows and rows[0]["story_id"] == start)
    return next(iter(stories_by_id(database, [rows[0]["story_id"]])), None) if is_one and start else None


def _story(id: str, rows: Sequence[Row]) -> StoredStory:
    members = tuple(map(_member, rows))
    return StoredStory(id=id, members=members, updated_at=max(each.arrived_at for each in members))


def _member(row: Row) -> StoredMember:
    evidence: dict[str, Any] = json.loads(row["evidence"] or "{}")
    return StoredMember(
        item_id=row["item_id"],
        feed_id=row["feed_id"],
        title=row["title"],
        link=row["link"],
        arrived_at=datetime.fromtimestamp(int(row["arrived"]) / 1_000_000, UTC),
        kind=evidence.get("kind", "first"),
        nearest=evidence.get("nearest"),
        score=evidence.get("score"),
        names=tuple(evidence.get("names", ())),
        numbers=tuple(evidence.get("numbers", ())),
        version=int(row["version"]),
        joins=stored_joins(row["joins"]),
    )
