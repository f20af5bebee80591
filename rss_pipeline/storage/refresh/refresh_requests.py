"""Requests of users for a visit now: made, read, and the tasks that follow them.

The side of the run, which claims and answers them, is open_requests.py's; what an answer means to a user is
reader.refresh's. A request is for one feed (`refresh`, `first`) or for an address (`find`).
"""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import instant, milliseconds
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.storage.database import Row, Statement
from rss_pipeline.storage.feeds.claimable import AFTER_ANSWER, RESTED, rested_params
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.feeds.stored_holds import NOT_HELD
from rss_pipeline.storage.refresh.new_addresses import LATER, NOT_OWNER, queue_search, read_queue
from rss_pipeline.storage.sql import LIVE_TOKENS, compact

RequestKind = Literal["refresh", "first", "find"]

KEPT = timedelta(hours=24)
"""After its end a task can be read for so long."""
USER_SPAN = timedelta(hours=1)
MOST_OF_USER = 1_000
"""Requests of one user in `USER_SPAN`."""
FEED_SPAN = timedelta(minutes=10)
MOST_OF_FEED = 60
"""Requests for one feed in `FEED_SPAN`, of all users."""

BEGINS_AT = f"""CASE WHEN NOT {RESTED}
  THEN strftime('%Y-%m-%dT%H:%M:%SZ', last_fetched_at, '+{AFTER_ANSWER.seconds} seconds') END"""
"""The time before which no visit is made by hand; NULL for at once. Binds `rested_params`."""
HAS_JOINED = "EXISTS (SELECT 1 FROM json_each(others) AS j WHERE j.value = ?)"
"""A user shares the request. Binds the user's id."""
OF_USER = "(SELECT count(*) FROM refresh_requests WHERE user_id = ? AND requested_at > ?)"
"""The number of a user's requests since an instant."""
_OPEN_OF_USER = "(SELECT count(*) FROM refresh_requests WHERE user_id = ? AND state <> 'done')"
_OF_FEED = "(SELECT count(*) FROM refresh_requests WHERE feed_id = ? AND requested_at > ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """A user's request for a visit of a feed that the user subscribes to. `id` cannot be guessed."""

    id: str
    user_id: str
    feed_id: str
    now: datetime
    kind: RequestKind = "refresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A user's request to find the feed of an address and to subscribe to it."""

    id: str
    user_id: str
    address: str
    now: datetime
    wishes: Wishes


def request_statements(request: RefreshRequest) -> list[Statement]:
    """Statements that make the request, or join the one that is open for the feed; the last one's row is for
    the answer, none if the user does not subscribe to the feed.

    Nothing is written for a feed that is not polled or on hold, and for a user or feed with too many.
    """
    user, feed, at = request.user_id, request.feed_id, instant(request.now)
    user_since, feed_since = instant(request.now - USER_SPAN), instant(request.now - FEED_SPAN)
    return [
        forget_statement(request.now),
        Statement(
            f"""INSERT INTO refresh_requests
              (id, kind, user_id, feed_id, requested_at, requested_ms, seen_visit, begins_at)
            SELECT ?, ?, s.user_id, feeds.id, ?, ?, last_visited_at, {BEGINS_AT}
            FROM feeds JOIN subscriptions AS s ON s.feed_id = feeds.id
            WHERE s.user_id = ? AND feeds.id = ? AND {POLLED} AND {NOT_HELD}
              AND {OF_USER} < {MOST_OF_USER} AND {_OF_FEED} < {MOST_OF_FEED}
            ON CONFLICT DO NOTHING""",
            [
                *(request.id, request.kind, at, milliseconds(request.now)),
                *(*rested_params(request.now), user, feed),
                *(at, at),
                *(user, user_since, feed, feed_since),
            ],
            name="request a visit",
        ),
        Statement(
            f"""UPDATE refresh_requests SET others = json_insert(others, '$[#]', ?)
            WHERE feed_id = ? AND state <> 'done' AND user_id <> ? AND NOT {HAS_JOINED}
              AND EXISTS (SELECT 1 FROM subscriptions WHERE user_id = ? AND feed_id = ?)""",
            [user, feed, user, user, user, feed],
            name="join a request for a visit",
        ),
        Statement(
            f"""SELECT r.id AS task_id, r.state, r.begins_at, {POLLED} AS is_polled,
              coalesce(CAST(feeds.lease_token IN ({LIVE_TOKENS}) AS INTEGER), 0) AS is_visited,
              pauses.hold_until, pauses.reason AS hold_reason, pauses.host AS hold_host,
              {OF_USER} AS of_user, {_OF_FEED} AS of_feed, feeds.id IN ({LATER}) AS waits_for_turn
            FROM feeds JOIN subscriptions AS s ON s.feed_id = feeds.id
            LEFT JOIN refresh_requests AS r ON r.feed_id = feeds.id AND r.state <> 'done'
            LEFT JOIN (
              SELECT NULL AS feed_id, host, hold_until, reason FROM hosts
              UNION ALL SELECT feed_id, host, hold_until, reason FROM feed_holds
            ) AS pauses ON pauses.hold_until > ?
              AND (pauses.feed_id = feeds.id OR (pauses.feed_id IS NULL AND pauses.host = feeds.host))
            WHERE s.user_id = ? AND feeds.id = ? ORDER BY pauses.hold_until DESC LIMIT 1""",
            [None, user, user_since, feed, feed_since, at, at, user, feed],
            name="read a request for a visit",
        ),
    ]


def search_request_statements(request: SearchRequest) -> list[Statement]:
    """Statements that make the request, unless one of the user's for the address is open; the last one's row
    has the id of the open one, none if the user has made too many; the one before has the user's queue. A
    search waits for its turn (new_addresses.py).
    """
    user, address, since = request.user_id, request.address, instant(request.now - USER_SPAN)
    ours = "user_id = ? AND address = ? AND state <> 'done'"
    return [
        forget_statement(request.now),
        Statement(
            f"""INSERT INTO refresh_requests
              (id, kind, user_id, address, requested_at, requested_ms, wishes)
            SELECT ?, 'find', ?, ?, ?, ?, ?
            WHERE NOT EXISTS (SELECT 1 FROM refresh_requests WHERE {ours})
              AND (NOT {NOT_OWNER} OR ({OF_USER} < {MOST_OF_USER} AND {_OPEN_OF_USER} < {MOST_OF_USER}))""",
            [
                *(request.id, user, address, instant(request.now), milliseconds(request.now)),
                compact(asdict(request.wishes)),
                *(user, address),
                *(user, user, since, user),
            ],
            name="request a search",
        ),
        *queue_search(user, request.id, now=request.now),
        read_queue(user, now=request.now),
        Statement(
            f"SELECT id AS task_id, state, begins_at FROM refresh_requests WHERE {ours}",
            [user, address],
            name="read a request for a search",
        ),
    ]


def task_statement(user_id: str, id: str, *, now: datetime) -> Statement:
    """A query for a task of this user, or one that this user joined: one row for `task_of`, or none."""
    return Statement(
        f"""SELECT id, kind, feed_id, address, wishes, state, requested_at, begins_at, finished_at, result
        FROM refresh_requests
        WHERE id = ? AND (user_id = ? OR {HAS_JOINED}) AND (finished_at IS NULL OR finished_at > ?)""",
        [id, user_id, user_id, instant(now - KEPT)],
        name="read task",
    )


def forget_statement(now: datetime) -> Statement:
    """A statement that removes the requests that ended too long ago."""
    return Statement(
        "DELETE FROM refresh_requests WHERE finished_at <= ?",
        [instant(now - KEPT)],
        name="forget old requests for visits",
    )


def has_too_many(row: Row) -> bool:
    """True where the user of this row of `request_statements` has made too many requests."""
    return int(row["of_user"]) >= MOST_OF_USER
