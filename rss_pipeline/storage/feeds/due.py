"""Feeds that are due, and the reasons why a feed cannot be claimed now. Reads only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import Shard, shard_of, shards
from rss_pipeline.storage.database import Database, Row, Statement, one
from rss_pipeline.storage.feeds.claimable import (
    BUCKET,
    DUE,
    FREE,
    HAS_TURN,
    OF_SHARD,
    RESTED,
    UNVISITED,
    Due,
    Wanted,
    free_params,
    healing_first,
    rested_params,
    selection,
    turn_params,
    unvisited_params,
    without_turn,
)
from rss_pipeline.storage.feeds.leases import LIVE_RUNS
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.feeds.stored_holds import (
    DUE_NOW,
    NOT_HELD,
)
from rss_pipeline.storage.sql import DB_NOW, compact


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSummary:
    """The feeds a claim would find, and the runs with a live lease. `due` counts to 100 and no further."""

    due: int
    never_fetched: int
    oldest_due_at: str | None
    live_run_ids: tuple[str, ...]
    waits_for_turn: bool = False
    """A host lets no visit begin within a round yet: what is due there is counted later, at no instant that a
    look for what waits would see."""


def due_summary(database: Database, now: datetime, *, lease_now: datetime | None = None) -> DueSummary:
    """Return the counts that start a poll, by the claim's own conditions. A feed that a run would claim and
    could not begin with is worth none, and not counted."""
    clock = None if lease_now is None else instant(lease_now)
    *_, counts, live, spent = database.batch(
        [
            *healing_first(database, now, clock),
            Statement(
                f"""SELECT count(*) AS due, sum(CAST(last_visited_at IS NULL AS INTEGER)) AS never_fetched,
                min(next_fetch_at) AS oldest FROM (
                  SELECT last_visited_at, next_fetch_at FROM feeds WHERE {DUE} AND {HAS_TURN} AND {FREE}
                  ORDER BY next_fetch_at LIMIT 100)""",
                [clock, instant(now), *turn_params(now), *free_params(now, clock)],
                name="count due feeds",
            ),
            Statement(LIVE_RUNS, [clock], name="read live runs"),
            without_turn(now),
        ]
    )
    row = one(counts) or {}
    return DueSummary(
        due=int(row["due"]),
        never_fetched=int(row["never_fetched"] or 0),
        oldest_due_at=row["oldest"],
        live_run_ids=tuple(lease["run_id"] for lease in live.rows),
        waits_for_turn=bool(spent.rows),
    )


def due_now(database: Database, now: datetime) -> int:
    """The number of feeds that are due and not on hold, claimed or not."""
    [row] = database.query(
        f"SELECT count(*) AS n FROM feeds WHERE {DUE_NOW}", [instant(now)] * 3, name="count what is due"
    ).rows
    return int(row["n"])


_LOOKED_AT = 20_000
"""Due feeds among which every shard has some, but for a host with more than so many."""


def due_by_shard(
    database: Database, now: datetime, *, count: int, lease_now: datetime | None = None
) -> Mapping[Shard, DueSummary]:
    """Return a `due_summary` for each of so many shards, by the claim's own conditions, in one query.

    `due` is as far as the oldest 20,000 due feeds show it; a shard that has none among those, while there are
    more, has its own counted.
    """
    clock = None if lease_now is None else instant(lease_now)
    *_, counts, live, spent = database.batch(
        [
            *healing_first(database, now, clock),
            _count_by_bucket(now, clock, among=f"ORDER BY next_fetch_at LIMIT {_LOOKED_AT}"),
            Statement(LIVE_RUNS, [clock], name="read live runs"),
            without_turn(now),
        ]
    )
    rows = counts.rows
    if sum(int(row["due"]) for row in rows) >= _LOOKED_AT:
        seen = {shard_of(int(row["bucket"]), count) for row in rows}
        unseen = [bucket for shard in shards(count) if shard.number not in seen for bucket in shard.buckets]
        if unseen:
            [more] = database.batch([_count_by_bucket(now, clock, buckets=unseen)])
            rows = [*rows, *more.rows]
    live_run_ids = tuple(lease["run_id"] for lease in live.rows)
    found = _by_shard(rows, live_run_ids, count)
    return {shard: replace(each, waits_for_turn=bool(spent.rows)) for shard, each in found.items()}


def backlog_by_shard(database: Database, now: datetime, *, count: int) -> Mapping[Shard, DueSummary]:
    """The same for people, from the oldest 20,000 due feeds, without the runs. Reads only."""
    counts = _count_by_bucket(now, None, among=f"ORDER BY next_fetch_at LIMIT {_LOOKED_AT}")
    return _by_shard(database.batch([counts])[0].rows, (), count)


def _by_shard(rows: Sequence[Row], live_run_ids: tuple[str, ...], count: int) -> dict[Shard, DueSummary]:
    of_shard: dict[int, list[Row]] = {}
    for row in rows:
        of_shard.setdefault(shard_of(int(row["bucket"]), count), []).append(row)
    return {shard: _summary(of_shard.get(shard.number, ()), live_run_ids) for shard in shards(count)}


def claimable_shards(database: Database, wanted: Wanted, *, count: int) -> set[Shard]:
    """The shards, of so many, in which a claim would find a feed now, and a run could begin with it."""
    wanting, params = selection(wanted, None)
    rows = database.query(
        f"SELECT DISTINCT {BUCKET} AS bucket FROM feeds WHERE {wanting} AND {HAS_TURN} AND {FREE}",
        [*params, *turn_params(wanted.now), *free_params(wanted.now, None)],
        name="find shards with claimable feeds",
    ).rows
    return {Shard(number=shard_of(int(row["bucket"]), count), of=count) for row in rows}


def _count_by_bucket(
    now: datetime, clock: str | None, *, among: str = "", buckets: Sequence[int] | None = None
) -> Statement:
    condition, params = (
        f"{DUE} AND {HAS_TURN} AND {FREE}",
        [clock, instant(now), *turn_params(now), *free_params(now, clock)],
    )
    if buckets is not None:
        condition, params = f"{condition} AND {OF_SHARD}", [*params, compact(buckets)]
    return Statement(
        f"""SELECT bucket, count(*) AS due, count(*) FILTER (WHERE last_visited_at IS NULL) AS never_fetched,
          min(next_fetch_at) AS oldest FROM (
            SELECT {BUCKET} AS bucket, last_visited_at, next_fetch_at FROM feeds WHERE {condition} {among})
        GROUP BY bucket""",
        params,
        name="count due feeds by bucket",
    )


def _summary(rows: Sequence[Row], live_run_ids: tuple[str, ...]) -> DueSummary:
    return DueSummary(
        due=sum(int(row["due"]) for row in rows),
        never_fetched=sum(int(row["never_fetched"]) for row in rows),
        oldest_due_at=min((row["oldest"] for row in rows), default=None),
        live_run_ids=live_run_ids,
    )


def availability(database: Database, ids: Sequence[str], *, now: datetime) -> dict[str, Row]:
    """Return why a claim did not take these feeds: by known id registered, listed, enabled, leases and holds.

    `held_token` is the live lease on the feed itself, `host_held` whether one holds its host,
    `hold_until`, `hold_reason` and `hold_host` the longest hold of the feed or its host, `answered_at` its
    last answer if that was just now.
    """
    rows = database.query(
        f"""SELECT id, registered, listed, unused_since, enabled, watched, held_token, hold_until,
          hold_reason, hold_host, host_held, answered_at, own_host FROM (
        SELECT feeds.id, registered, listed, unused_since, enabled, watched, leases.token AS held_token,
        pauses.hold_until, pauses.reason AS hold_reason, pauses.host AS hold_host,
        CASE WHEN NOT {RESTED} THEN last_fetched_at END AS answered_at, feeds.host AS own_host,
        row_number() OVER (PARTITION BY feeds.id ORDER BY pauses.hold_until DESC) AS nth,
        EXISTS (SELECT 1 FROM leases AS l, json_each(l.hosts) AS j
          WHERE l.expires_at > {DB_NOW} AND j.value = feeds.host) AS host_held
        FROM feeds
        LEFT JOIN leases ON leases.token = feeds.lease_token AND leases.expires_at > {DB_NOW}
        LEFT JOIN (
          SELECT NULL AS feed_id, host, hold_until, reason FROM hosts
          UNION ALL SELECT feed_id, host, hold_until, reason FROM feed_holds
        ) AS pauses ON pauses.hold_until > ?
          AND (pauses.feed_id = feeds.id OR (pauses.feed_id IS NULL AND pauses.host = feeds.host))
        WHERE feeds.id IN (SELECT value FROM json_each(?))) WHERE nth = 1""",
        [*rested_params(now), None, None, instant(now), compact(list(ids))],
        name="read availability",
    ).rows
    return {row["id"]: row for row in rows}


def on_hold(database: Database, *, since: datetime, now: datetime) -> list[str]:
    """Ids of the feeds without a visit since `since` because of a hold."""
    rows = database.query(
        f"""SELECT id FROM feeds WHERE {POLLED} AND {UNVISITED} AND NOT ({NOT_HELD})
        ORDER BY id""",
        [*unvisited_params(since, now), *2 * [instant(now)]],
        name="find feeds on hold",
    ).rows
    return [row["id"] for row in rows]


def is_claimable(database: Database, wanted: Wanted, *, to_begin: bool = False) -> bool:
    """Return True if a claim would find a feed now; with `to_begin` one that a run could begin with."""
    wanting, params = selection(wanted, None)
    if to_begin:
        wanting, params = f"{wanting} AND {HAS_TURN}", [*params, *turn_params(wanted.now)]
    # In the order of the index: by what it guesses, Postgres would go through a million feeds for one.
    first = " ORDER BY next_fetch_at LIMIT 1" if isinstance(wanted, Due) else " LIMIT 1"
    count = Statement(
        f"SELECT count(*) AS found FROM (SELECT 1 FROM feeds WHERE {wanting} AND {FREE}{first})",
        [*params, *free_params(wanted.now, None)],
        name="find claimable feeds",
    )
    *_, found = database.batch([*healing_first(database, wanted.now, None), count])
    return bool(found.rows[0]["found"])
