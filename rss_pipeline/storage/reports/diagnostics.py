"""What `doctor` asks of the stores: whether they answer, their clocks and sizes, and the feeds' trouble.

Facts only; what they mean and how to mend them is findings.py's.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import PROMINENT_FAILURES
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import NOW

ASKED_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """The feeds' own, by what is stored. Each is a list of feed ids."""

    failing: Sequence[str]
    gone: Sequence[str]
    """Of which the publisher says 410 Gone."""
    moved: Sequence[str]
    """Asked at another address than the registered one."""
    warned: Sequence[str]
    unreported: Sequence[str]
    """With a change that Dagster has not been told of since `unreported_before`."""
    held_by_the_dead: Sequence[str]
    need_access: Sequence[str]


def trouble(database: Database, *, unreported_before: datetime) -> Trouble:
    """What the feeds table says, in one reading."""
    rows = database.query(
        f"""SELECT id, registered = 1 AND enabled = 1 AND consecutive_failures >= ? AS failing,
        registered = 1 AND enabled = 1 AND last_error_kind IS 'gone' AS gone,
        registered = 1 AND enabled = 1 AND fetch_url IS NOT NULL AS moved,
        registered = 1 AND warning IS NOT NULL AS warned,
        change_count > reported_count AND changed_at < ? AS unreported,
        registered = 1 AND needs_access = 1 AS need_access,
        lease_token IS NOT NULL AND lease_token NOT IN (SELECT token FROM leases WHERE expires_at > {NOW})
          AS dead
        FROM feeds ORDER BY id""",
        [PROMINENT_FAILURES, instant(unreported_before)],
        name="read feed findings",
    ).rows

    def ids(name: str) -> list[str]:
        return [row["id"] for row in rows if row[name]]

    return Trouble(
        failing=ids("failing"),
        gone=ids("gone"),
        moved=ids("moved"),
        warned=ids("warned"),
        unreported=ids("unreported"),
        held_by_the_dead=ids("dead"),
        need_access=ids("need_access"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupLoss:
    """What a restore from backups would lose, of the feeds looked at."""

    feeds: int
    """That have items."""
    looked_at: int
    never: Sequence[str]
    """With items and no backup at all."""
    gone: Sequence[str]
    """With neither the backup of its newest item in the store nor a later one."""
    items: int
    """Of those feeds."""


def backup_loss(database: Database, store: ObjectStore, *, limit: int) -> BackupLoss:
    """Compare the newest backup keys of the `limit` feeds that changed last with the store."""
    feeds = database.query(
        "SELECT count(DISTINCT feed_id) AS n FROM items", name="count feeds with items"
    ).rows[0]["n"]
    rows = database.query(
        """SELECT feed_id AS id, max(backup_key) AS newest, count(*) AS items FROM items
        WHERE feed_id IN (SELECT id FROM feeds WHERE EXISTS (SELECT 1 FROM items WHERE feed_id = feeds.id)
          ORDER BY last_body_at DESC, id LIMIT ?)
        GROUP BY feed_id ORDER BY feed_id""",
        [limit],
        name="read newest backups",
    ).rows
    with ThreadPoolExecutor(ASKED_AT_ONCE, "doctor") as pool:
        there = list(pool.map(lambda row: _is_there(store, row), rows))
    lost = [row for row, found in zip(rows, there, strict=True) if not found]
    return BackupLoss(
        feeds=int(feeds),
        looked_at=len(rows),
        never=[row["id"] for row in lost if row["newest"] is None],
        gone=[row["id"] for row in lost if row["newest"] is not None],
        items=sum(int(row["items"]) for row in lost),
    )


def _is_there(store: ObjectStore, row: Row) -> bool:
    """A later document serves as well: it lists what was new in the one before, or no longer."""
    newest = row["newest"]
    if newest is None:
        return False
    if store.head(newest) is not None:
        return True
    return any(info.key > newest for info in list_backups(store, row["id"]))
