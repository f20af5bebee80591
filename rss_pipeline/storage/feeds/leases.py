"""Leases: renewing and ending them, releasing feeds and hosts, and waiting for hosts that another run holds.

Taking a lease is claims.py's; what a closed visit writes into a feed is closings.py's. Leases live by the
database's clock; `lease_now` is for tests only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import NextVisit
from rss_pipeline.collector.models.hold import FeedHold
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.claimable import AMONG
from rss_pipeline.storage.feeds.holds import feed_statements
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, chunked, compact, new_token, storable


def renew(
    database: Database, tokens: Sequence[str], *, lease_seconds: int, lease_now: datetime | None = None
) -> int:
    """Extend these leases; return how many were still live. A lapsed lease stays lapsed."""
    clock = None if lease_now is None else instant(lease_now)
    return database.query(
        f"UPDATE leases SET expires_at = {EXPIRY}, seconds = ?"
        f" WHERE token IN (SELECT value FROM json_each(?)) AND expires_at > {DB_NOW}",
        [clock, lease_seconds, lease_seconds, compact(list(tokens)), clock],
        name="renew leases",
    ).changes


def free_hosts(tokens: Sequence[str], hosts: Sequence[str] | None = None) -> Statement:
    """Free these hosts, or all, before the leases end: these claims make no more requests there."""
    ours = compact(list(tokens))
    if hosts is None:
        return Statement(
            "UPDATE leases SET hosts = '[]'"
            " WHERE token IN (SELECT value FROM json_each(?)) AND hosts <> '[]'",
            [ours],
            name="free hosts",
        )
    return Statement(
        """UPDATE leases SET hosts = (SELECT json_group_array(value) FROM json_each(leases.hosts)
          WHERE value NOT IN (SELECT value FROM json_each(?)))
        WHERE token IN (SELECT value FROM json_each(?))""",
        [compact(list(hosts)), ours],
        name="free hosts",
    )


def await_hosts(
    database: Database,
    ids: Sequence[str],
    *,
    run_id: str,
    lease_seconds: int,
    token: str | None = None,
) -> str:
    """Record that a refresh by hand waits for the hosts of these feeds, which another run holds.

    Returns the token of the lease that says so: until it ends, no poll of due feeds claims these hosts.
    """
    token = token or new_token()
    database.query(
        f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts, awaited)
        SELECT ?, ?, {EXPIRY}, ?, '[]', '[]', json_group_array(DISTINCT host) FROM feeds WHERE {AMONG}""",
        [token, run_id, None, lease_seconds, lease_seconds, compact(list(ids))],
        name="wait for hosts",
    )
    return token


def awaited_statement(tokens: Sequence[str]) -> Statement:
    """A query for the hosts of these leases that a refresh by hand waits for: rows with `host`."""
    return Statement(
        f"""SELECT DISTINCT ours.value AS host
        FROM leases AS mine, json_each(mine.hosts) AS ours, leases AS theirs, json_each(theirs.awaited) AS j
        WHERE mine.token IN (SELECT value FROM json_each(?)) AND theirs.expires_at > {DB_NOW}
          AND j.value = ours.value""",
        [compact(list(tokens)), None],
        name="find awaited hosts",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A claimed feed with a visit that ends without a result: its claim does not count against it."""

    feed_id: str
    token: str
    next: NextVisit | None = None
    """When it is due instead, and why; None: due as before the claim."""
    hold: FeedHold | None = None
    """A hold to keep for the feed itself, where a host other than its own is on hold. Without it each
    refresh by hand would request the feed's own host in vain."""


def release(database: Database, releases: Sequence[Release], *, others: Sequence[Statement] = ()) -> None:
    """Release feeds that are still held by the tokens named, and run `others` in the same batch."""
    rows = (
        compact(
            [each.feed_id, each.token]
            if each.next is None
            else [each.feed_id, each.token, instant(each.next.at), storable(each.next.reason), each.next.kind]
        )
        for each in releases
    )
    holds = [each.hold for each in releases if each.hold is not None]
    statements = [
        *(Statement(_RELEASE, [chunk], name="release feeds") for chunk in chunked(rows)),
        *feed_statements(holds),
        *others,
    ]
    if statements:
        database.batch(statements)


_RELEASE = """UPDATE feeds SET lease_token = NULL, unclosed_claims = max(unclosed_claims - 1, 0),
  next_fetch_at = coalesce(json_extract(v.value, '$[2]'), next_fetch_at),
  schedule_reason = coalesce(json_extract(v.value, '$[3]'), schedule_reason),
  schedule_kind = coalesce(json_extract(v.value, '$[4]'), schedule_kind)
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
                name="release feeds of a lease",
            ),
            Statement("DELETE FROM leases WHERE token = ?", [token], name="end lease"),
        ]
    )


LIVE_RUNS = f"SELECT DISTINCT run_id FROM leases WHERE expires_at > {DB_NOW}"


def live_run_ids(database: Database) -> frozenset[str]:
    """Ids of the runs that hold a live lease."""
    rows = database.query(LIVE_RUNS, [None], name="read live runs").rows
    return frozenset(row["run_id"] for row in rows)
