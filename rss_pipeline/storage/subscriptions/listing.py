"""The feeds of a user in one statement: with unread count, health and the user's own settings, or, in a
fifth of the time, by name only."""

from datetime import datetime
from typing import NamedTuple

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline.storage.feeds.holds import ON_HOLD, free_since
from rss_pipeline.storage.feeds.predicates import HEALTH, NOT_COLLECTED_HEALTH, UNREAD_HEALTH, Health
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.subscriptions.counts import NEWEST, UNREAD


class FeedRow(NamedTuple):
    """A subscribed feed, as it was read: what has to be made of a value is made where it is used, since
    a list has hundreds of feeds. Instants are `YYYY-MM-DDTHH:MM:SSZ` in the fields, aware in the properties.
    """

    feed_id: str
    title: str | None
    """The user's own, or else the feed's."""
    own_title: str | None
    stored_url: str
    link: str | None
    """The feed's web page."""
    description: str | None
    """The feed's, as plain text."""
    folder: str | None
    position: int
    wished_interval: int | None
    """Seconds; None for what the schedule finds."""
    added: str
    read_at: str | None
    """The last time that the user marked an item of it as read."""
    unread: int
    version: int
    """The arrival number of its newest item, 0 for none."""
    changed: str | None
    """Time of the last visit with news: new items, the first answer after a failure, or a week without."""
    health: Health
    error_kind: str | None
    error: str | None
    """The error of the last visit, as a sentence; None if it went well."""
    fails_since: str | None
    """None while the feed does not fail."""
    visit_at: str
    """The next visit; none before a hold ends."""
    visit_reason: str | None
    success_at: str | None
    """The last visit that went well."""

    @property
    def url(self) -> str:
        return shown_url(self.stored_url)

    @property
    def last_visit_failed(self) -> bool:
        return self.health in UNREAD_HEALTH

    @property
    def is_collected(self) -> bool:
        """False for a feed that is switched off, or no longer registered."""
        return self.health not in NOT_COLLECTED_HEALTH

    @property
    def added_at(self) -> datetime:
        return datetime.fromisoformat(self.added)

    @property
    def updated_at(self) -> datetime | None:
        return from_instant(self.changed)

    @property
    def failing_since(self) -> datetime | None:
        return from_instant(self.fails_since)

    @property
    def next_visit(self) -> datetime:
        return datetime.fromisoformat(self.visit_at)

    @property
    def last_success_at(self) -> datetime | None:
        return from_instant(self.success_at)


_VISIT_AT = free_since("f")
_COLUMNS = f"""s.feed_id, coalesce(s.title, f.title) AS title, s.title AS own_title, f.url AS stored_url,
  f.link, f.description, s.folder, s.position, s.wished_interval, s.added_at AS added,
  s.last_read_at AS read_at, {UNREAD} AS unread,
  {NEWEST} AS version,
  f.changed_at AS changed, {HEALTH} AS health, f.last_error_kind AS error_kind, f.last_error AS error,
  CASE WHEN f.consecutive_failures > 0 THEN f.failing_since END AS fails_since, {_VISIT_AT} AS visit_at,
  CASE WHEN {_VISIT_AT} > f.next_fetch_at THEN '{ON_HOLD}' ELSE f.schedule_reason END AS visit_reason,
  f.last_success_at AS success_at"""
"""The fields of FeedRow."""


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


class FeedName(NamedTuple):
    """A subscribed feed as lists of feeds have it."""

    feed_id: str
    title: str | None
    """The user's own, or else the feed's."""
    stored_url: str
    link: str | None
    """The feed's web page."""
    folder: str | None

    @property
    def url(self) -> str:
        return shown_url(self.stored_url)


def list_names(user_id: str, feed_id: str | None = None) -> Statement:
    """A query for all feeds of a user, or for one, for `feed_names`."""
    only = "" if feed_id is None else "AND s.feed_id = ?"
    return Statement(
        f"""SELECT s.feed_id, coalesce(s.title, f.title) AS title, f.url AS stored_url, f.link, s.folder
        FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
        WHERE s.user_id = ? {only} ORDER BY s.position, s.feed_id""",
        [user_id] if feed_id is None else [user_id, feed_id],
        name="list names of feeds of a user",
    )


def look_for_feed(user_id: str, feed_id: str) -> Statement:
    """A query that gives one row if the user subscribes to this feed."""
    return Statement(
        "SELECT 1 FROM subscriptions WHERE user_id = ? AND feed_id = ?",
        [user_id, feed_id],
        name="look for a feed of a user",
    )


def feed_names(result: Result) -> list[FeedName]:
    """The result of `list_names`, in the user's order."""
    return list(map(FeedName._make, result.columns(*FeedName._fields)))


def feed_rows(result: Result) -> list[FeedRow]:
    """The result of `list_feeds`, in the user's order."""
    return list(map(FeedRow._make, result.columns(*FeedRow._fields)))
