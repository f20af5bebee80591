"""The feeds of a user, each with unread count, health and the user's own settings, in one statement."""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.storage.database import Result, Row, Statement, Value
from rss_pipeline.storage.feeds.predicates import HEALTH
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.subscriptions.counts import NEWEST, UNREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    """A subscribed feed."""

    feed_id: str
    title: str | None
    """The user's own, or else the feed's."""
    own_title: str | None
    url: str
    link: str | None
    """The feed's web page."""
    folder: str | None
    position: int
    wished_interval: int | None
    """Seconds; None for what the schedule finds."""
    added_at: datetime
    unread: int
    version: int
    """The arrival number of its newest item, 0 for none."""
    updated_at: datetime | None
    """Time of the last document that brought an item."""
    health: str
    """A word of `predicates.HEALTH`."""
    error_kind: str | None
    error: str | None
    """What went wrong at the last visit, as a sentence; None where it went well."""
    failing_since: datetime | None
    next_visit: datetime
    visit_reason: str | None
    last_success_at: datetime | None


_COLUMNS = f"""s.feed_id, coalesce(s.title, f.title) AS title, s.title AS own_title, f.url, f.link, s.folder,
  s.position, s.wished_interval, s.added_at, {UNREAD} AS unread, {NEWEST} AS newest,
  f.changed_at, {HEALTH} AS health, f.last_error_kind, f.last_error, f.consecutive_failures, f.failing_since,
  f.next_fetch_at, f.schedule_reason, f.last_success_at"""


def list_feeds(user_id: str, feed_id: str | None = None, *, newer_than: int | None = None) -> Statement:
    """A query for all feeds of a user, or for one, for `feed_rows`; `newer_than`: those with an item of a
    higher arrival number."""
    only, params = "", list[Value]([user_id])
    if feed_id is not None:
        only, params = "AND s.feed_id = ?", [user_id, feed_id]
    if newer_than is not None:
        only, params = f"{only} AND {NEWEST} > ?", [*params, newer_than]
    return Statement(
        f"""SELECT {_COLUMNS} FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
        WHERE s.user_id = ? {only} ORDER BY s.position, s.feed_id""",
        params,
        name="list feeds of a user",
    )


def look_for_feed(user_id: str, feed_id: str) -> Statement:
    """A query that gives one row if the user subscribes this feed."""
    return Statement(
        "SELECT 1 FROM subscriptions WHERE user_id = ? AND feed_id = ?",
        [user_id, feed_id],
        name="look for a feed of a user",
    )


def feed_rows(result: Result) -> list[FeedRow]:
    """What `list_feeds` found, in the user's order."""
    return list(map(_feed_row, result.rows))


def _feed_row(row: Row) -> FeedRow:
    wished = row["wished_interval"]
    return FeedRow(
        feed_id=row["feed_id"],
        title=row["title"],
        own_title=row["own_title"],
        url=shown_url(row["url"]),
        link=row["link"],
        folder=row["folder"],
        position=int(row["position"]),
        wished_interval=None if wished is None else int(wished),
        added_at=datetime.fromisoformat(row["added_at"]),
        unread=int(row["unread"]),
        version=int(row["newest"]),
        updated_at=from_instant(row["changed_at"]),
        health=row["health"],
        error_kind=row["last_error_kind"],
        error=row["last_error"],
        failing_since=from_instant(row["failing_since"]) if row["consecutive_failures"] > 0 else None,
        next_visit=datetime.fromisoformat(row["next_fetch_at"]),
        visit_reason=row["schedule_reason"],
        last_success_at=from_instant(row["last_success_at"]),
    )
