"""The end of claimed image tasks, and the counts of tasks by status.

Every statement is guarded by the lease's token: a task that another run took over, or that was deleted
meanwhile, stays as it is. Claiming is image_claims.py's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import instant, whole_second
from rss_pipeline.collector.models.failure import FailureKind
from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.sql import chunked, compact, storable
from rss_pipeline.storage.stale import mark_stale_of

MAX_ATTEMPTS = 3
REFERER_DAYS = timedelta(days=30)
"""A host that needed a Referer so long ago is requested without one again."""
MOST_REFERERS = 1000
"""Hosts that are kept at most: names below a wildcard are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The URL of a task was requested."""

    url_hash: str
    failed: FailureKind | None = None
    inside: frozenset[str] = frozenset()
    """The private hosts that were requested because the task's feed opens them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """A task with its image in the object store. `bytes` is its size, `pixels` that on a screen."""

    task_id: str
    key: str
    bytes: int
    pixels: ImageSize | None = None
    asked: tuple[Asked, ...] = ()
    """Empty for an image that was requested for another task; several where redirects led to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """A task after a failed attempt; the third one is final."""

    task_id: str
    message: str
    next_attempt_at: datetime
    asked: tuple[Asked, ...] = ()
    """Empty where the failure is that of a request for another task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRelease:
    """A claimed task that was not attempted, or whose attempt does not count."""

    task_id: str
    due_at: datetime | None = None
    """The time at which it is due instead; None: still due."""
    kind: Literal["our_outage", "day_full", "host_on_hold"] | None = None
    reason: str | None = None
    """For people, stored with `kind` as the task's last error; None: that stays as it was."""
    asked: tuple[Asked, ...] = ()
    """Not empty where its URL was requested, and the answer says nothing about the image."""


def record_archived(
    database: Database, token: str, archived: Sequence[Archived], *, now: datetime, are_public: bool = False
) -> set[str]:
    """Record success; return the ids of the tasks that still belonged to this claim.

    `are_public`: archived images have a public URL, so topics show them.
    """
    at = instant(now)
    statements: list[Statement] = []
    for chunk in chunked(map(_row, archived)):
        # Counted first: the next statement ends the claim that shows which tasks are ours.
        statements.append(Statement(_COUNTED, [at[:10], chunk, token], name="count bytes of images"))
        if are_public:
            statements += mark_stale_of(_FEEDS, [chunk, token])
        statements.append(Statement(_ARCHIVED, [at, chunk, token], name="close archived images"))
    if not statements:
        return set()
    statements += _asked_statements(archived, now)
    # Items show archived images.
    statements.append(note_change_of_items())
    return {row["id"] for result in database.batch(statements) for row in result.rows}


def _asked_statements(tasks: Sequence[Archived | Attempted | ImageRelease], now: datetime) -> list[Statement]:
    """Note for a day that these URLs were requested. No lease guards that."""
    day = instant(now)[:10]
    requests = [(each.task_id, asked) for each in tasks for asked in each.asked]
    # One row for a URL, to which redirects may have led as well: of what everybody may have, if it came.
    requests.sort(key=lambda request: bool(request[1].inside), reverse=True)
    rows = {
        asked.url_hash: compact([asked.url_hash, task_id, asked.failed, _inside(asked)])
        for task_id, asked in requests
    }
    statements = [
        Statement(_ASKED, [day, instant(whole_second(now)), chunk], name="keep requests of images")
        for chunk in chunked(rows.values())
    ]
    if statements:
        # Those of yesterday may count until this time of today.
        over = [instant(now - timedelta(days=1))[:10]]
        statements.append(
            Statement("DELETE FROM image_urls WHERE day < ?", over, name="drop old requests of images")
        )
    return statements


def _inside(asked: Asked) -> str | None:
    return compact(sorted(asked.inside)) if asked.inside else None


def keep_referers(database: Database, changes: Mapping[str, bool], *, now: datetime) -> None:
    """Keep the hosts that need a Referer, with True, and forget those that do not."""
    needed = [host for host, is_needed in sorted(changes.items()) if is_needed]
    others = [host for host, is_needed in sorted(changes.items()) if not is_needed]
    if not changes:
        return
    database.batch(
        [
            Statement(
                "DELETE FROM image_referers WHERE host IN (SELECT value FROM json_each(?))",
                [compact(others)],
                name="forget hosts that need no Referer",
            ),
            Statement(
                """INSERT INTO image_referers (host, learned_at) SELECT value, ? FROM json_each(?) WHERE true
                ON CONFLICT (host) DO UPDATE SET learned_at = excluded.learned_at""",
                [instant(now), compact(needed)],
                name="keep hosts that need a Referer",
            ),
            Statement(
                """DELETE FROM image_referers WHERE learned_at <= ? OR host NOT IN (
                  SELECT host FROM image_referers ORDER BY learned_at DESC, host LIMIT ?)""",
                [instant(now - REFERER_DAYS), MOST_REFERERS],
                name="drop old hosts that need a Referer",
            ),
        ]
    )


def _row(each: Archived) -> str:
    sides = (each.pixels.width, each.pixels.height) if each.pixels is not None else (None, None)
    return compact([each.task_id, each.key, each.bytes, *sides])


def record_attempted(
    database: Database, token: str, attempted: Sequence[Attempted], *, now: datetime
) -> set[str]:
    """Count one more failed attempt each; return the ids of the tasks that still belonged to this claim."""
    rows = (
        compact([each.task_id, storable(each.message[:2000]), instant(each.next_attempt_at)])
        for each in attempted
    )
    asked = _asked_statements(attempted, now)
    return _record(database, "close failed images", _ATTEMPTED, token, rows, now, asked)


def release(database: Database, token: str, releases: Iterable[ImageRelease], *, now: datetime) -> None:
    """Release tasks without counting an attempt."""
    releases = list(releases)
    rows = (
        compact(
            [
                each.task_id,
                None if each.due_at is None else instant(each.due_at),
                None if each.reason is None else storable(each.reason),
                each.kind,
            ]
        )
        for each in releases
    )
    _record(database, "release images", _RELEASED, token, rows, now, _asked_statements(releases, now))


def bytes_today(database: Database, feed_ids: Iterable[str], *, now: datetime) -> dict[str, int]:
    """Bytes of images that were archived on this UTC day, of those feeds that have any."""
    found: dict[str, int] = {}
    for chunk in chunked(map(compact, feed_ids)):
        rows = database.query(
            "SELECT id, day_image_bytes FROM feeds WHERE counted_day = ? AND day_image_bytes > 0"
            " AND id IN (SELECT value FROM json_each(?))",
            [instant(now)[:10], chunk],
            name="read bytes of images of today",
        ).rows
        found |= {row["id"]: int(row["day_image_bytes"]) for row in rows}
    return found


def still_there(database: Database, ids: Sequence[str]) -> set[str]:
    """The ids among these that have a row."""
    found: set[str] = set()
    for chunk in chunked(map(compact, ids)):
        rows = database.query(
            "SELECT id FROM image_tasks WHERE id IN (SELECT value FROM json_each(?))",
            [chunk],
            name="find image tasks",
        ).rows
        found |= {row["id"] for row in rows}
    return found


def _record(
    database: Database,
    name: str,
    sql: str,
    token: str,
    rows: Iterable[str],
    now: datetime,
    others: Sequence[Statement] = (),
) -> set[str]:
    statements = [Statement(sql, [instant(now), chunk, token], name=name) for chunk in chunked(rows)]
    statements += others
    if not statements:
        return set()
    return {row["id"] for result in database.batch(statements) for row in result.rows}


_ASKED = """WITH given(day, at) AS (SELECT ?, ?)
  INSERT INTO image_urls (day, url_hash, asked_at, task_id, failed, inside)
  SELECT given.day, json_extract(value, '$[0]'), given.at, json_extract(value, '$[1]'),
    json_extract(value, '$[2]'), json_extract(value, '$[3]')
  FROM given, json_each(?) WHERE true
  ON CONFLICT (day, url_hash) DO UPDATE SET asked_at = excluded.asked_at, task_id = excluded.task_id,
    failed = excluded.failed, inside = excluded.inside"""
_OURS = "FROM json_each(?) AS v WHERE image_tasks.id = json_extract(v.value, '$[0]') AND lease_token = ?"
_ARCHIVED = f"""UPDATE image_tasks SET status = 'success', r2_key = json_extract(v.value, '$[1]'),
  bytes = CAST(json_extract(v.value, '$[2]') AS INTEGER),
  width = CAST(json_extract(v.value, '$[3]') AS INTEGER),
  height = CAST(json_extract(v.value, '$[4]') AS INTEGER), last_error = NULL, last_error_kind = NULL,
  next_attempt_at = NULL, lease_token = NULL, updated_at = ? {_OURS} RETURNING id"""
_ATTEMPTED = f"""UPDATE image_tasks SET attempts = attempts + 1,
  status = CASE WHEN attempts + 1 >= {MAX_ATTEMPTS} THEN 'failed' ELSE 'pending' END,
  last_error = json_extract(v.value, '$[1]'), last_error_kind = NULL,
  next_attempt_at = CASE WHEN attempts + 1 < {MAX_ATTEMPTS} THEN json_extract(v.value, '$[2]') END,
  lease_token = NULL, updated_at = ? {_OURS} RETURNING id"""
# What is still due keeps its time: of a task that waits since an outage it is the outage's beginning.
_RELEASED = f"""UPDATE image_tasks SET lease_token = NULL,
  updated_at = CASE WHEN json_extract(v.value, '$[1]') IS NULL THEN updated_at ELSE ? END,
  next_attempt_at = coalesce(json_extract(v.value, '$[1]'), next_attempt_at),
  last_error = coalesce(json_extract(v.value, '$[2]'), last_error),
  last_error_kind = coalesce(json_extract(v.value, '$[3]'), last_error_kind) {_OURS} RETURNING id"""
_FEEDS = """SELECT items.feed_id FROM json_each(?) AS v
  CROSS JOIN image_tasks AS t ON t.id = json_extract(v.value, '$[0]') JOIN items ON items.id = t.item_id
  WHERE t.lease_token = ?"""
_COUNTED = """WITH today(day) AS (SELECT ?), came(id, bytes) AS (
    SELECT items.feed_id, sum(CAST(json_extract(v.value, '$[2]') AS INTEGER)) FROM json_each(?) AS v
    JOIN image_tasks AS t ON t.id = json_extract(v.value, '$[0]') JOIN items ON items.id = t.item_id
    WHERE t.lease_token = ? GROUP BY items.feed_id)
  UPDATE feeds SET
  day_image_bytes = CASE WHEN counted_day = today.day THEN day_image_bytes ELSE 0 END + came.bytes,
  day_items = CASE WHEN counted_day = today.day THEN day_items ELSE 0 END,
  day_backup_bytes = CASE WHEN counted_day = today.day THEN day_backup_bytes ELSE 0 END,
  counted_day = today.day FROM today, came WHERE feeds.id = came.id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTotals:
    """Image tasks by status, and the bytes of those archived."""

    pending: int
    success: int
    failed: int
    bytes: int


def image_totals(database: Database) -> ImageTotals:
    """All tasks counted: reads each row, so not at every run where rows read are paid for."""
    row = database.query(
        """SELECT count(*) AS n, count(*) FILTER (WHERE status = 'pending') AS pending,
        count(*) FILTER (WHERE status = 'failed') AS failed, coalesce(sum(bytes), 0) AS bytes
        FROM image_tasks""",
        name="count images",
    ).rows[0]
    pending, failed = int(row["pending"]), int(row["failed"])
    return ImageTotals(
        pending=pending, success=int(row["n"]) - pending - failed, failed=failed, bytes=int(row["bytes"])
    )


def pending_images(database: Database) -> int:
    """The number of pending tasks, read from the index of those alone."""
    rows = database.query(
        # Without the name of the index SQLite goes through that of all tasks.
        "SELECT count(*) AS n FROM image_tasks INDEXED BY image_tasks_due WHERE status = 'pending'",
        name="count pending images",
    ).rows
    return int(rows[0]["n"])
