"""Feeds that a claim may take: the conditions in SQL, and the feeds a caller wants.

Taking them is claims.py's, counting them due.py's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.storage.database import Database, Statement, Value
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.feeds.stored_holds import (
    NOT_HELD,
    WRONG_CLOCK,
    heal_wrong_clock,
)
from rss_pipeline.storage.sql import DB_NOW, LIVE_TOKENS, compact, number

UNLEASED = f"""(lease_token IS NULL
      OR lease_token NOT IN ({LIVE_TOKENS}))"""
"""No live lease holds the feed. Binds the leases' clock."""
FREE = f"""{POLLED} AND {UNLEASED}
    AND host NOT IN (SELECT j.value FROM leases, json_each(leases.hosts) AS j WHERE expires_at > {DB_NOW})
    AND {NOT_HELD}"""
"""Polled (registered and enabled), and neither leased nor on hold, nor its host. Binds `free_params`."""

_NOT_AWAITED = f"""host NOT IN (
    SELECT j.value FROM leases, json_each(leases.awaited) AS j WHERE expires_at > {DB_NOW})"""
"""No refresh by hand waits for its host. Binds the leases' clock."""
_ROUND = timedelta(minutes=2)
"""The time that a poll has for its requests."""
_SPENT = """kept = 'hosts' AND asked_at <= ?
      AND strftime('%Y-%m-%dT%H:%M:%SZ', asked_at, '+' || seconds || ' seconds') > ?"""
HAS_TURN = f"""host NOT IN (SELECT host FROM host_gaps WHERE {_SPENT})
    AND (NOT EXISTS (SELECT 1 FROM host_gaps WHERE kept = 'hosts' AND host < '/')
      OR NOT EXISTS (SELECT 1 FROM host_gaps AS g WHERE {_SPENT} AND g.host < '/'
        AND instr('.' || feeds.host || '/', g.host || '/') > 0))"""
"""A poll can begin with it, so that it is worth a run: within the round the gap is over that its host needs,
or its domain, for which a name that begins with a point stands. A last request in the future is of a wrong
clock, and none. Binds `turn_params`."""
DUE = f"{_NOT_AWAITED} AND next_fetch_at <= ?"
UNVISITED = "(last_visited_at IS NULL OR last_visited_at < ? OR last_visited_at > ?)"
"""Not visited since an instant. A visit that ended in the future was a wrong clock's, and is none. Binds
`unvisited_params`."""
_WAITED = timedelta(minutes=1)
"""A claim that waited for others to write compares with the time before: what they visited meanwhile did not
end in the future. No database lets it wait for longer."""
AFTER_ANSWER = timedelta(minutes=1)
RESTED = """(next_fetch_at <= ? OR last_fetched_at IS NULL OR last_fetched_at <= ? OR last_fetched_at > ?)"""
"""Due, or its last answer is a minute ago: a visit that a person requests comes no sooner. Binds
`rested_params`."""
AMONG = "id IN (SELECT value FROM json_each(?))"
BUCKET = "coalesce(bucket, 0)"
OF_SHARD = f"{BUCKET} IN (SELECT {number('value')} FROM json_each(?))"
"""The feed's host is one of a shard's. Binds the shard's buckets, a JSON list."""
SUSPECT = "(unclosed_claims > 0 OR last_error_kind IS 'crashed')"
"""The last claim never ended in a close, or the last document crashed its parser."""
COMPANY = "CASE WHEN last_error_kind IS 'crashed' OR claimed_with < 1 THEN 1 ELSE claimed_with END"
"""The number of feeds with which a suspect was claimed; 1 for a document that crashed its parser."""


PUT_BACK = timedelta(minutes=15)
"""A clock that is found further behind than this was put back. R2 refuses requests of a clock so wrong."""
TOMORROW = f"strftime('%Y-%m-%dT%H:%M:%SZ', {DB_NOW}, '+1 day')"
YESTERDAY = f"strftime('%Y-%m-%dT%H:%M:%SZ', {DB_NOW}, '-1 day')"
FULL_LENGTH = f"strftime('%Y-%m-%dT%H:%M:%SZ', {DB_NOW}, '+' || (seconds{{more}}) || ' seconds')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Claim what is due at `now`, of all shards or of one; only `ids`, if given."""

    now: datetime
    shard: Shard | None = None
    ids: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotVisitedSince:
    """Claim each feed without a visit since `since`, due or not, in back-off or not; only `ids`, if given,
    and only those of the shard, if given."""

    since: datetime
    now: datetime
    ids: Sequence[str] | None = None
    shard: Shard | None = None
    rested: bool = False
    """As for `Named`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Claim these feeds and no others, due or not."""

    ids: Sequence[str]
    now: datetime
    rested: bool = False
    """Only those that are due, or whose last answer is a minute ago."""


Wanted = Due | NotVisitedSince | Named


def rested_params(now: datetime) -> list[Value]:
    """The parameters of `RESTED`."""
    return [instant(now), instant(now - AFTER_ANSWER), instant(now + _WAITED)]


def unvisited_params(since: datetime, now: datetime) -> list[Value]:
    """The parameters of `UNVISITED`."""
    return [instant(since), instant(now + _WAITED)]


def turn_params(now: datetime) -> list[Value]:
    """The parameters of `HAS_TURN`."""
    return [instant(now), instant(now + _ROUND), instant(now), instant(now + _ROUND)]


def without_turn(now: datetime) -> Statement:
    """A query for a host of which no visit can begin within a round."""
    return Statement(
        f"SELECT host FROM host_gaps WHERE {_SPENT} LIMIT 1",
        [instant(now), instant(now + _ROUND)],
        name="find a host without a turn",
    )


def free_params(now: datetime, clock: str | None) -> list[Value]:
    """The parameters of `FREE`."""
    return [clock, clock, instant(now), instant(now)]


def selection(wanted: Wanted, clock: str | None) -> tuple[str, list[Value]]:
    """The condition for the wanted feeds, and its parameters."""
    match wanted:
        case Due(now=now, ids=None, shard=shard):
            return _of_shard(DUE, [clock, instant(now)], shard)
        case Due(now=now, ids=ids, shard=shard):
            due = [clock, instant(now), compact(list(ids or ()))]
            return _of_shard(f"{DUE} AND {AMONG}", due, shard)
        case NotVisitedSince(since=since, now=now, ids=None, shard=shard):
            return _of_shard(UNVISITED, unvisited_params(since, now), shard)
        case NotVisitedSince(since=since, now=now, ids=ids, shard=shard, rested=rested):
            among = [*unvisited_params(since, now), compact(list(ids or ()))]
            if rested:
                return _of_shard(
                    f"{UNVISITED} AND {AMONG} AND {RESTED}", [*among, *rested_params(now)], shard
                )
            return _of_shard(f"{UNVISITED} AND {AMONG}", among, shard)
        case Named(ids=ids, now=now, rested=True):
            return f"{AMONG} AND {RESTED}", [compact(list(ids)), *rested_params(now)]
        case Named(ids=ids):
            return AMONG, [compact(list(ids))]


def _of_shard(condition: str, params: Sequence[Value], shard: Shard | None) -> tuple[str, list[Value]]:
    """The condition as it is without a shard, so that one poll for all has the statements it always had."""
    if shard is None:
        return condition, list(params)
    return f"{condition} AND {OF_SHARD}", [*params, compact(shard.buckets)]


@runtime_checkable
class HealsSchedules(Protocol):
    """A `Database` that heals a schedule by itself: a claim would wait for all that write otherwise."""

    def heal_schedules(self, now: datetime, clock: str | None) -> None:
        """As the statements of `heal_schedule`."""
        ...


def healing_first(database: Database, now: datetime, clock: str | None) -> list[Statement]:
    """The statements of `heal_schedule`, to be put before those of a claim or a count; none where the
    database has healed it by itself."""
    if isinstance(database, HealsSchedules):
        database.heal_schedules(now, clock)
        return []
    return heal_schedule(now, clock)


def drop_old_leases(clock: str | None) -> Statement:
    """Only those that nothing refers to any more: until then a lapsed lease still names its run."""
    return Statement(f"DELETE FROM leases WHERE expires_at < {YESTERDAY}", [clock], name="drop old leases")


def heal_schedule(now: datetime, clock: str | None) -> list[Statement]:
    """Make due what a wrong clock scheduled, and drop the holds and leases it wrote.

    A clock that was put back by less than a day leaves due times and leases that could be right. So the
    database keeps the last time that a claim has seen: if it is in the future, feeds with a visit in the
    future are due. And a lease that ends later than its length from now is cut to its length: a run that is
    alive renews it within that.
    """
    late = now + PUT_BACK
    return [
        Statement(
            f"""UPDATE feeds SET next_fetch_at = ? WHERE {POLLED} AND last_visited_at > ?
            AND next_fetch_at > coalesce(
              (SELECT ? FROM sequences WHERE name = 'clock' AND value > ?), '9999')""",
            [instant(now), instant(late), instant(now), int(late.timestamp())],
            name="heal schedules of a clock that was put back",
        ),
        Statement(
            """INSERT INTO sequences (name, value) VALUES ('clock', ?)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
              WHERE abs(excluded.value - sequences.value) > ?""",
            [int(now.timestamp()), int(PUT_BACK.total_seconds())],
            name="note the time",
        ),
        Statement(
            f"UPDATE feeds SET next_fetch_at = ? WHERE {POLLED} AND next_fetch_at > ?",
            [instant(now), instant(now + WRONG_CLOCK)],
            name="heal schedules",
        ),
        *heal_wrong_clock(now),
        Statement(
            f"DELETE FROM leases WHERE expires_at > {TOMORROW}",
            [clock],
            name="drop leases of a wrong clock",
        ),
        Statement(
            f"""UPDATE leases SET expires_at = {FULL_LENGTH.format(more="")}
            WHERE expires_at > {FULL_LENGTH.format(more=" + 60")}""",
            [clock, clock],
            name="cut leases of a clock that was put back",
        ),
    ]
