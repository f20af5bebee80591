"""Claiming feeds for one run, in one batch.

Which feeds a claim may take is claimable.py's; releasing them is leases.py's.
"""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.claimable import (
    FREE,
    SUSPECT,
    Named,
    Wanted,
    free_params,
    heal_schedule,
    selection,
)
from rss_pipeline.storage.feeds.feed_row import FEED_COLUMNS, feed_of
from rss_pipeline.storage.feeds.holds import (
    KnownHolds,
    known_holds,
    known_statement,
)
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, new_token

PER_HOST = 60
"""Feeds of one host in one claim: what pacing of a second lets through in a round, halved."""
RANKED_FIRST = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease's token and the feeds it holds, oldest due first."""

    token: str
    feeds: tuple[Feed, ...]
    holds: KnownHolds
    """All holds known at that moment."""


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

    A claim takes feeds that are registered and enabled, where neither the feed nor its host is held by a live
    lease or on hold: oldest due first, at most `limit`, and at most `PER_HOST` of one host unless they are
    named. With `suspects` it takes only feeds where the last claim never ended in a close or the last
    document crashed the parser; without, only the others. `token` is the lease's, by default a new one: with
    it a caller can `end` a claim of which the answer was lost.
    """
    token = token or new_token()
    clock = None if lease_now is None else instant(lease_now)
    wanting, wanting_params = selection(wanted, clock)
    per_host = limit if isinstance(wanted, Named) else PER_HOST
    suspicion = SUSPECT if suspects else f"NOT {SUSPECT}"
    choosing = [*wanting_params, *free_params(wanted.now, clock)]
    lease = [token, run_id, clock, lease_seconds, lease_seconds]
    healing = heal_schedule(wanted.now, clock)
    results = database.batch(
        [
            *healing,
            # The oldest of every host first, then the oldest of all: a big host cannot starve the others.
            # Nearly always the oldest few thousand have enough hosts among them, and ranking all of a
            # hundred thousand due takes ten times as long; where they have not, all are ranked.
            Statement(
                f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
                {
                    _chosen(
                        f"SELECT id, host, next_fetch_at FROM feeds WHERE {wanting} AND {suspicion}"
                        f" AND {FREE} ORDER BY next_fetch_at LIMIT {RANKED_FIRST}"
                    )
                }
                WHERE n = max(?, 1)""",
                [*lease, *choosing, per_host, limit, limit],
                name="choose feeds among the oldest",
            ),
            Statement(
                f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
                {
                    _chosen(
                        f"SELECT id, host, next_fetch_at FROM feeds WHERE {wanting} AND {suspicion}"
                        f" AND {FREE} AND NOT EXISTS (SELECT 1 FROM leases WHERE token = ?)"
                    )
                }
                WHERE n > 0""",
                [*lease, *choosing, token, per_host, limit],
                name="choose feeds among all",
            ),
            Statement(
                f"""UPDATE feeds SET lease_token = ?, unclosed_claims = unclosed_claims + 1
                WHERE id IN (SELECT value FROM json_each((SELECT feeds FROM leases WHERE token = ?)))
                RETURNING {FEED_COLUMNS}""",
                [token, token],
                name="claim feeds",
            ),
            # Only leases that nothing refers to any more: until then a lapsed lease still names its run.
            Statement(
                f"DELETE FROM leases WHERE expires_at < strftime('%Y-%m-%dT%H:%M:%SZ', {DB_NOW}, '-1 day')",
                [clock],
                name="drop old leases",
            ),
            known_statement(wanted.now),
        ]
    )
    feeds = sorted(
        map(feed_of, results[len(healing) + 2].rows),
        key=lambda feed: (str(feed.schedule.next_fetch_at), feed.id),
    )
    return Claim(token=token, feeds=tuple(feeds), holds=known_holds(results[-1]))


def _chosen(candidates: str) -> str:
    return f"""SELECT ?, ?, {EXPIRY}, ?, feeds, hosts FROM (
      SELECT json_group_array(id) AS feeds, json_group_array(DISTINCT host) AS hosts, count(*) AS n FROM (
        SELECT id, host FROM (
          SELECT id, host, next_fetch_at,
            row_number() OVER (PARTITION BY host ORDER BY next_fetch_at, id) AS turn
          FROM ({candidates})
        ) WHERE turn <= ? ORDER BY next_fetch_at, id LIMIT ?
      )
    )"""
