"""Claiming feeds for one run: in one batch, or in two that run beside those of others.

Which feeds a claim may take is claimable.py's; releasing them is leases.py's.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.storage.database import Database, Result, SkipsLocked, Statement, Value
from rss_pipeline.storage.feeds.claimable import (
    BUCKET,
    COMPANY,
    FREE,
    SUSPECT,
    UNLEASED,
    Due,
    Named,
    Wanted,
    drop_old_leases,
    free_params,
    healing_first,
    selection,
)
from rss_pipeline.storage.feeds.feed_row import BROUGHT_BY, FEED_COLUMNS, feed_of
from rss_pipeline.storage.feeds.holds import (
    NOT_HELD,
    KnownHolds,
    known_holds,
    known_statement,
)
from rss_pipeline.storage.feeds.leases import forgive_unbegun
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, compact, new_token, number

PER_HOST = 60
"""Feeds of one host in one claim: what pacing of a second lets through in a round, halved."""
_OF_HOST_FIRST = 8
"""Feeds of a host that come in one turn: more would let nine slow hosts fill a claim, fewer would keep a host
with hundreds of feeds waiting, which needs all of its time."""
RANKED_FIRST = 5000
BEGUN_TOGETHER = 25
"""Feeds of a claim that its lease notes as begun at once, at least. Of a claim of so few all count as begun:
noting it costs a statement."""
_LADDER = (1.25, 12.5, 125)
"""Feeds that are ranked for each one wanted where claims follow one another quickly: each next number where
those before it have too few hosts."""
_TRIES = 5
"""Tries of a claim of feeds that others have changed or hold locked just now, each of them."""


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
    claiming = _Claiming(
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
    if isinstance(database, SkipsLocked):
        return _claim_beside(database, database, claiming)
    *_, claimed, _, holds = database.batch([*healing, *claiming.statements(), known_statement(wanted.now)])
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


def _claim_beside(database: Database, beside: SkipsLocked, claiming: "_Claiming") -> Claim:
    """A claim in two batches, on a database where other claims and batches that write run at the same time.

    The first makes the lease, and waits for other claims only: from its commit on, no other claim takes these
    feeds or hosts. The second gives the feeds its token, but for those that another batch has locked or
    changed meanwhile.
    """
    taking = [claiming.take(), known_statement(claiming.wanted.now)]
    for _ in range(_TRIES):
        if not _chosen(beside, claiming):
            break
        claimed, holds = beside.batch_beside(taking, "take")
        if not claimed.values:
            # Not one: then as a batch among those that write, so that no other one has locked them.
            claimed, holds = database.batch(taking)
        if claimed.values:
            return _claim_of(claiming.token, claimed, holds)
        database.query("DELETE FROM leases WHERE token = ?", [claiming.token], name="end empty lease")
    nothing = Result((), [], 0)
    return _claim_of(claiming.token, nothing, database.batch([known_statement(claiming.wanted.now)])[0])


def _chosen(beside: SkipsLocked, claiming: "_Claiming") -> bool:
    """Make the lease; False where there is nothing to be claimed."""
    for choose in claiming.choose_few():
        made, _ = beside.batch_beside([choose, claiming.drop_empty()], "choose")
        if made.values:
            return bool(made.rows[0]["found"])
    return False


def _claim_of(token: str, claimed: Result, holds: Result) -> Claim:
    feeds = sorted(map(feed_of, claimed.rows), key=lambda feed: (str(feed.schedule.next_fetch_at), feed.id))
    return Claim(token=token, feeds=tuple(feeds), holds=known_holds(holds))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claiming:
    """One claim, and its statements."""

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
    def _has_one_plan(self) -> bool:
        """The shard's buckets are a list to be hashed, which statements that are planned once cannot."""
        return self.wanted.ids is None and (isinstance(self.wanted, Named) or self.wanted.shard is None)

    def _wanting(self) -> tuple[str, list[Value]]:
        return self._wanting_of(self.wanted)

    def _wanting_of(self, wanted: Wanted) -> tuple[str, list[Value]]:
        condition, params = selection(wanted, self.clock)
        if self.suspects and self.company is not None:
            return f"{condition} AND {SUSPECT} AND {COMPANY} = ?", [*params, self.company]
        return f"{condition} AND {SUSPECT if self.suspects else f'NOT {SUSPECT}'}", params

    def _choose(
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

    def _free(self, also: str = "", *, of: str = "feeds") -> tuple[str, list[Value]]:
        """A query for all feeds that may be claimed, and its parameters."""
        wanting, params = self._wanting()
        return (
            f"SELECT {_RANKED} FROM {of} WHERE {wanting} AND {FREE}{also}",
            [*params, *free_params(self.wanted.now, self.clock)],
        )

    def statements(self) -> list[Statement]:
        """The claim in one batch; the rows are those of the last but one.

        Nearly always the oldest few thousand have enough hosts among them, and ranking all of a hundred
        thousand due takes ten times as long. Where a crowd of one host comes first, the oldest behind it are
        ranked as well; where these are not enough either, all are.
        """
        first = f" ORDER BY next_fetch_at LIMIT {RANKED_FIRST}"
        oldest, params = self._free(first)
        oldest_unless, _ = self._free(first, of=_UNLESS_CHOSEN)
        behind, _ = self._free(
            f""" AND next_fetch_at >= (SELECT next_fetch_at FROM oldest LIMIT 1 OFFSET {RANKED_FIRST - 1})
            AND id NOT IN (SELECT id FROM oldest)
            AND (host, brought_by) NOT IN (SELECT host, brought_by FROM crowds)
            ORDER BY next_fetch_at LIMIT {RANKED_FIRST // 2}"""
        )
        every, _ = self._free(of=_UNLESS_CHOSEN)
        return [
            self._choose(
                oldest,
                params,
                if_found=f"""n > 0 AND (n = {self.limit} OR (SELECT count(*) FROM free) < {RANKED_FIRST})""",
            ),
            self._choose(
                f"SELECT * FROM oldest UNION ALL SELECT * FROM ({behind})",
                [self.token, *params, *params],
                of=f"""oldest AS MATERIALIZED ({oldest_unless}), crowds AS (
                  SELECT host, brought_by FROM oldest GROUP BY host, brought_by
                  HAVING count(*) > {self._per_host}), """,
                if_found=f"n = {max(self.limit, 1)}",
            ),
            self._choose(every, [self.token, *params]),
            Statement(
                f"""UPDATE feeds SET lease_token = ?, {_COUNTED} WHERE id IN {_OF_LEASE}
                RETURNING {FEED_COLUMNS}""",
                [self.token, self.token, self.token],
                name="claim feeds",
            ),
            drop_old_leases(self.clock),
        ]

    def choose_few(self) -> Iterator[Statement]:
        """Statements that make the lease: try them in order until one claims something. They return
        whether it has feeds: where there are none at all, the first one shows it.

        Only Postgres has these. Most of the oldest that are due are those of live leases. They are passed
        over by their hosts alone, in a query of its own (LIMIT -1 keeps it apart): a host is among the first
        columns of a row, a lease among the last, and reading up to there is a third of the work.
        """
        for each in _LADDER if self.wanted.ids is None and not self.suspects else ():
            first = math.ceil(each * self.limit)
            if isinstance(self.wanted, Named) or self.wanted.shard is None:
                candidates, params = self._oldest(first)
            else:
                of_all = replace(self.wanted, shard=None)
                candidates, params = self._oldest_of(self.wanted.shard, of_all, first)
            # Fewer than these are all that there are. So few may all be of one user, though others wait.
            enough = "(SELECT count(*) FROM users) < 2" if each is _LADDER[0] else "true"
            yield self._choose(
                candidates,
                params,
                if_found=f"(n = {self.limit} AND {enough} OR (SELECT count(*) FROM free) < {first})",
                returning=_FOUND,
                planned_once=self._has_one_plan,
            )
        # Feeds that are named are looked up first, for the reason that `take` gives.
        named = self.wanted.ids
        of = (
            "feeds"
            if named is None
            else f"(SELECT * FROM feeds WHERE id = ANY(ARRAY{_LISTED}) LIMIT -1) AS feeds"
        )
        candidates, params = self._free(of=of)
        yield self._choose(
            candidates,
            [*([] if named is None else [compact(list(named))]), *params],
            returning=_FOUND,
        )

    def _oldest(self, first: int) -> tuple[str, list[Value]]:
        """A query for the oldest feeds that may be claimed, so many of them, and its parameters."""
        wanting, params = self._wanting()
        is_due = isinstance(self.wanted, Due)
        return (
            f"""SELECT {_RANKED} FROM (
                SELECT * FROM feeds WHERE {POLLED} AND host NOT IN {_HELD_HOSTS}
                {"AND next_fetch_at <= ?" if is_due else ""} ORDER BY next_fetch_at LIMIT -1
              ) AS feeds WHERE {wanting} AND {UNLEASED} AND {NOT_HELD} LIMIT {first}""",
            [
                *(self.clock, *([instant(self.wanted.now)] if is_due else ())),
                *(*params, self.clock, *2 * [instant(self.wanted.now)]),
            ],
        )

    def _oldest_of(self, shard: Shard, of_all: Wanted, first: int) -> tuple[str, list[Value]]:
        """The same of a shard: from the index by bucket, so that it reads no feeds of other shards. `of_all`
        is what is wanted of all of them.

        A first look at the oldest few of each bucket shows up to which time the wanted ones are due at most;
        then each bucket gives all up to that time.
        """
        wanting, wanting_params = self._wanting_of(of_all)
        of_bucket = f"""{POLLED} AND host NOT IN {_HELD_HOSTS} AND {wanting} AND {UNLEASED} AND {NOT_HELD}"""
        params = [
            *(compact(shard.buckets), self.clock, *wanting_params),
            *(self.clock, *2 * [instant(self.wanted.now)]),
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
            f"""SELECT {_RANKED} FROM (
                {oldest(first, f" AND next_fetch_at <= {until}")} ORDER BY f.next_fetch_at LIMIT {first}
              ) AS feeds""",
            [*params, *params],
        )

    def drop_empty(self) -> Statement:
        """Drop the lease again that has no feeds."""
        return Statement(
            "DELETE FROM leases WHERE token = ? AND feeds = '[]'", [self.token], name="drop empty lease"
        )

    def take(self) -> Statement:
        """Give the lease's feeds its token, but for those that are locked or not to be claimed any more.

        Only Postgres has this. With lists its planner cannot but look up each feed by its id; of a join it
        may read a million feeds for five hundred.
        """
        wanting, params = self._wanting()
        return Statement(
            f"""UPDATE feeds SET lease_token = ?, {_COUNTED}
            WHERE ctid = ANY(ARRAY(SELECT ctid FROM feeds WHERE id = ANY(ARRAY{_OF_LEASE})
              AND {wanting} AND {POLLED} AND {UNLEASED} FOR UPDATE SKIP LOCKED))
            RETURNING {FEED_COLUMNS}""",
            [self.token, self.token, self.token, *params, self.clock],
            name="take chosen feeds",
            planned_once=self._has_one_plan,
        )


_LISTED = "(SELECT value FROM json_each(?))"
_OF_LEASE = "(SELECT value FROM json_each((SELECT feeds FROM leases WHERE token = ?)))"
_COUNTED = """unclosed_claims = unclosed_claims + 1,
  claimed_with = (SELECT json_array_length(feeds) FROM leases WHERE token = ?)"""
_HELD_HOSTS = f"""(
    SELECT jsonb_array_elements_text(CAST(hosts AS jsonb)) FROM leases WHERE expires_at > {DB_NOW})"""
"""For Postgres, which parses a list so in a third of the time."""
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
_RANKED = f"id, host, next_fetch_at, {BROUGHT_BY}"
_FOUND = " RETURNING CAST(feeds <> '[]' AS INTEGER) AS found"
