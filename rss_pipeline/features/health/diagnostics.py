"""Facts about the feeds and their backups for `doctor`. Reads only.

What they mean, and how to fix it, is pipeline/health's. The stores' own state is the backends'.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.features.health.health_rows import BROUGHT_BY, Concerned
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.predicates import (
    ANSWERED_BY,
    GONE,
    MOVED,
    NOT_ANSWERING,
    POLLED,
    REDIRECTING,
    WARNED,
)
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, compact

HEADS_AT_ONCE = 16
_PROBLEMS = (
    "not_answering",
    "gone",
    "moved",
    "redirecting",
    "warned",
    "unreported",
    "leased",
    "need_access",
    "keep_unknown",
)


FeedFindings = Mapping[str, Concerned]
"""The feeds with a problem, by problem. Each row has the feed's id and by whom it came."""


def feed_findings(database: Database, *, unreported_before: datetime) -> FeedFindings:
    """Read the feeds table once.

    not_answering, gone, moved, redirecting and warned are as in storage.feeds.predicates. unreported have a
    change before `unreported_before` that was not reported to Dagster. leased are claimed by a run that has
    ended. keep_unknown were restored from backups that do not say how long the feed's items are kept, and are
    not in feeds.yaml. A row of same names all feeds that lead to one URL.
    """
    rows = database.query(
        f"""SELECT id AS feed, {BROUGHT_BY}, {NOT_ANSWERING} AS not_answering, {GONE} AS gone,
        {MOVED} AS moved, {REDIRECTING} AS redirecting, {WARNED} AS warned,
        change_count > reported_count AND changed_at < ? AS unreported,
        registered = 1 AND needs_access = 1 AS need_access, keep_unknown,
        lease_token IS NOT NULL AND lease_token NOT IN ({LIVE_TOKENS_NOW})
          AS leased,
        CASE WHEN {POLLED} AND count(*) OVER same > 1 THEN min(id) OVER same END AS same_as
        FROM feeds WINDOW same AS (PARTITION BY {POLLED}, {ANSWERED_BY}) ORDER BY id""",
        [instant(unreported_before)],
        name="read feed findings",
    ).rows
    found: dict[str, list[Row]] = {problem: [] for problem in _PROBLEMS}
    same: dict[str, list[Row]] = {}
    for row in rows:
        feed = {"feed": row["feed"], "brought_by": row["brought_by"]}
        for problem in _PROBLEMS:
            if row[problem]:
                found[problem].append(feed)
        if row["same_as"] is not None:
            same.setdefault(row["same_as"], []).append(feed)
    found["same"] = [
        {
            "feeds": " and ".join(feed["feed"] for feed in feeds),
            "brought_by": " and ".join(sorted({feed["brought_by"] for feed in feeds})),
        }
        for feeds in same.values()
    ]
    return {problem: Concerned(len(rows), rows) for problem, rows in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesWaiting:
    """The images that are still to be downloaded, of feeds that archive them."""

    images: int
    """At most COUNTED_IMAGES: more are not counted."""
    due_since: datetime | None
    """The earliest time at which one could have been requested; None where there is none."""


COUNTED_IMAGES = 10_000


def images_waiting(database: Database) -> ImagesWaiting:
    """Count the images without an attempt that was the last."""
    row = database.query(
        f"""SELECT count(*) AS n, min(due) AS due FROM (
          SELECT coalesce(t.next_attempt_at, t.created_at) AS due
          FROM image_tasks AS t CROSS JOIN items AS i ON i.id = t.item_id
            CROSS JOIN feeds AS f ON f.id = i.feed_id AND f.images = 1
          WHERE t.status = 'pending' ORDER BY due LIMIT {COUNTED_IMAGES}) AS waiting""",
        name="count waiting images",
    ).rows[0]
    return ImagesWaiting(images=int(row["n"]), due_since=from_instant(row["due"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupLoss:
    """Items that a restore from backups would lose, among the feeds looked at."""

    feeds: int
    """Feeds with items, looked at or not."""
    looked_at: int
    never: Sequence[str]
    """Feeds with items and no backup at all."""
    gone: Sequence[str]
    """Feeds with neither the backup of their newest item in the store nor a later one."""
    items: int
    """Items of the feeds in `never` and `gone`."""
    lost_keys: Sequence[str] = ()
    """The newest backups of the feeds in `gone`, as the rows name them."""
    is_store_empty: bool = False
    """True if backups are gone and the store has none at all."""


def backup_loss(database: Database, store: ObjectStore, *, limit: int) -> BackupLoss:
    """Compare the newest backup keys of the `limit` feeds that changed last with the store."""
    # Not of all items: there are hundreds of times as many as feeds, and this is done each hour.
    rows = database.query(
        """SELECT id, feeds, (SELECT backup_key FROM items WHERE feed_id = f.id AND backup_key IS NOT NULL
            ORDER BY created_at DESC LIMIT 1) AS newest
        FROM (SELECT id, count(*) OVER () AS feeds FROM feeds
          WHERE EXISTS (SELECT 1 FROM items WHERE feed_id = feeds.id)
          ORDER BY last_body_at DESC, id LIMIT ?) AS f
        ORDER BY id""",
        [limit],
        name="read newest backups",
    ).rows
    with ThreadPoolExecutor(HEADS_AT_ONCE, "doctor") as pool:
        there = list(pool.map(lambda row: _is_there(store, row), rows))
    lost = [row for row, found in zip(rows, there, strict=True) if not found]
    items = 0
    if lost:
        counted = database.query(
            "SELECT count(*) AS n FROM items WHERE feed_id IN (SELECT value FROM json_each(?))",
            [compact([row["id"] for row in lost])],
            name="count items without a backup",
        )
        items = int(counted.rows[0]["n"])
    gone = [row for row in lost if row["newest"] is not None]
    return BackupLoss(
        feeds=int(rows[0]["feeds"]) if rows else 0,
        looked_at=len(rows),
        never=[row["id"] for row in lost if row["newest"] is None],
        gone=[row["id"] for row in gone],
        items=items,
        lost_keys=[row["newest"] for row in gone],
        is_store_empty=bool(gone) and next(iter(store.list("backups/")), None) is None,
    )


def has_items(database: Database) -> bool:
    """True if the database has an item."""
    return bool(database.query("SELECT 1 AS found FROM items LIMIT 1", name="look for an item").rows)


def _is_there(store: ObjectStore, row: Row) -> bool:
    """A later document serves as well: it lists what was new in the one before, or no longer."""
    newest = row["newest"]
    if newest is None:
        return False
    if store.head(newest) is not None:
        return True
    return any(info.key > newest for info in list_backups(store, row["id"]))
