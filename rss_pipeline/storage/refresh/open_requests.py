"""Requests for visits as runs see them: those that are open, the claim of a run, and its answers.

How users make and read them is refresh_requests.py's. A run's requests live by a lease, as its feeds do: when
it is over, they are open again.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant, milliseconds
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.storage.database import Database, Row, Statement, one
from rss_pipeline.storage.feeds.claimable import AFTER_ANSWER
from rss_pipeline.storage.refresh.refresh_requests import (
    RequestKind,
    forget_statement,
)
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, LIVE_TOKENS, chunked, compact, number

MOST_ATTEMPTS = 3
"""Claims of one request by runs that died. A fourth could end as they did."""

_OPEN = f"(state = 'queued' OR (state = 'running' AND lease_token NOT IN ({LIVE_TOKENS})))"
"""Waits for a run. Binds the leases' clock."""


_RECENT = timedelta(minutes=10)
_SERVED = """SELECT user_id AS served_id, count(*) AS n FROM refresh_requests
  WHERE finished_at > ? GROUP BY user_id"""
_HAS_TURN = "coalesce(begins_at, '') <= ?"
"""Waits for no turn of its user (new_addresses.py). Binds now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A request that a run has claimed."""

    id: str
    kind: RequestKind
    user_id: str
    users: str
    """All who wait for it, as one value: by this a run is shared."""
    feed_id: str | None
    address: str | None
    wishes: Wishes
    requested_ms: int
    attempts: int
    """Claims so far, this one included, but for those that were put back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The requests that are not done and have their turn. A run for those that it could begin with now is
    worth its start."""

    count: int
    can_begin: int
    oldest_ms: int | None
    """The time of the oldest of those; milliseconds since 1970."""
    soon: int = 0
    """The requests that get their turn within a minute."""


def waiting(database: Database, *, now: datetime, lease_now: datetime | None = None) -> Waiting:
    """Settle the requests for feeds that other runs have visited since, and count what is left."""
    clock = None if lease_now is None else instant(lease_now)
    _, counts = database.batch([settle_statement(now, clock), _count_statement(now, clock)])
    row = one(counts) or {}
    oldest = row["oldest_ms"]
    return Waiting(
        count=int(row["count"]),
        can_begin=int(row["can_begin"] or 0),
        soon=int(row["soon"] or 0),
        oldest_ms=None if oldest is None else int(oldest),
    )


def _count_statement(now: datetime, clock: str | None) -> Statement:
    free = f"(feeds.lease_token IS NULL OR feeds.lease_token NOT IN ({LIVE_TOKENS}))"
    # A poll that holds several feeds and still this one's host may not have come to it. It makes way, but
    # only for a run that waits: without one, a person would wait for a minute or two.
    makes_way = f"""(r.kind = 'refresh' AND EXISTS (SELECT 1 FROM leases, json_each(leases.hosts) AS j
      WHERE leases.token = feeds.lease_token AND leases.expires_at > {DB_NOW} AND j.value = feeds.host
        AND (SELECT count(*) FROM json_each(leases.feeds)) > 1))"""
    begins = f"({_OPEN.replace('lease_token', 'r.lease_token')} AND ({free} OR {makes_way}))"
    return Statement(
        f"""SELECT count(*) FILTER (WHERE has_turn = 1) AS count, sum(begins * has_turn) AS can_begin,
          min(CASE WHEN begins = 1 AND has_turn = 1 THEN made END) AS oldest_ms, sum(1 - has_turn) AS soon
        FROM (SELECT {number(begins)} AS begins, {number(_HAS_TURN)} AS has_turn, requested_ms AS made
          FROM refresh_requests AS r LEFT JOIN feeds ON feeds.id = r.feed_id
          WHERE state <> 'done' AND {_HAS_TURN})""",
        [clock, clock, clock, instant(now), instant(now + AFTER_ANSWER)],
        name="count requests for visits",
    )


def settle_statement(now: datetime, clock: str | None) -> Statement:
    """A statement that answers open requests for feeds that were visited since they were made, by what that
    visit left."""
    new = """(SELECT count(*) FROM items WHERE items.feed_id = feeds.id
      AND items.created_at >= refresh_requests.requested_at)"""
    return Statement(
        f"""UPDATE refresh_requests SET state = 'done', finished_at = ?, lease_token = NULL,
          result = json_object(
            'outcome', CASE WHEN consecutive_failures > 0 THEN 'failed'
              WHEN {new} > 0 THEN 'stored' ELSE 'unchanged' END,
            'items_new', {new}, 'milliseconds', cast(max(? - requested_ms, 0) AS INTEGER),
            'error_kind', CASE WHEN consecutive_failures > 0 THEN last_error_kind END,
            'error', CASE WHEN consecutive_failures > 0 THEN last_error END)
        FROM feeds WHERE feeds.id = refresh_requests.feed_id AND state <> 'done'
          AND {_OPEN.replace("lease_token", "refresh_requests.lease_token")}
          AND feeds.last_visited_at IS NOT refresh_requests.seen_visit""",
        [instant(now), milliseconds(now), clock],
        name="settle requests for visits",
    )


def claim_requests(
    database: Database,
    *,
    run_id: str,
    token: str,
    lease_seconds: int,
    limit: int,
    now: datetime,
    lease_now: datetime | None = None,
) -> list[OpenRequest]:
    """Take open requests for a run under a lease with this token: in turns of their users, after what each
    has had in the last minutes, and of a user's the oldest first.

    Those that a visit of another run has answered meanwhile are settled, not taken.
    """
    clock = None if lease_now is None else instant(lease_now)
    at = instant(now)
    recently = instant(now - _RECENT)
    wanted = f"""SELECT id FROM (
        SELECT id, user_id, requested_ms,
          row_number() OVER (PARTITION BY user_id, others ORDER BY requested_ms, id) AS turn
        FROM refresh_requests WHERE state <> 'done' AND {_OPEN} AND {_HAS_TURN}) AS r
      LEFT JOIN ({_SERVED}) AS served ON served.served_id = r.user_id
      ORDER BY turn + coalesce(n, 0), requested_ms, id LIMIT ?"""
    results = database.batch(
        [
            settle_statement(now, clock),
            forget_statement(now),
            Statement(_SERVED, [recently], name="read users with finished requests"),
            Statement(
                f"""UPDATE refresh_requests SET state = 'running', lease_token = ?, attempts = attempts + 1
                WHERE id IN ({wanted})
                RETURNING id, kind, user_id, others, feed_id, address, wishes, requested_ms, attempts""",
                [token, clock, at, recently, limit],
                name="claim requests for visits",
            ),
            Statement(
                f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
                SELECT ?, ?, {EXPIRY}, ?, '[]', '[]'
                WHERE EXISTS (SELECT 1 FROM refresh_requests WHERE state <> 'done' AND lease_token = ?)""",
                [token, run_id, clock, lease_seconds, lease_seconds, token],
                name="lease requests for visits",
            ),
        ]
    )
    served = {row["served_id"]: int(row["n"]) for row in results[2].rows}
    of_users: Counter[tuple[str, str]] = Counter()
    turns: list[tuple[int, Row]] = []
    for row in sorted(results[3].rows, key=lambda row: (row["requested_ms"], row["id"])):
        of_users[row["user_id"], row["others"]] += 1
        turns.append((of_users[row["user_id"], row["others"]] + served.get(row["user_id"], 0), row))
    return [_request_of(row) for _, row in sorted(turns, key=lambda turn: turn[0])]


def _request_of(row: Row) -> OpenRequest:
    return OpenRequest(
        id=row["id"],
        kind=row["kind"],
        user_id=row["user_id"],
        users=f"{row['user_id']} {row['others']}",
        feed_id=row["feed_id"],
        address=row["address"],
        wishes=Wishes(**json.loads(row["wishes"])),
        requested_ms=int(row["requested_ms"]),
        attempts=int(row["attempts"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """The end of a request. `result` is what its task shows; JSON."""

    id: str
    result: Row


def answer_requests(
    database: Database, token: str, answers: Sequence[RequestResult], *, now: datetime
) -> None:
    """End these requests, as far as they are still this lease's."""
    rows = (compact([answer.id, compact(answer.result)]) for answer in answers)
    statements = [
        Statement(
            """UPDATE refresh_requests SET state = 'done', finished_at = ?, lease_token = NULL,
              result = json_extract(v.value, '$[1]')
            FROM json_each(?) AS v
            WHERE refresh_requests.id = json_extract(v.value, '$[0]') AND state = 'running'
              AND lease_token = ?""",
            [instant(now), chunk, token],
            name="answer requests for visits",
        )
        for chunk in chunked(rows)
    ]
    if statements:
        database.batch(statements)


def release_requests(database: Database, token: str) -> None:
    """Open the requests again that this lease still holds: nothing of theirs has failed."""
    database.query(
        """UPDATE refresh_requests SET state = 'queued', lease_token = NULL, attempts = max(attempts - 1, 0)
        WHERE state <> 'done' AND lease_token = ?""",
        [token],
        name="release requests for visits",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingLease:
    """A live lease that keeps requests waiting."""

    token: str
    run_id: str


def holding_leases(database: Database, *, lease_now: datetime | None = None) -> list[HoldingLease]:
    """The live leases that hold requests, or feeds that requests wait for."""
    clock = None if lease_now is None else instant(lease_now)
    rows = database.query(
        f"""SELECT token, run_id FROM leases WHERE token IN ({LIVE_TOKENS}) AND (
          token IN (SELECT lease_token FROM refresh_requests WHERE state <> 'done')
          OR token IN (SELECT feeds.lease_token FROM refresh_requests AS r
            JOIN feeds ON feeds.id = r.feed_id WHERE r.state <> 'done'))""",
        [clock],
        name="find leases that keep requests waiting",
    ).rows
    return [HoldingLease(token=row["token"], run_id=row["run_id"]) for row in rows]
