"""The backups that expire, and those that are put again so that they never do. Pure, but for one query.

Listing and deleting are features/retention's; what a backup is, backups.py's.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.backends.backend import Lifecycle
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import IMAGES, PRIVATE_IMAGES, ObjectInfo, ObjectStore

BACKUPS = "backups/"
RENEWED_AT = 0.5
"""Share of its time after which a backup is put again. The daemon may be off for as long as the rest."""
USUAL_RULE = timedelta(days=30)
"""Assumed for a bucket's rule that may not be read: most object tokens may not. Older guides had 30 days."""

_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Expire:
    """This backup is past its age."""

    info: ObjectInfo


@dataclass(frozen=True, slots=True)
class Renew:
    """This backup never expires and is put again under its key."""

    info: ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupAges:
    """Ages, since an object was put, at which backups expire, and at which those that stay are put again."""

    expire: timedelta | None
    """None: a rule of the bucket deletes them."""
    renew: timedelta

    @classmethod
    def of(cls, *, backup_days: int, rule: Lifecycle | None) -> "BackupAges":
        """Ages for these settings. `rule` is the bucket's; None where the store has no such thing."""
        wanted = timedelta(days=backup_days)
        ruled = None if rule is None or rule.days is None else timedelta(days=rule.days)
        by_rule = ruled is not None and ruled <= wanted
        ends = min(wanted, ruled or (USUAL_RULE if rule is not None and rule.unread else wanted))
        return cls(expire=None if by_rule else wanted, renew=RENEWED_AT * ends)


def needed_backups(database: Database) -> dict[str, str | None]:
    """Every feed with a row, and the key of the backup that its newest item came from."""
    needed: dict[str, str | None] = {}
    after = ""
    while rows := database.query(
        f"""SELECT id, (SELECT backup_key FROM items WHERE feed_id = feeds.id
          ORDER BY created_at DESC LIMIT 1) AS backup_key
        FROM feeds WHERE id > ? ORDER BY id LIMIT {_PAGE}""",
        [after],
        name="find needed backups",
    ).rows:
        needed |= {row["id"]: row["backup_key"] for row in rows}
        after = rows[-1]["id"]
    return needed


_IS_THINNED = " OR ".join(f"f.{name} IS NOT NULL" for name, key in FEED_KEYS.items() if key.reads is not None)


def thinned_backups(database: Database) -> dict[str, frozenset[str]]:
    """The feeds whose documents differ at each visit although nothing of them is new, and the keys that their
    items name: of the other backups of a day the newest is enough."""
    if not _IS_THINNED:
        return {}
    rows = database.query(
        f"""SELECT f.id, i.backup_key FROM feeds AS f LEFT JOIN items AS i ON i.feed_id = f.id
        WHERE {_IS_THINNED} GROUP BY f.id, i.backup_key""",
        name="find backups of items",
    ).rows
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["id"], set()).add(row["backup_key"] or "")
    return {id: frozenset(keys) for id, keys in found.items()}


def feed_of(key: str) -> str:
    """The feed of an object's key: its second part."""
    return key.split("/", 2)[1]


def due_backups(
    listed: Iterable[ObjectInfo],
    needed: Mapping[str, str | None],
    *,
    now: datetime,
    ages: BackupAges,
    thinned: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[Expire | Renew]:
    """Decide which of these backups, in key order, to delete and which to put again. `thinned` is as
    `thinned_backups` gives it.

    Two stay for each feed: the newest, and the one its newest item came from. Otherwise a feed that serves
    something else than itself for a month would have nothing left to restore. Backups of feeds without a row
    stay: after a lost database they are the archive.
    """
    before: ObjectInfo | None = None
    for info in listed:
        if not info.key.endswith(".xml"):
            continue  # A file put there by hand would pass for the newest.
        if before is not None:
            is_newest = feed_of(info.key) != feed_of(before.key)
            named = (thinned or {}).get(feed_of(before.key))
            if named is not None and before.key not in named and _day(info.key) == _day(before.key):
                # Of the same feed, and later on the same day.
                yield Expire(before)
            else:
                yield from _judge(before, needed, is_newest=is_newest, now=now, ages=ages)
        before = info
    if before is not None:
        yield from _judge(before, needed, is_newest=True, now=now, ages=ages)


def _day(key: str) -> str:
    """The key up to the day in it."""
    return key.partition("T")[0]


def _judge(
    info: ObjectInfo, needed: Mapping[str, str | None], *, is_newest: bool, now: datetime, ages: BackupAges
) -> Iterator[Expire | Renew]:
    feed_id = feed_of(info.key)
    if feed_id not in needed:
        return
    age = now - info.modified
    if is_newest or info.key == needed[feed_id]:
        if age > ages.renew:
            yield Renew(info)
    elif ages.expire is not None and age > ages.expire:
        yield Expire(info)


# Objects without a row and rows without an object: images without a task, tasks without their image, backups
# of feeds that are not stored. Facts only, for `doctor`; nothing is deleted here.

SETTLED_AFTER = timedelta(hours=1)
"""A younger image may be of a download that has not written its row yet."""

_ITEMS_AT_ONCE = 500


@dataclass(slots=True, kw_only=True)
class Unmatched:
    """Number and bytes of the objects or rows of one kind that have no counterpart, and their feeds."""

    count: int = 0
    size: int = 0
    feeds: list[str] = field(default_factory=list)

    def add(self, feed_id: str, count: int, size: int = 0) -> None:
        if count:
            self.count += count
            self.size += size
            self.feeds.append(feed_id)


@dataclass(slots=True, kw_only=True)
class Orphans:
    """The findings up to the end of the time allowed."""

    images: Unmatched = field(default_factory=Unmatched)
    """Image objects that no task names."""
    backups: Unmatched = field(default_factory=Unmatched)
    """Backups of feeds without a row."""
    missing: Unmatched = field(default_factory=Unmatched)
    """Archived images without their object."""
    looked_at: int = 0
    """Objects compared so far."""
    is_complete: bool = True


def find_orphans(
    database: Database, store: ObjectStore, *, now: datetime, is_over: Callable[[], bool]
) -> Orphans:
    """Compare the store with the rows, feed by feed, until `is_over`. One feed's keys are in memory at once.

    Feeds with images that were not all compared are left out, not guessed.
    """
    found = Orphans()
    feeds = needed_backups(database)
    seen = set()
    for feed_id, infos in _by_feed(store, IMAGES, PRIVATE_IMAGES):
        seen.add(feed_id)
        named = set[str]()
        if feed_id in feeds:
            for keys in _image_keys(database, feed_id):
                named |= keys
                if is_over():
                    break
        if is_over():
            found.is_complete = False
            return found
        _compare(found, feed_id, named, infos, settled=now - SETTLED_AFTER)
    for feed_id, infos in _by_feed(store, BACKUPS):
        if is_over():
            found.is_complete = False
            return found
        sizes = [info.size for info in infos]
        found.looked_at += len(sizes)
        if feed_id not in feeds:
            found.backups.add(feed_id, len(sizes), sum(sizes))
    for feed_id in feeds.keys() - seen:
        if is_over():
            found.is_complete = False
            return found
        found.missing.add(feed_id, sum(map(len, _image_keys(database, feed_id))))
    return found


def _by_feed(store: ObjectStore, *prefixes: str) -> Iterator[tuple[str, Iterator[ObjectInfo]]]:
    # Each list has the feeds in the same order, which is that of the keys behind the prefix.
    infos = heapq.merge(*map(store.list, prefixes), key=lambda info: info.key.partition("/")[2])
    return groupby(infos, key=lambda info: feed_of(info.key))


def _compare(
    found: Orphans, feed_id: str, named: set[str], infos: Iterator[ObjectInfo], *, settled: datetime
) -> None:
    count = size = 0
    for info in infos:
        found.looked_at += 1
        if info.key in named:
            named.discard(info.key)
        elif info.modified < settled:
            count, size = count + 1, size + info.size
    found.images.add(feed_id, count, size)
    found.missing.add(feed_id, len(named))


def _image_keys(database: Database, feed_id: str) -> Iterator[set[str]]:
    """The keys that a feed's tasks name, in portions: through the items' index, for keys have none."""
    after: Sequence[str | float] = ("", 0)
    while rows := database.query(
        f"""SELECT i.created_at, i.place, t.r2_key FROM (
          SELECT id, created_at, rowid AS place FROM items
          WHERE feed_id = ? AND (created_at, rowid) > (?, ?)
          ORDER BY created_at, rowid LIMIT {_ITEMS_AT_ONCE}) AS i
        LEFT JOIN image_tasks AS t ON t.item_id = i.id ORDER BY i.created_at, i.place""",
        [feed_id, *after],
        name="read image keys",
    ).rows:
        after = (rows[-1]["created_at"], rows[-1]["place"])
        yield {row["r2_key"] for row in rows if row["r2_key"] is not None}
