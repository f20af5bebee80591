"""The pauses that hosts asked for: `hosts` for all of a host, `feed_holds` for one feed, `image_holds` for a
host's images alone.

Who is left alone because of them is the claims' business (leases.py, image_claims.py), how long they are
collector.holds'.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.hold import FeedHold, HostHold
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.sql import chunked, compact, storable

REMEMBERED = timedelta(days=7)
"""A pause that ended longer ago is forgotten: should the host ask for another one, it is its first."""
WRONG_CLOCK = timedelta(hours=25)
"""No schedule and no hold of ours reaches further, so a later instant came from a wrong clock."""

Kept = Literal["hosts", "image_holds"]

NOT_HELD = """host NOT IN (SELECT host FROM hosts WHERE hold_until > ?)
    AND id NOT IN (SELECT feed_id FROM feed_holds WHERE hold_until > ?)"""
"""Of a row of `feeds`: neither it nor its host is to be left alone at the instant bound twice."""

FREE_SINCE = """max(next_fetch_at,
    coalesce((SELECT hold_until FROM hosts WHERE hosts.host = feeds.host), ''),
    coalesce((SELECT hold_until FROM feed_holds WHERE feed_id = feeds.id), ''))"""
"""Of a row of `feeds`: when it is due, and neither it nor its host is to be left alone any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHolds:
    """What the database has: pauses in force, and those of hosts that are over but may come again."""

    hosts: Sequence[HostHold] = ()
    feeds: Sequence[FeedHold] = ()
    images: Sequence[HostHold] = ()


def known_statement(now: datetime) -> Statement:
    """Asks for all of them in one statement, to stand in a claim's batch; `known_holds` reads its result."""
    since = instant(now - REMEMBERED)
    return Statement(
        """SELECT 'hosts' AS kept, NULL AS feed_id, host, hold_until, reason, times FROM hosts
          WHERE hold_until > ?
        UNION ALL SELECT 'feed_holds', feed_id, host, hold_until, reason, 1 FROM feed_holds
          WHERE hold_until > ?
        UNION ALL SELECT 'image_holds', NULL, host, hold_until, reason, times FROM image_holds
          WHERE hold_until > ?""",
        [since, instant(now), since],
        name="read holds",
    )


def known_holds(result: Result) -> KnownHolds:
    """The holds of a `known_statement`'s rows."""
    hosts: dict[str, list[HostHold]] = {"hosts": [], "image_holds": []}
    feeds = []
    for row in result.rows:
        until = datetime.fromisoformat(row["hold_until"])
        host, reason = row["host"], row["reason"]
        if row["kept"] == "feed_holds":
            feeds.append(FeedHold(feed_id=row["feed_id"], host=host, until=until, reason=reason))
        else:
            hold = HostHold(host=host, until=until, reason=reason, times=int(row["times"]))
            hosts[row["kept"]].append(hold)
    return KnownHolds(hosts=hosts["hosts"], feeds=feeds, images=hosts["image_holds"])


def keep_holds(
    database: Database,
    kept: Kept,
    *,
    hosts: Sequence[HostHold] = (),
    feeds: Sequence[FeedHold] = (),
    recovered: Sequence[str] = (),
    now: datetime,
) -> None:
    """Write these pauses, in one request, and drop those of hosts that have recovered.

    One that is there is prolonged and never shortened. None stands under a lease: what a host asked for is
    so whoever asked it.
    """
    statements = [
        *(
            Statement(_HOST.format(kept=kept), [chunk], name="keep host holds")
            for chunk in chunked(map(_host_row, hosts))
        ),
        *feed_statements(feeds),
        *(
            # Another run may have been told of a new pause meanwhile.
            Statement(
                f"DELETE FROM {kept} WHERE hold_until <= ? AND host IN (SELECT value FROM json_each(?))",
                [instant(now), chunk],
                name="drop holds of recovered hosts",
            )
            for chunk in chunked(map(compact, recovered))
        ),
    ]
    if feeds:
        statements.append(
            Statement(
                "DELETE FROM feed_holds WHERE hold_until <= ?", [instant(now)], name="drop old feed holds"
            )
        )
    if statements:
        database.batch(statements)


def feed_statements(feeds: Sequence[FeedHold]) -> list[Statement]:
    """Write these feeds' pauses, likewise."""
    rows = (compact([hold.feed_id, *_of(hold)]) for hold in feeds)
    return [Statement(_FEED, [chunk], name="keep feed holds") for chunk in chunked(rows)]


def _host_row(hold: HostHold) -> str:
    return compact([*_of(hold), hold.times])


def _of(hold: HostHold | FeedHold) -> list[str]:
    return [hold.host, instant(hold.until), storable(hold.reason)]


_HOST = """INSERT INTO {kept} (host, hold_until, reason, times)
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]') FROM json_each(?) WHERE true
  ON CONFLICT (host) DO UPDATE SET hold_until = excluded.hold_until, reason = excluded.reason,
    times = excluded.times WHERE excluded.hold_until > hold_until"""
_FEED = """INSERT INTO feed_holds (feed_id, host, hold_until, reason)
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]') FROM json_each(?) WHERE true
  ON CONFLICT (feed_id) DO UPDATE SET host = excluded.host, hold_until = excluded.hold_until,
    reason = excluded.reason WHERE excluded.hold_until > hold_until"""


def heal_wrong_clock(now: datetime) -> list[Statement]:
    """Drop feeds' and hosts' pauses that came from a clock far ahead."""
    late = instant(now + WRONG_CLOCK)
    return [
        Statement(f"DELETE FROM {table} WHERE hold_until > ?", [late], name="drop holds of a wrong clock")
        for table in ("hosts", "feed_holds")
    ]
