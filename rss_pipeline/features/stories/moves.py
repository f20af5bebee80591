"""An operator's moves, for all users: an item apart from its story, two stories together, and the last move
taken back.

Each move is an object among the backups, `state/stories/{number}.json`, with ids alone. It is noted in the
writer's row before the object is put, so that the next one who takes the lease completes what a killed
process began. After a restore, and for items that a replay brings back, moves are made again, each behind the
items that it is of (`Earlier`).
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.stories import sql
from rss_pipeline.features.stories.lease import Lease, StoriesBusy, hold, member
from rss_pipeline.features.stories.sql import Item, Member, Moved, Standing
from rss_pipeline.features.stories.window import Window
from rss_pipeline.features.stories.window_file import load, save
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import compact

logger = logging.getLogger(__name__)

PREFIX = "state/stories/"
_ALONE = "{}~"
_FORMAT = "rss_pipeline move of stories"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Items that moved, with their feeds, and those of the story that they left or came to."""

    number: int = 0
    """The order of moves: the instant in microseconds, or more."""
    story: str
    """The story to which they moved; a new one where they were set apart."""
    is_apart: bool
    moved: Mapping[str, tuple[str, str]]
    """By item, its feed and the story that it was in before."""
    others: Mapping[str, str]
    """By item, its feed."""

    @property
    def key(self) -> str:
        return _key(self.number)

    def body(self) -> bytes:
        known = {name: getattr(self, name) for name in ("number", "story", "is_apart", "moved", "others")}
        return compact({"format": _FORMAT, "format_version": 1, **known}).encode()

    @classmethod
    def read(cls, body: bytes) -> Self:
        """The inverse of `body`.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is none.
        """
        known: dict[str, Any] = json.loads(body)
        if known["format"] != _FORMAT or known["format_version"] != 1:
            raise ValueError("it is no move, or of a newer version")
        return cls(
            number=int(known["number"]),
            story=str(known["story"]),
            is_apart=bool(known["is_apart"]),
            moved={id: (str(feed), str(before)) for id, (feed, before) in known["moved"].items()},
            others={id: str(feed) for id, feed in known["others"].items()},
        )


def _key(number: int) -> str:
    return f"{PREFIX}{number:017}.json"


def load_move(objects: ObjectStore, key: str) -> Move | None:
    """The move of a key; None where there is none that can be read."""
    found = objects.get(key)
    try:
        return None if found is None else Move.read(found[0])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("%s is left aside: %s", key, error)
        return None


def list_moves(objects: ObjectStore) -> Iterator[Move]:
    """All moves, in their order."""
    return (move for info in objects.list(PREFIX) if (move := load_move(objects, info.key)) is not None)


# The acts.


def split(database: Database, objects: ObjectStore, path: Path, item_id: str) -> bool:
    """Take an item out of its story, for good and for everybody; False if it is in none. `path` is the
    window's file.

    Raises:
        StoriesBusy: another process is writing stories.
    """
    with hold(database, sql.ends(database)) as lease:
        mend(lease, objects, path)
        story, members = _story(database, item_id)
        # One that is not decided yet stands alone.
        if story is None or len(members) < 2 or members[item_id].story is None:
            return False
        moved = {item_id: (members[item_id].feed_id, story)}
        others = {id: each.feed_id for id, each in members.items() if id != item_id}
        _say(
            lease,
            objects,
            path,
            Move(story=_ALONE.format(item_id), is_apart=True, moved=moved, others=others),
        )
    return True


def join(database: Database, objects: ObjectStore, path: Path, item_id: str, other_id: str) -> bool:
    """Put the story of another item, or the item, into the story of this one; False if one is not there, or
    they are together.

    Raises:
        StoriesBusy: another process is writing stories.
    """
    with hold(database, sql.ends(database)) as lease:
        mend(lease, objects, path)
        story, others = _story(database, item_id)
        theirs, moved = _story(database, other_id)
        if not others or not moved or (story or item_id) == (theirs or other_id):
            return False
        _say(
            lease,
            objects,
            path,
            Move(
                story=story or item_id,
                is_apart=False,
                moved={id: (each.feed_id, theirs or id) for id, each in moved.items()},
                others={id: each.feed_id for id, each in others.items()},
            ),
        )
    return True


def undo(database: Database, objects: ObjectStore, path: Path) -> Move | None:
    """Take the last move back, with what has followed it since, and return it; None where there is none.

    Raises:
        StoriesBusy: another process is writing stories.
    """
    with hold(database, sql.ends(database)) as lease:
        mend(lease, objects, path)
        last = max(list_moves(objects), key=lambda move: move.number, default=None)
        if last is not None:
            lease.commit(moving=-last.number)
            _take_back(lease, objects, path, last)
    return last


def _story(database: Database, item_id: str) -> tuple[str | None, dict[str, Standing]]:
    """The story of an item, None where it is in none, and its members, or the item alone; no member where it
    is not stored. An item that went and came again, and is not decided yet, is of the story of its name: the
    next decision puts it there."""
    found = sql.standing(database, [item_id])
    if not found:
        return None, found
    decided = found[item_id].story
    members = sql.members_of(database, decided or item_id)
    if decided is None and not {*members} - {item_id}:
        return None, found
    return decided or item_id, {**found, **sql.standing(database, members)}


def _say(lease: Lease, objects: ObjectStore, path: Path, move: Move) -> None:
    ends = sql.ends(lease.database)
    now = int(datetime.fromisoformat(ends.now).timestamp()) * 1_000_000
    move = replace(move, number=max(now, lease.writer.last_move + 1))
    lease.commit(moving=move.number)
    objects.put(move.key, move.body(), content_type="application/json")
    try:
        _complete(lease, path, move)
    except StoriesBusy:
        # This took longer than a lease: whoever has it now has made the move, or left it aside.
        if sql.ends(lease.database).writer.last_move != move.number:
            objects.delete_many([move.key])
        raise


def mend(lease: Lease, objects: ObjectStore, path: Path) -> None:
    """Complete the move that a killed process had begun; one that is not among the backups never was."""
    number = lease.writer.moving
    if number == 0:
        return
    move = load_move(objects, _key(abs(number)))
    if move is None:
        lease.commit(moving=0)
    elif number > 0:
        _complete(lease, path, move)
    else:
        _take_back(lease, objects, path, move)


def _complete(lease: Lease, path: Path, move: Move) -> None:
    _store(lease, path, *_made(lease.database, [move]), moving=0, last_move=move.number)


def _take_back(lease: Lease, objects: ObjectStore, path: Path, move: Move) -> None:
    database = lease.database
    standing = sql.standing(database, [*move.moved])
    stories = {each.story for each in standing.values() if each.story is not None}
    members = {id for story in stories for id in sql.members_of(database, story)}
    standing |= sql.standing(database, sorted(members))
    before = {id: story for id, (_, story) in move.moved.items()}
    back = []
    for id, each in sorted(standing.items(), key=lambda one: one[1].arrived):
        evidence: dict[str, Any] = json.loads(each.evidence or "{}")
        # What came since and is like one of them goes with it.
        before.setdefault(id, before.get(evidence.get("nearest", ""), ""))
        if before[id] and each.story not in (None, before[id]):
            was = evidence.get("was") if id in move.moved else evidence
            back.append(
                Moved(item_id=id, story_id=before[id], was=each.story, evidence=compact(was) if was else None)
            )
    _store(lease, path, [], back)
    objects.delete_many([move.key])
    lease.commit(moving=0)


def _store(lease: Lease, path: Path, members: Sequence[Member], moved: Sequence[Moved], **more: Any) -> None:
    """Move these, in the window's file too: one that was not brought up to date is made anew."""
    window = load(path, database=lease.window_of)
    lease.commit(members, moved, **more)
    if window is not None and moved:
        for each in moved:
            window.move(each.item_id, each.story_id)
        try:
            save(window, path, database=lease.window_of)
        except DatabaseUnavailable as error:
            logger.warning("the move is made, and the next poll takes longer: %s", error)


# Moves made again, and what goes with items and feeds.


def _made(database: Database, moves: Sequence[Move], *, since: int = 0) -> tuple[list[Member], list[Moved]]:
    """The rows after these moves, of items that arrived after `since`; those that stand alone get a row
    first."""
    ids = {id for move in moves for id in (*move.moved, *move.others)}
    standing = sql.standing(database, sorted(ids))
    now = {id: (each.story, each.evidence) for id, each in standing.items()}
    for move in moves:
        story = move.story
        if not move.is_apart:
            # It may have another name by now.
            other = next((id for id in move.others if id in now), None)
            story = story if other is None else now[other][0] or other
        for id in move.moved:
            is_new = id in now and standing[id].arrived > since
            before, evidence = now.get(id, (None, None))
            # What stands alone is apart already.
            if not is_new or before == story or (before is None and move.is_apart):
                continue
            kind = "first" if move.is_apart else "operator"
            now[id] = story, compact({"kind": kind, "was": json.loads(evidence or "null")})
            if story in now and now[story][0] is None:
                now[story] = story, None
    moved = [
        Moved(item_id=id, story_id=story, was=standing[id].story, evidence=evidence)
        for id, (story, evidence) in now.items()
        if story is not None and story != standing[id].story
    ]
    alone = [each.item_id for each in moved if standing[each.item_id].story is None]
    texts = sql.entries(database, alone) if alone else {}
    return [member(id, id, id, len(texts[id].text)) for id in alone if id in texts], moved


@dataclass(slots=True)
class Earlier:
    """The moves that are made again, of items that came back: each behind all the items that it is of."""

    lease: Lease
    last: int
    """The number of the last one."""
    due: list[tuple[datetime, Move]] = field(default_factory=list)

    @classmethod
    def of(cls, lease: Lease, objects: ObjectStore) -> Self:
        """All moves."""
        moves = [*list_moves(objects)]
        ids = {id for move in moves for id in (*move.moved, *move.others)}
        standing = sql.standing(lease.database, sorted(ids)) if ids else {}
        earlier = cls(lease, max((each.number for each in moves), default=0))
        latest = datetime.min.replace(tzinfo=UTC)
        for move in moves:
            said_at = datetime.fromtimestamp(move.number / 1_000_000, UTC)
            fetched = [
                at
                for id in (*move.moved, *move.others)
                if id in standing and (at := from_instant(standing[id].fetched_at)) is not None
            ]
            # A document that has an item again may be of a later time than the move.
            latest = max(latest, said_at, *fetched)
            earlier.due.append((latest, move))
        return earlier

    def part(self, items: list[Item]) -> list[Item]:
        """The first of these items, behind none of which a move comes."""
        if not self.due:
            return items
        at, _ = self.due[0]
        return items[: next((n for n, each in enumerate(items) if each.fetched_at > at), len(items))]

    def make(self, window: Window, *, before: datetime | None = None) -> bool:
        """Make the moves that come before an item of that instant; all of them, without one. True if an item
        moved."""
        moves = []
        while self.due and (before is None or self.due[0][0] < before):
            moves.append(self.due.pop(0)[1])
        if not moves:
            return False
        # An older copy of the database may have been put back, which does not know all of them.
        since = 0 if self.lease.writer.is_restored else self.lease.writer.arrived
        members, moved = _made(self.lease.database, moves, since=since)
        if moved:
            self.lease.commit(members, moved)
        for each in moved:
            window.move(each.item_id, each.story_id)
        return bool(moved)

    def end(self) -> dict[str, Any]:
        """The fields of the writer after all of them."""
        return {"is_restored": False, "last_move": max(self.lease.writer.last_move, self.last)}


def forget_moves(objects: ObjectStore, feed_id: str) -> Mapping[str, str]:
    """Take the items of a feed that is forgotten out of the moves."""
    refused: dict[str, str] = {}
    for move in list_moves(objects):
        left = replace(
            move,
            moved={id: each for id, each in move.moved.items() if each[0] != feed_id},
            others={id: feed for id, feed in move.others.items() if feed != feed_id},
        )
        if left != move:
            refused |= _put_or_delete(objects, left)
    return refused


def _put_or_delete(objects: ObjectStore, move: Move) -> Mapping[str, str]:
    """Put what is left of a move, if it says anything still."""
    if move.moved and (move.others or not move.is_apart):
        objects.put(move.key, move.body(), content_type="application/json")
        return {}
    return objects.delete_many([move.key])


def clean_moves(
    database: Database, objects: ObjectStore, settings: Settings, now: datetime
) -> Mapping[str, str]:
    """Remove the moves of which no item is stored any more, and none can come back from the backups."""
    before = int((now - timedelta(days=settings.backup_days)).timestamp()) * 1_000_000
    # A database that was lost and is not restored yet knows none.
    before = min(before, sql.ends(database).writer.last_move + 1)
    gone = [
        move.key
        for move in list_moves(objects)
        if move.number < before and not sql.standing(database, [*move.moved])
    ]
    return objects.delete_many(gone) if gone else {}


def restored(database: Database) -> None:
    """Let the next one who decides make all moves again."""
    sql.note_restored(database)
