"""The feeds, images and hosts that each health check concerns. Reads only.

Each check is one query, over the feeds table once or by an index, so that it stays cheap at 50,000 feeds.
What a result means is features/health/checks.py's; the conditions are storage.feeds.predicates'.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database, Row, Value
from rss_pipeline.storage.feeds.predicates import (
    ANSWERED_BY,
    FAILING_LONG,
    GONE,
    MOVED,
    NOT_ANSWERING,
    POLLED,
    REDIRECTING,
    WARNED,
    has_warning,
)
from rss_pipeline.storage.feeds.stored_holds import free_since
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, compact

FROM_USERS = "users"
"""The value of `brought_by` of a feed that feeds.yaml does not list."""
BROUGHT_BY = f"CASE WHEN listed = 1 THEN 'feeds.yaml' ELSE '{FROM_USERS}' END AS brought_by"
NAMED = 100
"""The most rows of a result; its count goes on."""


@dataclass(frozen=True, slots=True)
class Concerned:
    """The feeds or hosts that a query found: how many, and the first of them."""

    count: int
    rows: Sequence[Row]


def overdue(database: Database, *, since: datetime) -> Concerned:
    """Feeds that could have been visited before `since`, the longest due first.

    A hold is no delay of ours: a feed is due from its end on.
    """
    return _find(
        database,
        # The first comparison is the index's.
        f"""SELECT feed, due_since, schedule_reason, count(*) OVER () AS total FROM (
          SELECT id AS feed, {free_since()} AS due_since, schedule_reason FROM feeds
          WHERE {POLLED} AND next_fetch_at <= ?
        ) WHERE due_since <= ? ORDER BY due_since, feed LIMIT {NAMED}""",
        [instant(since), instant(since)],
        name="find overdue feeds",
    )


def not_answering(database: Database) -> Concerned:
    """Feeds that failed three times in a row or more, or failed and were never read; those first."""
    return _find(
        database,
        f"""SELECT id AS feed, last_error_kind AS kind, last_error AS reason,
        consecutive_failures AS failures, coalesce(failing_since, last_success_at, created_at) AS since,
        next_fetch_at AS next_visit, coalesce(last_success_at, 'never') AS last_success, url, {BROUGHT_BY},
        count(*) OVER () AS total FROM feeds WHERE {NOT_ANSWERING}
        ORDER BY last_success_at IS NOT NULL, consecutive_failures DESC, id LIMIT {NAMED}""",
        name="find feeds that do not answer",
    )


def gone(database: Database) -> Concerned:
    """Feeds that are gone for good (410 Gone)."""
    return _find(
        database,
        f"""SELECT id AS feed, url, last_error AS reason, consecutive_failures AS failures,
        last_success_at AS last_success, {BROUGHT_BY}, count(*) OVER () AS total
        FROM feeds WHERE {GONE} ORDER BY last_success_at, id LIMIT {NAMED}""",
        name="find gone feeds",
    )


def moved(database: Database) -> Concerned:
    """Feeds that are requested at another address than feeds.yaml has, by adopted permanent redirects."""
    return _find(
        database,
        f"""SELECT id AS feed, url, fetch_url AS address, 1 AS adopted, {BROUGHT_BY},
        count(*) OVER () AS total FROM feeds WHERE {MOVED} ORDER BY id LIMIT {NAMED}""",
        name="find moved feeds",
    )


def redirecting(database: Database) -> Concerned:
    """Feeds that answer with permanent redirects that are not adopted, or not yet."""
    return _find(
        database,
        f"""SELECT id AS feed, url, move_url AS address, 0 AS adopted, {BROUGHT_BY}, count(*) OVER () AS total
        FROM feeds WHERE {REDIRECTING} ORDER BY id LIMIT {NAMED}""",
        name="find redirecting feeds",
    )


def with_gaps(database: Database, *, since: datetime) -> Concerned:
    """Feeds with a document, since then, that had no item in common with the one before."""
    return _find(
        database,
        f"""SELECT id AS feed, url, gaps, last_gap_at AS last_gap, schedule_reason, count(*) OVER () AS total
        FROM feeds WHERE {POLLED} AND last_gap_at >= ? ORDER BY last_gap_at DESC, id LIMIT {NAMED}""",
        [instant(since)],
        name="find gaps",
    )


def unstable(database: Database) -> Concerned:
    """Feeds with items that come again under new guids, come under known ones, or share one."""
    return _find(
        database,
        f"""SELECT id AS feed, url, warning, count(*) OVER () AS total
        FROM feeds WHERE {POLLED} AND ({has_warning("unstable_guids")} OR {has_warning("reused_guids")}
          OR {has_warning("shared_guids")})
        ORDER BY id LIMIT {NAMED}""",
        name="find unstable guids",
    )


def undated(database: Database) -> Concerned:
    """Feeds with items, but no date that could be read, in their newest document."""
    return _find(
        database,
        f"""SELECT id AS feed, url, CAST(json_extract(last_change, '$.items_seen') AS INTEGER) AS items,
        count(*) OVER () AS total
        FROM feeds WHERE {POLLED} AND last_body_at IS NOT NULL AND coalesce(rhythm, '[]') = '[]'
        AND CAST(json_extract(last_change, '$.items_seen') AS INTEGER) > 0 ORDER BY id LIMIT {NAMED}""",
        name="find undated feeds",
    )


def given_up_images(database: Database, *, since: datetime, least: int) -> Concerned:
    """Feeds with `least` images or more that were given up since then, with an example of each."""
    return _find(
        database,
        f"""SELECT i.feed_id AS feed, count(*) AS images, count(DISTINCT t.host) AS hosts,
        max(t.host) AS host, max(t.last_error) AS example, count(*) OVER () AS total
        FROM image_tasks t CROSS JOIN items i ON i.id = t.item_id
        WHERE t.status = 'failed' AND t.updated_at >= ?
        GROUP BY i.feed_id HAVING count(*) >= ? ORDER BY images DESC, feed LIMIT {NAMED}""",
        [instant(since), least],
        name="find given up images",
    )


def waiting_images(database: Database, *, since: datetime, most: int | None = None) -> Concerned:
    """Hosts with images that could have been had before `since`, the longest due first.

    Without those of feeds that archive no images any more. A hold is no delay of ours. `most`: only so many
    of the longest due images, and of the last ones that became due, are looked at. Thousands may wait for a
    host on hold, and what keeps others waiting shows in the last ones too.
    """
    at = "coalesce(next_attempt_at, created_at)"
    due = f"SELECT id, host, item_id, {at} AS at FROM image_tasks WHERE status = 'pending' AND {at} <= ?"
    tasks, times = due, 1
    if most is not None:
        ends = [f"SELECT * FROM ({due} ORDER BY {at} {way} LIMIT {most}) AS part" for way in ("ASC", "DESC")]
        tasks, times = " UNION ".join(ends), 2
    held = " UNION ALL ".join(
        f"SELECT host FROM {holds} WHERE hold_until > ?" for holds in ("hosts", "image_holds")
    )
    return _find(
        database,
        f"""SELECT host, images, due_since, count(*) OVER () AS total FROM (
          SELECT t.host, count(*) AS images, max(min(t.at),
            coalesce((SELECT hold_until FROM hosts WHERE hosts.host = t.host), ''),
            coalesce((SELECT hold_until FROM image_holds WHERE image_holds.host = t.host), '')) AS due_since
          FROM ({tasks}) AS t CROSS JOIN items i ON i.id = t.item_id
            CROSS JOIN feeds f ON f.id = i.feed_id AND f.images = 1
          WHERE t.host NOT IN ({held}) GROUP BY t.host
        ) WHERE due_since <= ? ORDER BY due_since, host LIMIT {NAMED}""",
        [instant(since)] * (times + 3),
        name="find waiting images",
    )


def busiest(database: Database, *, since: str, items: int, image_bytes: int, backup_bytes: int) -> Concerned:
    """The feeds that took most room on their last day, if that is this one (UTC) or a later one; those at a
    limit are counted and come first."""
    return _find(
        database,
        """SELECT feed, title, day, items, image_mb, backup_mb, sum(at_limit) OVER () AS total FROM (
          SELECT id AS feed, title, counted_day AS day, day_items AS items,
          round(day_image_bytes / 1000000.0, 1) AS image_mb,
          round(day_backup_bytes / 1000000.0, 1) AS backup_mb,
          CAST(day_items >= ? OR day_image_bytes >= ? OR day_backup_bytes >= ? AS INTEGER) AS at_limit
          FROM feeds
          WHERE counted_day >= ? AND (day_items > 0 OR day_image_bytes > 0 OR day_backup_bytes > 0)
        ) ORDER BY at_limit DESC, image_mb + backup_mb DESC, items DESC, feed LIMIT 10""",
        [items, image_bytes, backup_bytes, since],
        name="find the busiest feeds",
    )


def just_prominent(database: Database, *, since: datetime) -> list[Row]:
    """Feeds that failed the tenth time in a row since then, and have not had a success after it.

    The index knows by their last visit, which was since then as well.
    """
    return database.query(
        f"""SELECT id, url, title, last_error_kind, last_error, last_success_at, prominent_at FROM feeds
        WHERE {FAILING_LONG} AND last_visited_at >= ? AND prominent_at >= ? ORDER BY prominent_at, id""",
        [instant(since), instant(since)],
        name="find newly failing feeds",
    ).rows


def _find(database: Database, sql: str, params: Sequence[Value] = (), *, name: str) -> Concerned:
    rows = database.query(sql, params, name=name).rows
    return Concerned(
        rows[0]["total"] if rows else 0,
        [{name: value for name, value in row.items() if name != "total"} for row in rows],
    )


# Facts about the feeds and their backups for `doctor`. Reads only.
#
# What they mean, and how to fix it, is checks.py's. The stores' own state is the backends'.

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
"""The feeds with a problem, by problem. Each row has the feed's id and title, and by whom it came."""


def feed_findings(database: Database, *, unreported_before: datetime) -> FeedFindings:
    """Read the feeds table once.

    not_answering, gone, moved, redirecting and warned are as in storage.feeds.predicates. unreported have a
    change before `unreported_before` that was not reported to Dagster. leased are claimed by a run that has
    ended. keep_unknown were restored from backups that do not say how long the feed's items are kept, and are
    not in feeds.yaml. A row of same names all feeds that lead to one URL.
    """
    rows = database.query(
        f"""SELECT id AS feed, title, {BROUGHT_BY}, {NOT_ANSWERING} AS not_answering, {GONE} AS gone,
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
        feed = {name: row[name] for name in ("feed", "title", "brought_by")}
        for problem in _PROBLEMS:
            if row[problem]:
                found[problem].append(feed)
        if row["same_as"] is not None:
            same.setdefault(row["same_as"], []).append(feed)
    found["same"] = [
        {
            "feeds": " and ".join(feed_name(feed["feed"], feed["title"]) for feed in feeds),
            "brought_by": " and ".join(sorted({feed["brought_by"] for feed in feeds})),
        }
        for feeds in same.values()
    ]
    return {problem: Concerned(len(rows), rows) for problem, rows in found.items()}


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
