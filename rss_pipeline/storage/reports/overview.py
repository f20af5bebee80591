"""What a person asks of the stores: how the feeds do, how much there is. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import PROMINENT_FAILURES
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.holds import NOT_HELD
from rss_pipeline.storage.images.closings import image_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts over everything stored."""

    registered: int
    disabled: int
    unregistered: int
    due: int
    """Those that are to be left alone, or their hosts, are not."""
    failing: int
    failing_long: int
    """With ten failures in a row or more."""
    gone: int
    """Of which the publisher says 410 Gone."""
    moved: int
    """Asked at another address than the registered one."""
    gaps: int
    """Documents that had no item in common with the one before, of all feeds so far."""
    items: int
    image_tasks: dict[str, int]
    next_fetch_at: str | None


def overview(database: Database, *, now: datetime) -> Overview:
    """The counts, in four queries."""
    feeds = database.query(
        f"""SELECT
          coalesce(sum(registered = 1 AND enabled = 1), 0) AS registered,
          coalesce(sum(registered = 1 AND enabled = 0), 0) AS disabled,
          coalesce(sum(registered = 0), 0) AS unregistered,
          coalesce(sum(registered = 1 AND enabled = 1 AND next_fetch_at <= ? AND {NOT_HELD}), 0) AS due,
          coalesce(sum(registered = 1 AND consecutive_failures > 0), 0) AS failing,
          coalesce(sum(registered = 1 AND consecutive_failures >= ?), 0) AS failing_long,
          coalesce(sum(registered = 1 AND last_error_kind IS 'gone'), 0) AS gone,
          coalesce(sum(registered = 1 AND fetch_url IS NOT NULL), 0) AS moved,
          coalesce(sum(CASE WHEN registered = 1 THEN gaps END), 0) AS gaps,
          min(CASE WHEN registered = 1 AND enabled = 1 THEN next_fetch_at END) AS next_fetch_at
        FROM feeds""",
        [instant(now), instant(now), instant(now), PROMINENT_FAILURES],
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
        failing_long=int(feeds["failing_long"]),
        gone=int(feeds["gone"]),
        moved=int(feeds["moved"]),
        gaps=int(feeds["gaps"]),
        next_fetch_at=feeds["next_fetch_at"],
        items=int(items),
        image_tasks={status: count for status, count in by_status.items() if count},
    )


def feed_health(database: Database, *, limit: int | None = None) -> list[Row]:
    """One row a feed with its item count, trouble first, then by the next visit.

    `same_as` is another registered feed to whose URL this one leads, as far as permanent redirects tell.
    """
    return database.query(
        """SELECT feeds.id, url, title, registered, enabled, consecutive_failures, last_error_kind,
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
        ORDER BY registered DESC, consecutive_failures DESC, warning IS NULL, next_fetch_at, feeds.id
        LIMIT ?""",
        [-1 if limit is None else limit],
        name="list feed states",
    ).rows


def find_feeds(database: Database, text: str) -> list[Row]:
    """Feeds meant by an id, a URL, or a part of id, URL or title: an exact match alone, else all."""
    exact = database.query(
        "SELECT id, url, title FROM feeds WHERE id = ? OR url = ?",
        [text, text],
        name="find a feed by its address",
    ).rows
    return (
        exact
        or database.query(
            """SELECT id, url, title FROM feeds WHERE instr(lower(id), lower(?)) > 0
        OR instr(lower(url), lower(?)) > 0 OR instr(lower(coalesce(title, '')), lower(?)) > 0
        ORDER BY id LIMIT 20""",
            [text, text, text],
            name="find feeds by a text",
        ).rows
    )
