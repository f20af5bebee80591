"""The backups that expire, and those that are put again so that they never do. Pure, but for one query.

Listing and deleting are features/retention's; what a backup is, backups.py's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.storage.backends.backend import Lifecycle
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectInfo

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


def feed_of(key: str) -> str:
    """The feed of an object's key: its second part."""
    return key.split("/", 2)[1]


def due_backups(
    listed: Iterable[ObjectInfo], needed: Mapping[str, str | None], *, now: datetime, ages: BackupAges
) -> Iterator[Expire | Renew]:
    """Decide which of these backups, in key order, to delete and which to put again.

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
            yield from _judge(before, needed, is_newest=is_newest, now=now, ages=ages)
        before = info
    if before is not None:
        yield from _judge(before, needed, is_newest=True, now=now, ages=ages)


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
