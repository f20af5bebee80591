"""Claiming feeds for one run: in one batch, or as the database does by itself (`ClaimsFeeds`).

Which feeds a claim may take is claimable.py's; releasing them is leases.py's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.feeds.claimable import (
    COMPANY,
    FREE,
    SUSPECT,
    Named,
    Wanted,
    drop_old_leases,
    free_params,
    healing_first,
    selection,
)
from rss_pipeline.storage.feeds.feed_row import BROUGHT_BY, FEED_COLUMNS, feed_of
from rss_pipeline.storage.feeds.leases import forgive_unbegun
from rss_pipeline.storage.feeds.stored_holds import (
    KnownHolds,
    known_holds,
    known_statement,
)
from rss_pipeline.storage.sql import EXPIRY, new_token

PER_HOST = 60
"""Feeds of one host in one claim: what pacing of a second lets through in a round, halved."""
_OF_HOST_FIRST = 8
"""Feeds of a host that come in one turn: more would let nine slow hosts fill a claim, fewer would keep a host
with hundreds of feeds waiting, which needs all of its time."""
RANKED_FIRST = 5000
BEGUN_TOGETHER = 25
"""Feeds of a claim that its lease notes as begun at once, at least. Of a claim of so few all count as begun:
noting it costs a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease's token and the feeds it holds, oldest due first."""

    token: str
    feeds: tuple[Feed, ...]
    holds: KnownHolds
    """All holds known at that moment."""

    @property
    def unbegun(self) -> tuple[str, ...]:
        """Ids of the feeds that the lease has noted as not begun."""
        return tuple(feed.id for feed in self.feeds) if len(self.feeds) > BEGUN_TOGETHER else ()


def claim(
    database: Database,
    wanted: Wanted,
    *,
    run_id: str,
    lease_seconds: int,
    limit: int,
    suspects: bool = False,
    company: int | None = None,
    token: str | None = None,
    lease_now: datetime | None = None,
) -> Claim:
    """Take feeds for one run, all or none.

    A claim takes feeds that are registered and enabled, where neither the feed nor its host is held by a live
    lease or on hold: oldest due first, at most `limit`, and at most `PER_HOST` of one host unless they are
    named. Where more are due, each user who brought some has a share, and each host a share of that. With
    `suspects` it takes only feeds where the last claim never ended in a close or the last document crashed
    the parser, and with `company` only those that were claimed with so many; without, only the others.
    `token` is the lease's, by default a new one: with it a caller can `end` a claim of which the answer was
    lost.
    """
    clock = None if lease_now is None else instant(lease_now)
    claiming = Claiming(
        token=token or new_token(),
        run_id=run_id,
        lease_seconds=lease_seconds,
        wanted=wanted,
        suspects=suspects,
        company=company,
        limit=limit,
        clock=clock,
    )
    healing = healing_first(database, wanted.now, clock)
    if isinstance(database, ClaimsFeeds):
        claimed, holds = database.claim_feeds(claiming)
    else:
        *_, claimed, _, holds = database.batch(
            [*healing, *claiming.statements(), known_statement(wanted.now)]
        )
    return _claim_of(claiming.token, claimed, holds)


def company_of_suspects(
    database: Database, wanted: Wanted, *, lease_now: datetime | None = None
) -> int | None:
    """Return how many feeds a suspect was claimed with, of the suspects that may be claimed: the most.

    None where there are none. First, what dead runs had claimed and not begun becomes free of suspicion.
    """
    clock = None if lease_now is None else instant(lease_now)
    condition, params = selection(wanted, clock)
    *_, found = database.batch(
        [
            *forgive_unbegun(clock),
            Statement(
                f"SELECT max({COMPANY}) AS most FROM feeds WHERE {condition} AND {SUSPECT} AND {FREE}",
                [*params, *free_params(wanted.now, clock)],
                name="find suspects",
            ),
        ]
    )
    most = found.rows[0]["most"]
    return None if most is None else int(most)


def _claim_of(token: str, claimed: Result, holds: Result) -> Claim:
    feeds = sorted(map(feed_of, claimed.rows), key=lambda feed: (str(feed.schedule.next_fetch_at), feed.id))
    return Claim(token=token, feeds=tuple(feeds), holds=known_holds(holds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claiming:
    """One claim, and its statements: in one batch, or parts of them for a database with claims of its own."""

    token: str
    run_id: str
    lease_seconds: int
    wanted: Wanted
    suspects: bool
    company: int | None
    limit: int
    clock: str | None

    @property
    def _per_host(self) -> int:
        return self.limit if isinstance(self.wanted, Named) else PER_HOST

    @property
    def has_one_plan(self) -> bool:
        """The shard's buckets are a list to be hashed, which statements that are planned once cannot."""
        return self.wanted.ids is None and (isinstance(self.wanted, Named) or self.wanted.shard is None)

    def wanting(self) -> tuple[str, list[Value]]:
        return self.wanting_of(self.wanted)

    def wanting_of(self, wanted: Wanted) -> tuple[str, list[Value]]:
        condition, params = selection(wanted, self.clock)
        if self.suspects and self.company is not None:
            return f"{condition} AND {SUSPECT} AND {COMPANY} = ?", [*params, self.company]
        return f"{condition} AND {SUSPECT if self.suspects else f'NOT {SUSPECT}'}", params

    def choose(
        self,
        free: str,
        params: Sequence[Value],
        *,
        of: str = "",
        if_found: str = "n > 0",
        returning: str = "",
        planned_once: bool = False,
    ) -> Statement:
        """Make the lease, of feeds of the query `free`, which reads the common tables `of`."""
        return Statement(
            f"{_LEASE.format(of=of, free=free, if_found=if_found)}{returning}",
            [
                *params,
                *(self.token, self.run_id, self.clock, self.lease_seconds, self.lease_seconds),
                *(self._per_host, self._per_host, self.limit),
            ],
            name="choose feeds",
            planned_once=planned_once,
        )

    def free(self, also: str = "", *, of: str = "feeds") -> tuple[str, list[Value]]:
        """A query for all feeds that may be claimed, and its parameters."""
        wanting, params = self.wanting()
        return (
            f"SELECT {RANKED} FROM {of} WHERE {wanting} AND {FREE}{also}",
            [*params, *free_params(self.wanted.now, self.clock)],
        )

    def statements(self) -> list[Statement]:
        """The claim in one batch; the rows are those of the last but one.

        Nearly always the oldest few thousand have enough hosts among them, and ranking all of a hundred
        thousand due takes ten times as long. Where a crowd of one host comes first, the oldest behind it are
        ranked as well; where these are not enough either, all are.
        """
        first = f" ORDER BY next_fetch_at LIMIT {RANKED_FIRST}"
        oldest, params = self.free(first)
        oldest_unless, _ = self.free(first, of=_UNLESS_CHOSEN)
        behind, _ = self.free(
            f""" AND next_fetch_at >= (SELECT next_fetch_at FROM oldest LIMIT 1 OFFSET {RANKED_FIRST - 1})
            AND id NOT IN (SELECT id FROM oldest)
            AND (host, brought_by) NOT IN (SELECT host, brought_by FROM crowds)
            ORDER BY next_fetch_at LIMIT {RANKED_FIRST // 2}"""
        )
        every, _ = self.free(of=_UNLESS_CHOSEN)
        return [
            self.choose(
                oldest,
                params,
                if_found=f"""n > 0 AND (n = {self.limit} OR (SELECT count(*) FROM free) < {RANKED_FIRST})""",
            ),
            self.choose(
                f"SELECT * FROM oldest UNION ALL SELECT * FROM ({behind})",
                [self.token, *params, *params],
                of=f"""oldest AS MATERIALIZED ({oldest_unless}), crowds AS (
                  SELECT host, brought_by FROM oldest GROUP BY host, brought_by
                  HAVING count(*) > {self._per_host}), """,
                if_found=f"n = {max(self.limit, 1)}",
            ),
            self.choose(every, [self.token, *params]),
            Statement(
                f"""UPDATE feeds SET lease_token = ?, {COUNTED} WHERE id IN {OF_LEASE}
                RETURNING {FEED_COLUMNS}""",
                [self.token, self.token, self.token],
                name="claim feeds",
            ),
            drop_old_leases(self.clock),
        ]


@runtime_checkable
class ClaimsFeeds(Protocol):
    """A `Database` with claims of its own: they need not wait for batches that write."""

    def claim_feeds(self, claiming: Claiming) -> tuple[Result, Result]:
        """The rows of the claimed feeds, by the columns FEED_COLUMNS, and those of `known_statement`."""


OF_LEASE = "(SELECT value FROM json_each((SELECT feeds FROM leases WHERE token = ?)))"
COUNTED = """unclosed_claims = unclosed_claims + 1,
  claimed_with = (SELECT json_array_length(feeds) FROM leases WHERE token = ?)"""
_LEASE = f"""WITH {{of}}free AS MATERIALIZED ({{free}}), whose(is_one) AS (
    SELECT (SELECT count(*) FROM users) < 2 OR NOT EXISTS (SELECT 1 FROM free WHERE brought_by <> ''))
  INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts, unbegun)
    SELECT ?, ?, {EXPIRY}, ?, feeds, hosts, CASE WHEN n > {BEGUN_TOGETHER} THEN feeds ELSE '[]' END FROM (
      SELECT json_group_array(id) AS feeds, json_group_array(DISTINCT host) AS hosts, count(*) AS n FROM (
        SELECT id, host, next_fetch_at, (turn - 1) / {_OF_HOST_FIRST} AS share FROM (
          SELECT *, row_number() OVER (PARTITION BY host ORDER BY next_fetch_at, id) AS turn
          FROM free WHERE (SELECT is_one FROM whose)
        ) WHERE turn <= ?
        UNION ALL
        SELECT id, host, next_fetch_at, row_number() OVER (
          PARTITION BY brought_by ORDER BY (turn - 1) / {_OF_HOST_FIRST}, next_fetch_at, id) AS share
        FROM (
          SELECT *, row_number() OVER (PARTITION BY host ORDER BY share_of_host, next_fetch_at, id) AS turn
          FROM (
            SELECT *, row_number() OVER (PARTITION BY host, brought_by ORDER BY next_fetch_at, id)
              AS share_of_host FROM free WHERE NOT (SELECT is_one FROM whose)
          )
        ) WHERE turn <= ?
        ORDER BY share, next_fetch_at, id LIMIT ?
      )
    ) WHERE {{if_found}}"""
"""In turns of hosts, so that none waits for all feeds of another; where they are of several users, these are
served in turns as well. `free` is the query for the feeds to choose from, `n` how many were chosen."""
_UNLESS_CHOSEN = (
    """(SELECT 1 AS it WHERE NOT EXISTS (SELECT 1 FROM leases WHERE token = ?)) CROSS JOIN feeds"""
)
"""Each feed, or none: as a condition on feeds it would be looked at with each of them."""
RANKED = f"id, host, next_fetch_at, {BROUGHT_BY}"
