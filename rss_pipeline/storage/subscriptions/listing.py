"""The feeds of a user in one statement: with unread count, health and the user's own settings, or, in a
fifth of the time, by name only."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline.storage.feeds.predicates import (
    HEALTH,
    MAY_ACCEPT,
    NOT_COLLECTED_HEALTH,
    OPEN,
    POLLED,
    UNREAD_HEALTH,
    UNUSED,
    Health,
    has_warning,
)
from rss_pipeline.storage.feeds.stored_holds import ON_HOLD
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.subscriptions.chosen import NEWEST
from rss_pipeline.storage.subscriptions.item_query import unread


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
    full_text: int
    """1 where the user wants the articles behind its items."""
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
    is_rebuilt: int = 0
    """1 for a page that was rebuilt in the last days: its entries were found again."""
    may_accept: int = 0
    """1 if the user may take what would be collected of its document now."""
    has_false_validators: int = 0
    """1 if its server says that nothing has changed although something has."""

    @property
    def validators_notice(self) -> str | None:
        """A sentence if its server says that nothing has changed although something has."""
        return _FALSE_VALIDATORS if self.has_false_validators else None

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


_FALSE_VALIDATORS = (
    "Its server said that nothing was new although there was something. So it is no longer asked whether"
    " anything is new: each visit requests the whole feed."
)

_VISIT_AT = "max(f.next_fetch_at, coalesce(h.hold_until, ''), coalesce(o.hold_until, ''))"
"""`free_since` by `_HOLDS`, which looks once for each hold however often this is used."""
_HOLDS = "LEFT JOIN hosts AS h ON h.host = f.host LEFT JOIN feed_holds AS o ON o.feed_id = f.id"
_VISIT = (
    _VISIT_AT,
    f"""CASE WHEN {_VISIT_AT} = f.next_fetch_at THEN f.schedule_reason
      WHEN o.hold_until > coalesce(h.hold_until, '') THEN o.reason ELSE '{ON_HOLD}' END""",
    "f.last_success_at",
)
"""`visit_at`, `visit_reason` and `success_at` of FeedRow, by `_HOLDS`: they change with each visit."""
_VISITS_AT_ONCE = 50
_NAMED = """s.feed_id, coalesce(s.title, f.title) AS title, s.title AS own_title, f.url AS stored_url,
  f.link, f.description, s.folder, s.position, s.wished_interval,
  CAST(s.full_text_after IS NOT NULL AS INTEGER) AS full_text, s.added_at AS added,
  s.last_read_at AS read_at"""
_STATE = f"""{NEWEST} AS version, f.changed_at AS changed, {HEALTH} AS health,
  f.last_error_kind AS error_kind, f.last_error AS error,
  CASE WHEN f.consecutive_failures > 0 THEN f.failing_since END AS fails_since"""
"""The fields of FeedRow before `unread` and behind it. In its order, `feed_rows` takes rows as they are."""


_OF_PAGES = f"""CAST(({POLLED} AND {has_warning("redesigned")}) AS INTEGER) AS is_rebuilt,
  CAST(({MAY_ACCEPT}) AS INTEGER) AS may_accept,
  CAST(({POLLED} AND {has_warning("false_validators")}) AS INTEGER) AS has_false_validators"""


def list_feeds(
    user_id: str, feed_id: str | None = None, *, newer_than: int | None = None, has_visits: bool = True
) -> Statement:
    """A query for all feeds of a user, or for one, for `feed_rows`; `newer_than`: those with an item of a
    higher arrival number. Not `has_visits`: without what changes with each visit, for `with_visits`."""
    only, params = "", list[Value]([user_id])
    if feed_id is not None:
        only, params = "AND s.feed_id = ?", [user_id, feed_id]
    if newer_than is not None:
        only, params = f"{only} AND {NEWEST} > ?", [*params, newer_than]
    at, reason, success = _VISIT if has_visits else ("''", "NULL", "NULL")
    return Statement(
        f"""SELECT {_NAMED}, {unread()} AS unread, {_STATE},
          {at} AS visit_at, {reason} AS visit_reason, {success} AS success_at,
          {_OF_PAGES}
        FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id {_HOLDS if has_visits else ""}
        WHERE s.user_id = ? {only} ORDER BY s.position, s.feed_id""",
        params,
        name="list feeds of a user",
        is_kept=not has_visits,
    )


Visits = Mapping[str, tuple[str, str | None, str | None]]
"""By feed id: `visit_at`, `visit_reason` and `success_at` of FeedRow."""


def list_visits(feed_ids: Sequence[str]) -> list[Statement]:
    """Queries for the last and the next visit of these feeds, for `visits_of`. One row is read of each
    feed: a list of ids as JSON would be rows too, where these are paid for."""
    visit = f"(SELECT json_array(f.id, {', '.join(_VISIT)}) FROM feeds AS f {_HOLDS} WHERE f.id = ?)"
    return [
        Statement(
            "SELECT " + ", ".join(f"{visit} AS v{number}" for number in range(len(some))),
            list(some),
            name="list visits of feeds",
        )
        for some in batched(feed_ids, _VISITS_AT_ONCE)
    ]


def visits_of(results: Sequence[Result]) -> Visits:
    """The results of `list_visits`."""
    texts = [text for result in results for row in result.values for text in row if text is not None]
    return {id: (at, reason, success) for id, at, reason, success in map(json.loads, texts)}


def with_visits(rows: Sequence[FeedRow], visits: Visits) -> list[FeedRow]:
    """The feeds with their visits, without those that have none here."""
    return [
        row._replace(visit_at=at, visit_reason=reason, success_at=success)
        for row in rows
        if row.feed_id in visits
        for at, reason, success in [visits[row.feed_id]]
    ]


LISTED_KEYS = [name for name, key in FEED_KEYS.items() if key.in_lists is not None]
"""Keys that lists of feeds have."""
_SOURCE = f"""CASE WHEN {" OR ".join(("f.watched = 0", *(f"f.{name} IS NOT NULL" for name in LISTED_KEYS)))}
  THEN json_array({", ".join(("f.watched", *(f"f.{name}" for name in LISTED_KEYS)))}) END"""


class FeedName(NamedTuple):
    """A subscribed feed as lists of feeds have it."""

    feed_id: str
    title: str | None
    """The user's own, or else the feed's."""
    stored_url: str
    link: str | None
    """The feed's web page."""
    folder: str | None
    source: str | None = None
    """A JSON list of 1 if it is watched, and of the keys of `LISTED_KEYS`; None for a feed."""

    @property
    def url(self) -> str:
        return shown_url(self.stored_url)

    @property
    def is_watched(self) -> bool:
        """False for a name and a page without any source."""
        return self.source is None or bool(json.loads(self.source)[0])

    @property
    def listed_keys(self) -> dict[str, str]:
        """The keys without which its address is no feed."""
        values = json.loads(self.source)[1:] if self.source else []
        return {name: value for name, value in zip(LISTED_KEYS, values, strict=False) if value is not None}


def list_names(user_id: str, feed_id: str | None = None) -> Statement:
    """A query for all feeds of a user, or for one, for `feed_names`."""
    only = "" if feed_id is None else "AND s.feed_id = ?"
    return Statement(
        f"""SELECT s.feed_id, coalesce(s.title, f.title) AS title, f.url AS stored_url, f.link, s.folder,
          {_SOURCE} AS source FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
        WHERE s.user_id = ? {only} ORDER BY s.position, s.feed_id""",
        [user_id] if feed_id is None else [user_id, feed_id],
        name="list names of feeds of a user",
        is_kept=True,
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


# The stored feeds that a user may name by an address.


def named_feeds(user_id: str, hosts: Sequence[str]) -> Statement:
    """A query for `id`, `url`, `title`, `open`, `waits`, `unused`, `may_accept` and `subscribed` of the feeds
    that may have an address at one of these hosts, those first that a user should get where one address has
    several forms. `waits`: its document has not been seen so far, and no visit is planned, or one that
    somebody requested is about to begin or has begun. `unused`: its last subscriber has left it.

    A feed that has moved has its new host in its row. URLs are compared by the caller, who knows their forms.
    """
    return Statement(
        f"""SELECT id, url, title, {OPEN} AS open,
          last_visited_at IS NULL AND (registered = 0 OR EXISTS (SELECT 1 FROM refresh_requests AS r
            WHERE r.feed_id = feeds.id AND r.state <> 'done')) AS waits, {UNUSED} AS unused,
          ({MAY_ACCEPT}) AS may_accept,
          EXISTS (SELECT 1 FROM subscriptions AS s WHERE s.user_id = ? AND s.feed_id = feeds.id) AS subscribed
        FROM feeds
        WHERE forgotten = 0 AND (fetch_url IS NOT NULL OR host IN (SELECT value FROM json_each(?)))
        ORDER BY subscribed DESC, listed DESC, registered DESC, created_at, id""",
        [user_id, compact(list(hosts))],
        name="find named feeds",
    )


def subscription_count(user_id: str) -> Statement:
    """A query for `n`, the number of a user's subscriptions."""
    return Statement(
        "SELECT count(*) AS n FROM subscriptions WHERE user_id = ?", [user_id], name="count subscriptions"
    )
