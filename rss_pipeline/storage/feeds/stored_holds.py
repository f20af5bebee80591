"""Holds (Retry-After, 429): `hosts` for all of a host, `feed_holds` for one feed, `image_holds` for a host's
images alone.

What a claim leaves out because of them is in claimable.py and images/image_claims.py; how long they are is
collector.fetch.holds'.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import instant, whole_second
from rss_pipeline.collector.models.hold import FeedHold, HostGap, HostHold
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.sql import NOW, chunked, compact, storable

REMEMBERED = timedelta(days=7)
"""A hold that ended longer ago is forgotten: the host's next one counts as its first."""
WRONG_CLOCK = timedelta(hours=25)
"""No schedule and no hold of ours reaches further, so a later instant came from a wrong clock."""

LATE_FEED_HOLD = """hold_until > ? AND feed_id NOT IN (
  SELECT address FROM new_addresses WHERE begins_at > ?)"""
"""A feed's hold ends later than it can, and the feed has no such turn (refresh/new_addresses.py). Binds the
instant twice."""

Kept = Literal["hosts", "image_holds"]

NOT_HELD = """host NOT IN (SELECT host FROM hosts WHERE hold_until > ?)
    AND id NOT IN (SELECT feed_id FROM feed_holds WHERE hold_until > ?)"""
"""A feed is not on hold, nor its host, at the instant, which is bound twice."""

DUE_NOW = f"{POLLED} AND next_fetch_at <= ? AND {NOT_HELD}"
"""A feed is due and not on hold, at the instant, which is bound three times."""

ON_HOLD = "its host is on hold"
"""Why the next visit is later than the schedule has it, for people."""


def free_since(feeds: str = "feeds") -> str:
    """SQL for the next visit: the instant from which on a feed is due and not on hold.

    `feeds` is the table's alias.
    """
    return f"""max({feeds}.next_fetch_at,
      coalesce((SELECT hold_until FROM hosts WHERE hosts.host = {feeds}.host), ''),
      coalesce((SELECT hold_until FROM feed_holds WHERE feed_holds.feed_id = {feeds}.id), ''))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHolds:
    """The holds of the database: those in force, and ended ones of hosts, which may come again."""

    hosts: Sequence[HostHold] = ()
    feeds: Sequence[FeedHold] = ()
    images: Sequence[HostHold] = ()
    gaps: Sequence[HostGap] = ()
    image_gaps: Sequence[HostGap] = ()
    recent_hosts: Sequence[str] = ()
    """Hosts that other runs made requests to until just now."""
    recent_image_hosts: Sequence[str] = ()
    """Likewise, for images."""


def known_statement(now: datetime) -> Statement:
    """A query for all holds, and the recent hosts, for a claim's batch; `known_holds` reads its result."""
    since = instant(now - REMEMBERED)
    return Statement(
        f"""SELECT 'hosts' AS kept, NULL AS feed_id, host, hold_until, reason, times, NULL AS url_hash
          FROM hosts WHERE hold_until > ?
        UNION ALL SELECT 'feed_holds', feed_id, host, hold_until, reason, 1, url_hash FROM feed_holds
          WHERE hold_until > ?
        -- One within the other: D1 takes five queries in one at most.
        UNION ALL SELECT kept, NULL, host, hold_until, reason, times, NULL FROM (
          SELECT 'image_holds' AS kept, host, hold_until, reason, times FROM image_holds WHERE hold_until > ?
          UNION ALL SELECT kept || '_gap', host, asked_at, since, seconds FROM host_gaps)
        UNION ALL SELECT 'recent_hosts', NULL, j.value, expires_at, '', 0, NULL
          FROM leases, json_each(asked) AS j WHERE expires_at > {NOW}
        UNION ALL SELECT 'recent_image_hosts', NULL, j.value, expires_at, '', 0, NULL
          FROM leases, json_each(image_asked) AS j WHERE expires_at > {NOW}""",
        [since, instant(now), since],
        name="read holds",
    )


def known_holds(result: Result) -> KnownHolds:
    """The holds of a `known_statement`'s rows."""
    hosts: dict[str, list[HostHold]] = {"hosts": [], "image_holds": []}
    feeds = []
    gaps: dict[str, list[HostGap]] = {"hosts_gap": [], "image_holds_gap": []}
    recent: dict[str, list[str]] = {"recent_hosts": [], "recent_image_hosts": []}
    for row in result.rows:
        if row["kept"] in recent:
            recent[row["kept"]].append(row["host"])
            continue
        until = datetime.fromisoformat(row["hold_until"])
        if row["kept"] in gaps:
            gap = HostGap(
                host=row["host"],
                gap=timedelta(seconds=int(row["times"])),
                since=datetime.fromisoformat(row["reason"]),
                asked_at=until,
            )
            gaps[row["kept"]].append(gap)
            continue
        host, reason = row["host"], row["reason"]
        if row["kept"] == "feed_holds":
            feeds.append(
                FeedHold(
                    feed_id=row["feed_id"], host=host, until=until, reason=reason, url_hash=row["url_hash"]
                )
            )
        else:
            hold = HostHold(host=host, until=until, reason=reason, times=int(row["times"]))
            hosts[row["kept"]].append(hold)
    return KnownHolds(
        hosts=hosts["hosts"],
        feeds=feeds,
        images=hosts["image_holds"],
        gaps=gaps["hosts_gap"],
        image_gaps=gaps["image_holds_gap"],
        recent_hosts=tuple(recent["recent_hosts"]),
        recent_image_hosts=tuple(recent["recent_image_hosts"]),
    )


def keep_holds(
    database: Database,
    kept: Kept,
    *,
    hosts: Sequence[HostHold] = (),
    feeds: Sequence[FeedHold] = (),
    recovered: Sequence[str] = (),
    gaps: Sequence[HostGap] = (),
    now: datetime,
) -> None:
    """Write these holds and gaps, in one request; the next one of a host that has recovered is its second.

    A stored hold is prolonged and never shortened, and is forgotten a week after its end. No lease guards
    them: a host's demand is valid for every run.
    """
    statements = [
        *(
            Statement(_HOST.format(kept=kept), [chunk], name="keep host holds")
            for chunk in chunked(map(_host_row, hosts))
        ),
        *feed_statements(feeds),
        *(
            # Another run may have met a new hold meanwhile.
            Statement(
                f"""UPDATE {kept} SET times = 1
                WHERE hold_until <= ? AND host IN (SELECT value FROM json_each(?))""",
                [instant(now), chunk],
                name="note hosts that have recovered",
            )
            for chunk in chunked(map(compact, recovered))
        ),
    ]
    statements += [
        Statement(_GAP, [kept, chunk], name="keep gaps of hosts") for chunk in chunked(map(_gap_row, gaps))
    ]
    if gaps:
        statements.append(
            Statement("DELETE FROM host_gaps WHERE seconds < ?", [_LEAST_SECONDS], name="drop eased gaps")
        )
    if hosts or recovered:
        statements.append(
            Statement(
                f"DELETE FROM {kept} WHERE hold_until <= ?",
                [instant(now - REMEMBERED)],
                name="drop old holds",
            )
        )
    if feeds:
        statements.append(
            Statement(
                "DELETE FROM feed_holds WHERE hold_until <= ?", [instant(now)], name="drop old feed holds"
            )
        )
    if statements:
        database.batch(statements)


def feed_statements(feeds: Sequence[FeedHold]) -> list[Statement]:
    """Statements that write these feeds' holds, likewise."""
    rows = (compact([hold.feed_id, *_of(hold), hold.url_hash]) for hold in feeds)
    return [Statement(_FEED, [chunk], name="keep feed holds") for chunk in chunked(rows)]


def _host_row(hold: HostHold) -> str:
    return compact([*_of(hold), hold.times])


def _gap_row(gap: HostGap) -> str:
    seconds = math.ceil(gap.gap.total_seconds())
    return compact([gap.host, seconds, instant(gap.since), instant(whole_second(gap.asked_at))])


def _of(hold: HostHold | FeedHold) -> list[str]:
    return [hold.host, instant(hold.until), storable(hold.reason)]


_HOST = """INSERT INTO {kept} (host, hold_until, reason, times)
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    CAST(json_extract(value, '$[3]') AS INTEGER) FROM json_each(?) WHERE true
  ON CONFLICT (host) DO UPDATE SET hold_until = excluded.hold_until, reason = excluded.reason,
    times = excluded.times WHERE excluded.hold_until > {kept}.hold_until"""
_LEAST_SECONDS = 4
"""Gaps are rounded up to whole seconds; one below three is over."""
_GAP = """WITH given(kept) AS (SELECT ?)
  INSERT INTO host_gaps (kept, host, seconds, since, asked_at)
  SELECT given.kept, json_extract(value, '$[0]'), CAST(json_extract(value, '$[1]') AS INTEGER),
    json_extract(value, '$[2]'), json_extract(value, '$[3]') FROM given, json_each(?) WHERE true
  ON CONFLICT (kept, host) DO UPDATE SET seconds = excluded.seconds, since = excluded.since,
    asked_at = excluded.asked_at"""
_FEED = """INSERT INTO feed_holds (feed_id, host, hold_until, reason, url_hash)
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]') FROM json_each(?) WHERE true
  ON CONFLICT (feed_id) DO UPDATE SET host = excluded.host, hold_until = excluded.hold_until,
    reason = excluded.reason, url_hash = excluded.url_hash
    WHERE excluded.hold_until > feed_holds.hold_until"""


def release_listed(ids: str, *, now: datetime) -> list[Statement]:
    """End the waiting for a turn of feeds, a JSON list of ids, that feeds.yaml lists: nothing of it waits."""
    return [
        Statement(
            """DELETE FROM feed_holds WHERE feed_id IN (SELECT value FROM json_each(?))
            AND feed_id IN (SELECT address FROM new_addresses WHERE begins_at > ?)""",
            [ids, instant(now)],
            name="release listed feeds",
        ),
        Statement(
            """DELETE FROM new_addresses WHERE begins_at > ?
            AND address IN (SELECT value FROM json_each(?))""",
            [instant(now), ids],
            name="end the turns of listed feeds",
        ),
    ]


def leave_address(ids: str, params: Sequence[Value]) -> list[Statement]:
    """End the holds of feeds that get another address; `ids` is a query for these, which binds `params`.

    An address that wants no request keeps its hold, under a name of no feed: another feed may lead there,
    and this one may come back.
    """
    return [
        Statement(
            f"""INSERT INTO feed_holds (feed_id, host, hold_until, reason, url_hash)
            SELECT feed_id || ' ' || url_hash, host, hold_until, reason, url_hash FROM feed_holds
            WHERE url_hash IS NOT NULL AND feed_id IN ({ids})
            ON CONFLICT (feed_id) DO UPDATE SET hold_until = excluded.hold_until, reason = excluded.reason""",
            params,
            name="keep holds of old addresses",
        ),
        Statement(
            f"DELETE FROM feed_holds WHERE feed_id IN ({ids})", params, name="drop holds of old addresses"
        ),
    ]


def heal_wrong_clock(now: datetime) -> list[Statement]:
    """Statements that drop the holds of feeds and hosts that a clock far ahead wrote."""
    late = instant(now + WRONG_CLOCK)
    return [
        Statement("DELETE FROM hosts WHERE hold_until > ?", [late], name="drop holds of a wrong clock"),
        Statement(
            f"DELETE FROM feed_holds WHERE {LATE_FEED_HOLD}",
            [late, late],
            name="drop feed holds of a wrong clock",
        ),
    ]
