"""Claiming feeds, keeping the claim alive, giving it back: the statements on `leases`.

What a closed visit writes into a feed is in closings.py. Leases live by the database's clock; what is due is
judged by the instant passed in. `now` for a lease is for tests only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed, NextVisit
from rss_pipeline.collector.models.hold import FeedHold
from rss_pipeline.storage.database import Database, Row, Statement, Value, one
from rss_pipeline.storage.feeds.feed_row import FEED_COLUMNS, feed_of
from rss_pipeline.storage.feeds.holds import (
    NOT_HELD,
    KnownHolds,
    feed_statements,
    heal_wrong_clock,
    known_holds,
    known_statement,
)
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, chunked, compact, new_token, storable

PER_HOST = 60
"""Feeds of one host in one claim: what pacing of a second lets through in a round, halved."""
WRONG_CLOCK = timedelta(hours=25)
"""No schedule of ours reaches further, so a later `next_fetch_at` came from a wrong clock and is due."""


_FREE = f"""registered = 1 AND enabled = 1
    AND (lease_token IS NULL OR lease_token NOT IN (SELECT token FROM leases WHERE expires_at > {DB_NOW}))
    AND host NOT IN (SELECT j.value FROM leases, json_each(leases.hosts) AS j WHERE expires_at > {DB_NOW})
    AND {NOT_HELD}"""

_NOT_AWAITED = f"""host NOT IN (
    SELECT j.value FROM leases, json_each(leases.awaited) AS j WHERE expires_at > {DB_NOW})"""
"""Nobody waits for it who goes first."""
_DUE = f"{_NOT_AWAITED} AND next_fetch_at <= ?"
_UNVISITED = "(last_visited_at IS NULL OR last_visited_at < ?)"
_AMONG = "id IN (SELECT value FROM json_each(?))"
RANKED_FIRST = 5000
_SUSPECT = "(unclosed_claims > 0 OR last_error_kind IS 'crashed')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Claim what is due at `now`."""

    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NotVisitedSince:
    """Claim whatever had no visit since `since`, due or not, in backoff or not; of `ids`, where given."""

    since: datetime
    now: datetime
    ids: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Claim these feeds and no others, due or not."""

    ids: Sequence[str]
    now: datetime


Wanted = Due | NotVisitedSince | Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease's token and the feeds it holds, oldest due first."""

    token: str
    feeds: tuple[Feed, ...]
    holds: KnownHolds
    """The pauses known at that moment, of whatever host."""


def claim(
    database: Database,
    wanted: Wanted,
    *,
    run_id: str,
    lease_seconds: int,
    limit: int,
    suspects: bool = False,
    token: str | None = None,
    lease_now: datetime | None = None,
) -> Claim:
    """Take feeds for one run, in one transaction.

    Taken are feeds that are registered and enabled, held by no live lease, whose host is held by no live
    lease, and that are not to be left alone, nor their host: oldest due first, at most `limit`, and at most
    `PER_HOST` of a host unless they are named. With `suspects` those only whose last claim never ended in a
    close (or whose last document crashed us), else those only where it did. `token` is the lease's, by
    default a new one: who knows it can `end` a claim whose answer got lost.
    """
    token = token or new_token()
    clock = None if lease_now is None else instant(lease_now)
    wanting, wanting_params = _wanting(wanted, clock)
    per_host = limit if isinstance(wanted, Named) else PER_HOST
    suspicion = _SUSPECT if suspects else f"NOT {_SUSPECT}"
    choosing = [*wanting_params, *_free(wanted.now, clock)]
    lease = [token, run_id, clock, lease_seconds]
    healing = _heal_wrong_clock(wanted.now, clock)
    results = database.batch(
        [
            *healing,
            # The oldest of every host first, then the oldest of all: a big host cannot starve the others.
            # Nearly always the oldest few thousand have enough hosts among them, and ranking all of a
            # hundred thousand due takes ten times as long; where they have not, all are ranked.
            Statement(
                f"""INSERT INTO leases (token, run_id, expires_at, feeds, hosts)
                {
                    _chosen(
                        f"SELECT id, host, next_fetch_at FROM feeds WHERE {wanting} AND {suspicion}"
                        f" AND {_FREE} ORDER BY next_fetch_at LIMIT {RANKED_FIRST}"
                    )
                }
                WHERE n = max(?, 1)""",
                [*lease, *choosing, per_host, limit, limit],
            ),
            Statement(
                f"""INSERT INTO leases (token, run_id, expires_at, feeds, hosts)
                {
                    _chosen(
                        f"SELECT id, host, next_fetch_at FROM feeds WHERE {wanting} AND {suspicion}"
                        f" AND {_FREE} AND NOT EXISTS (SELECT 1 FROM leases WHERE token = ?)"
                    )
                }
                WHERE n > 0""",
                [*lease, *choosing, token, per_host, limit],
            ),
            Statement(
                f"""UPDATE feeds SET lease_token = ?, unclosed_claims = unclosed_claims + 1
                WHERE id IN (SELECT value FROM json_each((SELECT feeds FROM leases WHERE token = ?)))
                RETURNING {FEED_COLUMNS}""",
                [token, token],
            ),
            # Only what nobody refers to any more: a lapsed lease tells a later reader which run it was.
            Statement(
                f"DELETE FROM leases WHERE expires_at < strftime('%Y-%m-%dT%H:%M:%SZ', {DB_NOW}, '-1 day')",
                [clock],
            ),
            known_statement(wanted.now),
        ]
    )
    feeds = sorted(
        map(feed_of, results[len(healing) + 2].rows), key=lambda feed: (str(feed.next_fetch_at), feed.id)
    )
    return Claim(token=token, feeds=tuple(feeds), holds=known_holds(results[-1]))


def _free(now: datetime, clock: str | None) -> list[Value]:
    return [clock, clock, instant(now), instant(now)]


def _chosen(candidates: str) -> str:
    return f"""SELECT ?, ?, {EXPIRY}, feeds, hosts FROM (
      SELECT json_group_array(id) AS feeds, json_group_array(DISTINCT host) AS hosts, count(*) AS n FROM (
        SELECT id, host FROM (
          SELECT id, host, next_fetch_at,
            row_number() OVER (PARTITION BY host ORDER BY next_fetch_at, id) AS turn
          FROM ({candidates})
        ) WHERE turn <= ? ORDER BY next_fetch_at, id LIMIT ?
      )
    )"""


def _heal_wrong_clock(now: datetime, clock: str | None) -> list[Statement]:
    return [
        Statement(
            "UPDATE feeds SET next_fetch_at = ? WHERE registered = 1 AND enabled = 1 AND next_fetch_at > ?",
            [instant(now), instant(now + WRONG_CLOCK)],
        ),
        *heal_wrong_clock(now),
        Statement(
            f"DELETE FROM leases WHERE expires_at > strftime('%Y-%m-%dT%H:%M:%SZ', {DB_NOW}, '+1 day')",
            [clock],
        ),
    ]


def _wanting(wanted: Wanted, clock: str | None) -> tuple[str, list[Value]]:
    match wanted:
        case Due(now=now):
            return _DUE, [clock, instant(now)]
        case NotVisitedSince(since=since, ids=None):
            return _UNVISITED, [instant(since)]
        case NotVisitedSince(since=since, ids=ids):
            return f"{_UNVISITED} AND {_AMONG}", [instant(since), compact(list(ids or ()))]
        case Named(ids=ids):
            return _AMONG, [compact(list(ids))]


def renew(
    database: Database, tokens: Sequence[str], *, lease_seconds: int, lease_now: datetime | None = None
) -> int:
    """Put the end of these leases off; how many were still alive. A lapsed lease stays lapsed."""
    clock = None if lease_now is None else instant(lease_now)
    return database.query(
        f"UPDATE leases SET expires_at = {EXPIRY}"
        f" WHERE token IN (SELECT value FROM json_each(?)) AND expires_at > {DB_NOW}",
        [clock, lease_seconds, compact(list(tokens)), clock],
    ).changes


def free_hosts(tokens: Sequence[str], hosts: Sequence[str] | None = None) -> Statement:
    """Free these hosts, or all, before the leases end: these claims make no more requests there."""
    ours = compact(list(tokens))
    if hosts is None:
        return Statement(
            "UPDATE leases SET hosts = '[]'"
            " WHERE token IN (SELECT value FROM json_each(?)) AND hosts <> '[]'",
            [ours],
        )
    return Statement(
        """UPDATE leases SET hosts = (SELECT json_group_array(value) FROM json_each(leases.hosts)
          WHERE value NOT IN (SELECT value FROM json_each(?)))
        WHERE token IN (SELECT value FROM json_each(?))""",
        [compact(list(hosts)), ours],
    )


def await_hosts(
    database: Database,
    ids: Sequence[str],
    *,
    run_id: str,
    lease_seconds: int,
    token: str | None = None,
) -> str:
    """Say that somebody waits for the hosts of these feeds, which another run has, and goes first. The token
    of the lease that says so: until it ends none of these hosts is claimed for what is merely due."""
    token = token or new_token()
    database.query(
        f"""INSERT INTO leases (token, run_id, expires_at, feeds, hosts, awaited)
        SELECT ?, ?, {EXPIRY}, '[]', '[]', json_group_array(DISTINCT host) FROM feeds WHERE {_AMONG}""",
        [token, run_id, None, lease_seconds, compact(list(ids))],
    )
    return token


def awaited_statement(tokens: Sequence[str]) -> Statement:
    """Asks for the hosts of these leases that somebody waits for: rows with `host`."""
    return Statement(
        f"""SELECT DISTINCT ours.value AS host
        FROM leases AS mine, json_each(mine.hosts) AS ours, leases AS theirs, json_each(theirs.awaited) AS j
        WHERE mine.token IN (SELECT value FROM json_each(?)) AND theirs.expires_at > {DB_NOW}
          AND j.value = ours.value""",
        [compact(list(tokens)), None],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A claimed feed whose visit ends without a result: its claim does not count against it."""

    feed_id: str
    token: str
    next: NextVisit | None = None
    """When it is due instead, and why; None: due as before the claim."""
    hold: FeedHold | None = None
    """A hold to keep for the feed itself, where a host other than its own asked for it. Without it each
    refresh by hand would request the feed's own host in vain."""


def release(database: Database, releases: Sequence[Release], *, others: Sequence[Statement] = ()) -> None:
    """Release feeds that are still held by the tokens named, and run `others` in the same batch."""
    rows = (
        compact(
            [each.feed_id, each.token]
            if each.next is None
            else [each.feed_id, each.token, instant(each.next.at), storable(each.next.reason)]
        )
        for each in releases
    )
    holds = [each.hold for each in releases if each.hold is not None]
    statements = [
        *(Statement(_RELEASE, [chunk]) for chunk in chunked(rows)),
        *feed_statements(holds),
        *others,
    ]
    if statements:
        database.batch(statements)


_RELEASE = """UPDATE feeds SET lease_token = NULL, unclosed_claims = max(unclosed_claims - 1, 0),
  next_fetch_at = coalesce(json_extract(v.value, '$[2]'), next_fetch_at),
  schedule_reason = coalesce(json_extract(v.value, '$[3]'), schedule_reason)
  FROM json_each(?) AS v WHERE feeds.id = json_extract(v.value, '$[0]')
    AND feeds.lease_token = json_extract(v.value, '$[1]')"""


def end(database: Database, token: str, *, forgive: bool) -> None:
    """Drop a lease and release what it still holds.

    With `forgive` its feeds are as if never claimed: the run ended politely, or a store failed. Without,
    their claims stay counted: something in the run may have come from one of their documents.
    """
    unclosed = "max(unclosed_claims - 1, 0)" if forgive else "unclosed_claims"
    database.batch(
        [
            Statement(
                f"""UPDATE feeds SET lease_token = NULL, backup_unsure = 1, unclosed_claims = {unclosed}
                WHERE lease_token = ?
                AND id IN (SELECT value FROM json_each((SELECT feeds FROM leases WHERE token = ?)))""",
                [token, token],
            ),
            Statement("DELETE FROM leases WHERE token = ?", [token]),
        ]
    )


_LIVE_RUNS = f"SELECT DISTINCT run_id FROM leases WHERE expires_at > {DB_NOW}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSummary:
    """What a claim would find, and who else is at it. `due` counts to 100 and no further."""

    due: int
    never_fetched: int
    oldest_due_at: str | None
    live_run_ids: tuple[str, ...]


def due_summary(database: Database, now: datetime, *, lease_now: datetime | None = None) -> DueSummary:
    """The sensor's question, by the claim's own predicate."""
    clock = None if lease_now is None else instant(lease_now)
    *_, counts, live = database.batch(
        [
            *_heal_wrong_clock(now, clock),
            Statement(
                f"""SELECT count(*) AS due, sum(last_visited_at IS NULL) AS never_fetched,
                min(next_fetch_at) AS oldest FROM (
                  SELECT last_visited_at, next_fetch_at FROM feeds WHERE {_DUE} AND {_FREE}
                  ORDER BY next_fetch_at LIMIT 100)""",
                [clock, instant(now), *_free(now, clock)],
            ),
            Statement(_LIVE_RUNS, [clock]),
        ]
    )
    row = one(counts) or {}
    return DueSummary(
        due=int(row["due"]),
        never_fetched=int(row["never_fetched"] or 0),
        oldest_due_at=row["oldest"],
        live_run_ids=tuple(lease["run_id"] for lease in live.rows),
    )


def live_run_ids(database: Database) -> frozenset[str]:
    """Ids of the runs that hold a live lease."""
    rows = database.query(_LIVE_RUNS, [None]).rows
    return frozenset(row["run_id"] for row in rows)


def standing(database: Database, ids: Sequence[str], *, now: datetime) -> dict[str, Row]:
    """Why a claim did not take these feeds: for each known id registered, enabled, held and pauses.

    `held_token` is the live lease on the feed itself, `host_held` whether one holds its host,
    `hold_until`, `hold_reason` and `hold_host` the longest pause it or its host was asked for.
    """
    rows = database.query(
        f"""SELECT feeds.id, registered, enabled, leases.token AS held_token,
        pauses.hold_until, pauses.reason AS hold_reason, pauses.host AS hold_host, max(pauses.hold_until),
        EXISTS (SELECT 1 FROM leases AS l, json_each(l.hosts) AS j
          WHERE l.expires_at > {DB_NOW} AND j.value = feeds.host) AS host_held
        FROM feeds
        LEFT JOIN leases ON leases.token = feeds.lease_token AND leases.expires_at > {DB_NOW}
        LEFT JOIN (
          SELECT NULL AS feed_id, host, hold_until, reason FROM hosts
          UNION ALL SELECT feed_id, host, hold_until, reason FROM feed_holds
        ) AS pauses ON pauses.hold_until > ?
          AND (pauses.feed_id = feeds.id OR (pauses.feed_id IS NULL AND pauses.host = feeds.host))
        WHERE feeds.id IN (SELECT value FROM json_each(?)) GROUP BY feeds.id""",
        [None, None, instant(now), compact(list(ids))],
    ).rows
    return {row["id"]: row for row in rows}


def left_alone(database: Database, *, since: datetime, now: datetime) -> list[str]:
    """Ids of the feeds without a visit since `since` that a pause keeps from one."""
    rows = database.query(
        f"""SELECT id FROM feeds WHERE registered = 1 AND enabled = 1 AND {_UNVISITED} AND NOT ({NOT_HELD})
        ORDER BY id""",
        [instant(since), instant(now), instant(now)],
    ).rows
    return [row["id"] for row in rows]


def claimable(database: Database, wanted: Wanted) -> bool:
    """Whether a claim would find any feed now."""
    wanting, params = _wanting(wanted, None)
    asked = Statement(
        f"SELECT EXISTS (SELECT 1 FROM feeds WHERE {wanting} AND {_FREE}) AS found",
        [*params, *_free(wanted.now, None)],
    )
    *_, found = database.batch([*_heal_wrong_clock(wanted.now, None), asked])
    return bool(found.rows[0]["found"])
