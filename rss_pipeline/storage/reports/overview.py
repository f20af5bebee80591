"""Counts over all feeds and items, and a list of the feeds with their state, for `status`. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.holds import NOT_HELD
from rss_pipeline.storage.feeds.predicates import (
    FAILING,
    FAILING_LONG,
    GONE,
    MOVED,
    NOT_ANSWERING,
    POLLED,
    REDIRECTING,
)
from rss_pipeline.storage.images.closings import image_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts over everything stored."""

    registered: int
    disabled: int
    unregistered: int
    due: int
    """Without feeds on hold, or on a host that is."""
    failing: int
    not_answering: int
    failing_long: int
    gone: int
    moved: int
    redirecting: int
    """These six as storage.feeds.predicates defines them."""
    gaps: int
    """Documents of registered feeds, so far, that had no item in common with the one before."""
    items: int
    image_tasks: dict[str, int]
    next_fetch_at: str | None


def overview(database: Database, *, now: datetime) -> Overview:
    """The counts, in four queries."""
    feeds = database.query(
        f"""SELECT
          coalesce(sum({POLLED}), 0) AS registered,
          coalesce(sum(registered = 1 AND enabled = 0), 0) AS disabled,
          coalesce(sum(registered = 0), 0) AS unregistered,
          coalesce(sum({POLLED} AND next_fetch_at <= ? AND {NOT_HELD}), 0) AS due,
          coalesce(sum({FAILING}), 0) AS failing,
          coalesce(sum({NOT_ANSWERING}), 0) AS not_answering,
          coalesce(sum({FAILING_LONG}), 0) AS failing_long,
          coalesce(sum({GONE}), 0) AS gone,
          coalesce(sum({MOVED}), 0) AS moved,
          coalesce(sum({REDIRECTING}), 0) AS redirecting,
          coalesce(sum(CASE WHEN registered = 1 THEN gaps END), 0) AS gaps,
          min(CASE WHEN {POLLED} THEN next_fetch_at END) AS next_fetch_at
        FROM feeds""",
        [instant(now), instant(now), instant(now)],
        name="count feeds",
    ).rows[0]
    items = database.query("SELECT count(*) AS n FROM items", name="count items").rows[0]["n"]
    totals = image_totals(database)
    by_status = {"pending": totals.pending, "success": totals.success, "failed": totals.failed}
    return Overview(
        registered=int(feeds["registered"]),
        disabled=int(feeds["disabled"]),
        unregistered=int(feeds["unregistered"]),
        due=int(feeds["due"]),
        failing=int(feeds["failing"]),
        not_answering=int(feeds["not_answering"]),
        failing_long=int(feeds["failing_long"]),
        gone=int(feeds["gone"]),
        moved=int(feeds["moved"]),
        redirecting=int(feeds["redirecting"]),
        gaps=int(feeds["gaps"]),
        next_fetch_at=feeds["next_fetch_at"],
        items=int(items),
        image_tasks={status: count for status, count in by_status.items() if count},
    )


def feed_health(database: Database, *, limit: int | None = None) -> list[Row]:
    """One row for each feed with its item count: polled feeds that fail first, then by the next visit.

    `same_as` is another registered feed with the same address, as far as permanent redirects show.
    """
    return database.query(
        f"""SELECT feeds.id, url, title, registered, enabled, consecutive_failures, last_error_kind,
        last_error, warning, last_fetched_at, last_success_at, next_fetch_at, schedule_reason,
        fetch_url, move_url, move_since, needs_access, gaps, last_gap_at,
        CASE WHEN registered = 0 THEN NULL
          WHEN min(feeds.id) OVER same <> feeds.id THEN min(feeds.id) OVER same
          WHEN max(feeds.id) OVER same <> feeds.id THEN max(feeds.id) OVER same END AS same_as,
        (SELECT max(hold_until) FROM (
          SELECT hold_until FROM hosts WHERE hosts.host = feeds.host
          UNION ALL SELECT hold_until FROM feed_holds WHERE feed_id = feeds.id
        )) AS held_until,
        (SELECT count(*) FROM items WHERE feed_id = feeds.id) AS items
        FROM feeds
        WINDOW same AS (PARTITION BY registered, coalesce(move_url, fetch_url, url))
        ORDER BY registered DESC, CASE WHEN {POLLED} THEN consecutive_failures ELSE 0 END DESC,
          warning IS NULL, next_fetch_at, feeds.id
        LIMIT ?""",
        [-1 if limit is None else limit],
        name="list feed states",
    ).rows


def find_feeds(database: Database, text: str) -> list[Row]:
    """Feeds that match an id, a URL, or a part of id, URL or title: an exact match alone, else all.

    `failed` is 1 for a feed that is polled and failed at its last visit, gone or not.
    """
    columns = f"""id, url, title, registered, enabled, last_visited_at, consecutive_failures, last_error_kind,
        last_error, next_fetch_at, ({FAILING} OR {GONE}) AS failed"""
    exact = database.query(
        f"SELECT {columns} FROM feeds WHERE id = ? OR url = ?",
        [text, text],
        name="find a feed by its address",
    ).rows
    return (
        exact
        or database.query(
            f"""SELECT {columns} FROM feeds WHERE instr(lower(id), lower(?)) > 0
        OR instr(lower(url), lower(?)) > 0 OR instr(lower(coalesce(title, '')), lower(?)) > 0
        ORDER BY id LIMIT 20""",
            [text, text, text],
            name="find feeds by a text",
        ).rows
    )
