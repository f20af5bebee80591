"""What a person asks of the stores: how the feeds do, how much there is. Reads only."""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models import instant
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.image_closings import image_totals

PROMINENT_FAILURES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts over everything stored."""

    registered: int
    disabled: int
    unregistered: int
    due: int
    failing: int
    failing_long: int
    """With ten failures in a row or more."""
    items: int
    image_tasks: dict[str, int]
    next_fetch_at: str | None


def overview(database: Database, *, now: datetime) -> Overview:
    """The counts, in four queries."""
    feeds = database.query(
        """SELECT
          coalesce(sum(registered = 1 AND enabled = 1), 0) AS registered,
          coalesce(sum(registered = 1 AND enabled = 0), 0) AS disabled,
          coalesce(sum(registered = 0), 0) AS unregistered,
          coalesce(sum(registered = 1 AND enabled = 1 AND next_fetch_at <= ?), 0) AS due,
          coalesce(sum(registered = 1 AND consecutive_failures > 0), 0) AS failing,
          coalesce(sum(registered = 1 AND consecutive_failures >= ?), 0) AS failing_long,
          min(CASE WHEN registered = 1 AND enabled = 1 THEN next_fetch_at END) AS next_fetch_at
        FROM feeds""",
        [instant(now), PROMINENT_FAILURES],
    ).rows[0]
    items = database.query("SELECT count(*) AS n FROM items").rows[0]["n"]
    totals = image_totals(database)
    by_status = {"pending": totals.pending, "success": totals.success, "failed": totals.failed}
    return Overview(
        registered=int(feeds["registered"]),
        disabled=int(feeds["disabled"]),
        unregistered=int(feeds["unregistered"]),
        due=int(feeds["due"]),
        failing=int(feeds["failing"]),
        failing_long=int(feeds["failing_long"]),
        next_fetch_at=feeds["next_fetch_at"],
        items=int(items),
        image_tasks={status: count for status, count in by_status.items() if count},
    )


def feed_health(database: Database, *, limit: int | None = None) -> list[Row]:
    """One row a feed with its item count, trouble first, then by the next visit."""
    return database.query(
        """SELECT feeds.id, url, title, registered, enabled, consecutive_failures, last_error_kind,
        last_error, warning, last_fetched_at, last_success_at, next_fetch_at, schedule_reason,
        (SELECT max(hold_until) FROM (
          SELECT hold_until FROM hosts WHERE hosts.host = feeds.host
          UNION ALL SELECT hold_until FROM feed_holds WHERE feed_id = feeds.id
        )) AS held_until,
        (SELECT count(*) FROM items WHERE feed_id = feeds.id) AS items
        FROM feeds
        ORDER BY registered DESC, consecutive_failures DESC, warning IS NULL, next_fetch_at, feeds.id
        LIMIT ?""",
        [-1 if limit is None else limit],
    ).rows


def find_feeds(database: Database, text: str) -> list[Row]:
    """Feeds meant by an id, a URL, or a part of id, URL or title: an exact match alone, else all."""
    exact = database.query("SELECT id, url, title FROM feeds WHERE id = ? OR url = ?", [text, text]).rows
    return (
        exact
        or database.query(
            """SELECT id, url, title FROM feeds WHERE instr(lower(id), lower(?)) > 0
        OR instr(lower(url), lower(?)) > 0 OR instr(lower(coalesce(title, '')), lower(?)) > 0
        ORDER BY id LIMIT 20""",
            [text, text, text],
        ).rows
    )
