"""Claims of Postgres: in two batches that run beside those of others, and the healing before them.

What may be claimed, and the lease, are storage.feeds'; the locks are database.py's.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, Protocol

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.storage.database import Database, Result, Statement, Value, one
from rss_pipeline.storage.feeds.claimable import (
    BUCKET,
    FULL_LENGTH,
    PUT_BACK,
    TOMORROW,
    UNLEASED,
    YESTERDAY,
    Due,
    Named,
    Wanted,
    drop_old_leases,
    heal_schedule,
)
from rss_pipeline.storage.feeds.claims import COUNTED, OF_LEASE, RANKED, Claiming
from rss_pipeline.storage.feeds.feed_row import FEED_COLUMNS
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.feeds.stored_holds import LATE_FEED_HOLD, NOT_HELD, WRONG_CLOCK, known_statement
from rss_pipeline.storage.sql import DB_NOW, compact, number

Beside = Literal["choose", "take"]
"""choose: one such batch after the other, and after those that make leases hold more or longer. take: at any
time; its statements skip rows that are locked."""
_LADDER = (1.25, 12.5, 125)
"""Feeds that are ranked for each one wanted where claims follow one another quickly: each next number where
those before it have too few hosts."""
_TRIES = 5
"""Tries of a claim of feeds that others have changed or hold locked just now, each of them."""


class SkipsLocked(Database, Protocol):
    """A `Database` with batches that need not wait for those that write: they run beside them."""

    def batch_beside(self, statements: Sequence[Statement], beside: Beside) -> list[Result]:
        """As `batch`, beside batches that write. Not for statements that wait for a row of another table than
        `leases`, or that look before they write."""
        ...


def claim_beside(database: SkipsLocked, claiming: Claiming) -> tuple[Result, Result]:
    """A claim in two batches, beside other claims and batches that write, as of `ClaimsFeeds.claim_feeds`.

    The first makes the lease, and waits for other claims only: from its commit on, no other claim takes these
    feeds or hosts. The second gives the feeds its token, but for those that another batch has locked or
    changed meanwhile.
    """
    taking = [_take(claiming), known_statement(claiming.wanted.now)]
    for _ in range(_TRIES):
        if not _chosen(database, claiming):
            break
        claimed, holds = database.batch_beside(taking, "take")
        if not claimed.values:
            # Not one: then as a batch among those that write, so that no other one has locked them.
            claimed, holds = database.batch(taking)
        if claimed.values:
            return claimed, holds
        database.query("DELETE FROM leases WHERE token = ?", [claiming.token], name="end empty lease")
    return Result((), [], 0), database.batch([known_statement(claiming.wanted.now)])[0]


def _chosen(database: SkipsLocked, claiming: Claiming) -> bool:
    """Make the lease; False where there is nothing to be claimed."""
    for choose in _choose_few(claiming):
        made, _ = database.batch_beside([choose, _drop_empty(claiming)], "choose")
        if made.values:
            return bool(made.rows[0]["found"])
    return False


def _choose_few(claiming: Claiming) -> Iterator[Statement]:
    """Statements that make the lease: try them in order until one makes it. They return if it has feeds;
    where there are none at all, the first one shows it.

    Most of the oldest that are due are those of live leases. They are passed over by their hosts alone, in a
    query of its own (LIMIT -1 keeps it apart): a host is among the first columns of a row, a lease among the
    last, and reading up to there is a third of the work.
    """
    for each in _LADDER if claiming.wanted.ids is None and not claiming.suspects else ():
        first = math.ceil(each * claiming.limit)
        if isinstance(claiming.wanted, Named) or claiming.wanted.shard is None:
            candidates, params = _oldest(claiming, first)
        else:
            of_all = replace(claiming.wanted, shard=None)
            candidates, params = _oldest_of(claiming, claiming.wanted.shard, of_all, first)
        # Fewer than these are all that there are. So few may all be of one user, though others wait.
        enough = "(SELECT count(*) FROM users) < 2" if each is _LADDER[0] else "true"
        yield claiming.choose(
            candidates,
            params,
            if_found=f"(n = {claiming.limit} AND {enough} OR (SELECT count(*) FROM free) < {first})",
            returning=_FOUND,
            planned_once=claiming.has_one_plan,
        )
    # Feeds that are named are looked up first, for the reason that `take` gives.
    named = claiming.wanted.ids
    of = (
        "feeds"
        if named is None
        else f"(SELECT * FROM feeds WHERE id = ANY(ARRAY{_LISTED}) LIMIT -1) AS feeds"
    )
    candidates, params = claiming.free(of=of)
    yield claiming.choose(
        candidates,
        [*([] if named is None else [compact(list(named))]), *params],
        returning=_FOUND,
    )


def _oldest(claiming: Claiming, first: int) -> tuple[str, list[Value]]:
    """A query for the oldest feeds that may be claimed, so many of them, and its parameters."""
    wanting, params = claiming.wanting()
    is_due = isinstance(claiming.wanted, Due)
    return (
        f"""SELECT {RANKED} FROM (
            SELECT * FROM feeds WHERE {POLLED} AND host NOT IN {_HELD_HOSTS}
            {"AND next_fetch_at <= ?" if is_due else ""} ORDER BY next_fetch_at LIMIT -1
          ) AS feeds WHERE {wanting} AND {UNLEASED} AND {NOT_HELD} LIMIT {first}""",
        [
            *(claiming.clock, *([instant(claiming.wanted.now)] if is_due else ())),
            *(*params, claiming.clock, *2 * [instant(claiming.wanted.now)]),
        ],
    )


def _oldest_of(claiming: Claiming, shard: Shard, of_all: Wanted, first: int) -> tuple[str, list[Value]]:
    """The same of a shard: from the index by bucket, so that it reads no feeds of other shards. `of_all`
    is what is wanted of all of them.

    A first look at the oldest few of each bucket shows up to which time the wanted ones are due at most;
    then each bucket gives all up to that time.
    """
    wanting, wanting_params = claiming.wanting_of(of_all)
    of_bucket = f"""{POLLED} AND host NOT IN {_HELD_HOSTS} AND {wanting} AND {UNLEASED} AND {NOT_HELD}"""
    params = [
        *(compact(shard.buckets), claiming.clock, *wanting_params),
        *(claiming.clock, *2 * [instant(claiming.wanted.now)]),
    ]

    def oldest(each: int, until: str = "") -> str:
        return f"""SELECT f.*
            FROM (SELECT {number("value")} AS of_shard FROM json_each(?)) AS b CROSS JOIN LATERAL (
              SELECT id, host, next_fetch_at, listed FROM feeds
              WHERE {BUCKET} = b.of_shard AND {of_bucket}{until}
              ORDER BY next_fetch_at LIMIT {each}) AS f"""

    few = oldest(2 * math.ceil(first / len(shard.buckets)))
    until = f"""coalesce(
        (SELECT next_fetch_at FROM ({few}) ORDER BY next_fetch_at LIMIT 1 OFFSET {first - 1}), '9999')"""
    return (
        f"""SELECT {RANKED} FROM (
            {oldest(first, f" AND next_fetch_at <= {until}")} ORDER BY f.next_fetch_at LIMIT {first}
          ) AS feeds""",
        [*params, *params],
    )


def _drop_empty(claiming: Claiming) -> Statement:
    """Drop the lease again that has no feeds."""
    return Statement(
        "DELETE FROM leases WHERE token = ? AND feeds = '[]'", [claiming.token], name="drop empty lease"
    )


def _take(claiming: Claiming) -> Statement:
    """Give the lease's feeds its token, but for those that are locked or not to be claimed any more.

    With lists the planner cannot but look up each feed by its id; of a join it
    may read a million feeds for five hundred.
    """
    wanting, params = claiming.wanting()
    return Statement(
        f"""UPDATE feeds SET lease_token = ?, {COUNTED}
        WHERE ctid = ANY(ARRAY(SELECT ctid FROM feeds WHERE id = ANY(ARRAY{OF_LEASE})
          AND {wanting} AND {POLLED} AND {UNLEASED} FOR UPDATE SKIP LOCKED))
        RETURNING {FEED_COLUMNS}""",
        [claiming.token, claiming.token, claiming.token, *params, claiming.clock],
        name="take chosen feeds",
        planned_once=claiming.has_one_plan,
    )


def heal_beside(database: Database, now: datetime, clock: str | None) -> None:
    """Look for what is to heal, and heal it in a batch of its own: nearly never is there anything."""
    late = instant(now + WRONG_CLOCK)
    found = one(
        database.query(
            f"""SELECT (SELECT value FROM sequences WHERE name = 'clock') AS clock,
              (SELECT max(next_fetch_at) FROM feeds WHERE {POLLED}) > ?
                OR EXISTS (SELECT 1 FROM hosts WHERE hold_until > ?)
                OR EXISTS (SELECT 1 FROM feed_holds WHERE {LATE_FEED_HOLD})
                OR EXISTS (SELECT 1 FROM leases WHERE expires_at > {TOMORROW}
                  OR expires_at > {FULL_LENGTH.format(more=" + 60")}
                  OR expires_at < {YESTERDAY}) AS found""",
            [late, late, late, late, clock, clock, clock],
            name="look for what is to heal",
        )
    )
    assert found is not None
    noted = found["clock"]
    ahead = PUT_BACK.total_seconds() + 1 if noted is None else noted - int(now.timestamp())
    was_put_back = ahead > PUT_BACK.total_seconds()
    if found["found"] or abs(ahead) > PUT_BACK.total_seconds():
        # The first is for a clock that was put back, and looks at each feed.
        healing = heal_schedule(now, clock)
        database.batch([*healing[0 if was_put_back else 1 :], drop_old_leases(clock)])


_LISTED = "(SELECT value FROM json_each(?))"
_HELD_HOSTS = f"""(
    SELECT jsonb_array_elements_text(CAST(hosts AS jsonb)) FROM leases WHERE expires_at > {DB_NOW})"""
"""For Postgres, which parses a list so in a third of the time."""
_FOUND = " RETURNING CAST(feeds <> '[]' AS INTEGER) AS found"
