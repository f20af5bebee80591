"""Visits that a user requests of many feeds at once, and the tasks of a user with the names of their feeds.

The request for one feed, and what becomes of all of them, is storage.refresh.refresh_requests'.
"""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant, milliseconds
from rss_pipeline.storage.database import Result, Row, Statement
from rss_pipeline.storage.feeds.claimable import rested_params
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.feeds.stored_holds import NOT_HELD
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.refresh.refresh_requests import (
    BEGINS_AT,
    FEED_SPAN,
    HAS_JOINED,
    KEPT,
    MOST_OF_FEED,
    MOST_OF_USER,
    OF_USER,
    USER_SPAN,
    forget_statement,
)
from rss_pipeline.storage.subscriptions.chosen import Scope

_OF_FEED = "(SELECT count(*) FROM refresh_requests AS r WHERE r.feed_id = feeds.id AND r.requested_at > ?)"
_OPEN = "EXISTS (SELECT 1 FROM refresh_requests AS r WHERE r.feed_id = feeds.id AND r.state <> 'done')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The result of a request for many feeds."""

    feeds: int
    requested: int
    """Feeds with a visit that is still to be made."""
    held: int
    """Feeds of which nothing is requested now: their servers want that."""
    off: int
    """Feeds that are not visited at all."""

    @property
    def over(self) -> int:
        """Feeds that are left out, since the user has requested too many."""
        return max(self.feeds - self.requested - self.held - self.off, 0)


def request_many(user_id: str, scope: Scope, *, now: datetime) -> list[Statement]:
    """Statements that request a visit of each feed of a scope, as `request_statements` does for one; the last
    one's row is for `requested_of`. Of too many feeds those are left out that were visited last."""
    condition, params = scope.of(user_id)
    at, user_since, feed_since = instant(now), instant(now - USER_SPAN), instant(now - FEED_SPAN)
    of_scope = f"SELECT s.feed_id FROM subscriptions AS s WHERE {condition}"
    return [
        forget_statement(now),
        Statement(
            f"""INSERT INTO refresh_requests
              (id, kind, user_id, feed_id, requested_at, requested_ms, seen_visit, begins_at)
            SELECT lower(hex(randomblob(16))), 'refresh', s.user_id, feeds.id, ?, ?, last_visited_at,
              {BEGINS_AT}
            FROM subscriptions AS s CROSS JOIN feeds ON feeds.id = s.feed_id
            WHERE {condition} AND {POLLED} AND {NOT_HELD} AND NOT {_OPEN} AND {_OF_FEED} < {MOST_OF_FEED}
            ORDER BY last_visited_at NULLS FIRST, feeds.id LIMIT max({MOST_OF_USER} - {OF_USER}, 0)
            ON CONFLICT DO NOTHING""",
            [at, milliseconds(now), *rested_params(now), *params, at, at, feed_since, user_id, user_since],
            name="request visits",
        ),
        Statement(
            f"""UPDATE refresh_requests SET others = json_insert(others, '$[#]', ?)
            WHERE feed_id IN ({of_scope}) AND state <> 'done' AND user_id <> ? AND NOT {HAS_JOINED}""",
            [user_id, *params, user_id, user_id],
            name="join requests for visits",
        ),
        Statement(
            f"""SELECT count(*) AS feeds, count(*) FILTER (WHERE {_OPEN}) AS requested,
              count(*) FILTER (WHERE NOT ({POLLED})) AS off,
              count(*) FILTER (WHERE {POLLED} AND NOT ({NOT_HELD}) AND NOT {_OPEN}) AS held
            FROM subscriptions AS s CROSS JOIN feeds ON feeds.id = s.feed_id WHERE {condition}""",
            [at, at, *params],
            name="count requested feeds",
        ),
    ]


def requested_of(result: Result) -> Requested:
    """The result of `request_many`."""
    [row] = result.rows
    return Requested(
        feeds=int(row["feeds"]),
        requested=int(row["requested"] or 0),
        held=int(row["held"] or 0),
        off=int(row["off"] or 0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTask:
    """A task with its feed's title, or its URL."""

    row: Row
    """For `reader.refresh.task_of`."""
    name: str


def list_tasks(user_id: str, *, since: datetime, now: datetime, limit: int) -> Statement:
    """A query for the tasks of a user that are not done, or that were requested since then; the newest ones,
    for `named_tasks`. Searches are not among them."""
    return Statement(
        f"""SELECT r.id, r.kind, r.feed_id, r.address, r.state, r.requested_at, r.begins_at, r.finished_at,
          r.result, coalesce(s.title, feeds.title) AS title, feeds.url
        FROM subscriptions AS s
        CROSS JOIN refresh_requests AS r ON r.feed_id = s.feed_id
        CROSS JOIN feeds ON feeds.id = s.feed_id
        WHERE s.user_id = ? AND (r.user_id = ? OR {HAS_JOINED})
          AND (r.state <> 'done' OR r.requested_ms >= ?)
        ORDER BY r.state = 'done', r.requested_ms DESC, s.position, s.feed_id LIMIT ?""",
        [user_id, user_id, user_id, milliseconds(max(since, now - KEPT)), limit],
        name="list tasks",
    )


def named_tasks(result: Result) -> list[NamedTask]:
    """The result of `list_tasks`: the tasks that are not done first."""
    return [NamedTask(row=row, name=row["title"] or shown_url(row["url"])) for row in result.rows]
