"""Leases: renewing and ending them, releasing feeds and hosts, and waiting for hosts that another run holds.

Taking a lease is claims.py's; what a closed visit writes into a feed is closings.py's. Leases live by the
database's clock; `lease_now` is for tests only.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import NextVisit
from rss_pipeline.collector.models.hold import FeedHold, LedTo
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.claimable import AMONG
from rss_pipeline.storage.feeds.feed_row import led_to_text
from rss_pipeline.storage.feeds.stored_holds import feed_statements
from rss_pipeline.storage.sql import DB_NOW, EXPIRY, NOW, chunked, compact, new_token, storable


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


def begin(database: Database, token: str, unbegun: Sequence[str]) -> bool:
    """Note that all feeds of a lease but these are begun; False where it has lapsed."""
    written = database.query(
        f"UPDATE leases SET unbegun = ? WHERE token = ? AND expires_at > {NOW}",
        [compact(list(unbegun)), token],
        name="note begun feeds",
    )
    return written.changes == 1


def forgive_unbegun(clock: str | None) -> list[Statement]:
    """Statements that make what lapsed leases have not begun as if it had never been claimed."""
    return [
        Statement(
            f"""UPDATE feeds SET lease_token = NULL, {_NOT_CLAIMED}
            FROM leases AS l, json_each(l.unbegun) AS j
            WHERE l.expires_at <= {DB_NOW} AND feeds.id = j.value AND feeds.lease_token = l.token""",
            [clock],
            name="forgive what was not begun",
        ),
        Statement(
            f"UPDATE leases SET unbegun = '[]' WHERE expires_at <= {DB_NOW} AND unbegun <> '[]'",
            [clock],
            name="forget what was not begun",
        ),
    ]


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


_NOT_CLAIMED = """unclosed_claims = max(unclosed_claims - 1, 0),
  claimed_with = CASE WHEN unclosed_claims > 1 THEN claimed_with ELSE 0 END"""
LeaseKind = Literal["feeds", "images"]
"""A lease holds hosts for requests for feeds, or for images: a site's images and its feed do not wait for
each other."""
_HOSTS: Mapping[LeaseKind, str] = {"feeds": "hosts", "images": "image_hosts"}
_RECENT: Mapping[LeaseKind, str] = {"feeds": "asked", "images": "image_asked"}


def take_host(
    database: Database, token: str, host: str, *, kind: LeaseKind, ours: Sequence[str], is_due: bool
) -> tuple[bool, bool]:
    """Let a live lease hold one more host, unless another run's does, or, with `is_due`, a refresh by hand
    waits for it. `ours` are all leases of the run.

    Return whether it holds it now, and whether another run made requests to it until just now.
    """
    column = _HOSTS[kind]
    others = f"l.expires_at > {NOW} AND l.token NOT IN (SELECT value FROM json_each(?))"
    awaited = f"""AND NOT EXISTS (SELECT 1 FROM leases AS l, json_each(l.awaited) AS j
          WHERE {others} AND j.value = ?)"""
    own = compact(list(ours))
    taken, recent = database.batch(
        [
            Statement(
                f"""UPDATE leases SET {column} = (SELECT json_group_array(value) FROM (
                  SELECT value FROM json_each(leases.{column}) UNION SELECT ?))
                WHERE token = ? AND expires_at > {NOW} AND NOT EXISTS (
                  SELECT 1 FROM leases AS l, json_each(l.{column}) AS j WHERE {others} AND j.value = ?)
                {awaited if is_due else ""}""",
                [host, token, own, host, *([own, host] if is_due else ())],
                name="take host",
            ),
            Statement(
                f"""SELECT 1 FROM leases AS l, json_each(l.{_RECENT[kind]}) AS j
                WHERE l.expires_at > {NOW} AND j.value = ? LIMIT 1""",
                [host],
                name="find whether a host is recent",
            ),
        ]
    )
    return taken.changes == 1, bool(recent.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentHosts:
    """Hosts that a run made requests to until just now: the next run waits as long as this one would."""

    run_id: str
    seconds: float
    """The longest that one of them may be left alone."""
    hosts: Sequence[str] = ()
    image_hosts: Sequence[str] = ()

    def statements(self) -> list[Statement]:
        """Statements for the batch that frees the hosts; none where they were left alone for long enough."""
        if not (self.hosts or self.image_hosts):
            return []
        # Leases end at whole seconds.
        seconds = math.ceil(self.seconds) + 1
        hosts = [compact(list(hosts)) for hosts in (self.hosts, self.image_hosts)]
        return [
            Statement(
                f"DELETE FROM leases WHERE (asked <> '[]' OR image_asked <> '[]') AND expires_at <= {NOW}",
                name="forget recent hosts",
            ),
            Statement(
                f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts, asked, image_asked)
                VALUES (?, ?, {EXPIRY}, ?, '[]', '[]', ?, ?) ON CONFLICT DO NOTHING""",
                [new_token(), self.run_id, None, seconds, seconds, *hosts],
                name="note recent hosts",
            ),
        ]


def begin_without_feeds(database: Database, token: str, *, run_id: str, lease_seconds: int) -> None:
    """Make a lease to which `take_host` can add hosts."""
    database.query(
        f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts)
        VALUES (?, ?, {EXPIRY}, ?, '[]', '[]')""",
        [token, run_id, None, lease_seconds, lease_seconds],
        name="begin lease without feeds",
    )


def begin_turn(database: Database, token: str, turn: str, *, run_id: str, lease_seconds: int) -> bool:
    """Make a lease for what one run does at a time; False while another run has it. Its name is no host's."""
    taken = database.query(
        f"""INSERT INTO leases (token, run_id, expires_at, seconds, feeds, hosts, awaited)
        SELECT ?, ?, {EXPIRY}, ?, '[]', '[]', ? WHERE NOT EXISTS (
          SELECT 1 FROM leases AS l, json_each(l.awaited) AS j WHERE l.expires_at > {NOW} AND j.value = ?)""",
        [token, run_id, None, lease_seconds, lease_seconds, compact([turn]), turn],
        name="begin a turn",
    )
    return taken.changes == 1


def await_host(database: Database, token: str, host: str) -> None:
    """Record that the run with this lease waits for a host, as `await_hosts` does for hosts of feeds."""
    database.query(
        "UPDATE leases SET awaited = ? WHERE token = ?", [compact([host]), token], name="wait for a host"
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
    """The time at which it is due instead, and why; None: due as before the claim."""
    hold: FeedHold | None = None
    """A hold to keep for the feed itself, where a host other than its own is on hold. Without it each
    refresh by hand would request the feed's own host in vain."""
    led_to: LedTo | None = None
    """A redirect to follow at the next visit."""


def release(database: Database, releases: Sequence[Release], *, others: Sequence[Statement] = ()) -> None:
    """Release feeds that are still held by the tokens named, and run `others` in the same batch."""
    rows = (
        compact(
            [each.feed_id, each.token]
            if each.next is None
            else [
                each.feed_id,
                each.token,
                instant(each.next.at),
                storable(each.next.reason),
                each.next.kind,
                led_to_text(each.led_to),
            ]
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


_RELEASE = f"""UPDATE feeds SET lease_token = NULL, {_NOT_CLAIMED},
  next_fetch_at = coalesce(json_extract(v.value, '$[2]'), next_fetch_at),
  schedule_reason = coalesce(json_extract(v.value, '$[3]'), schedule_reason),
  schedule_kind = coalesce(json_extract(v.value, '$[4]'), schedule_kind),
  led_to = coalesce(json_extract(v.value, '$[5]'), led_to),
  outage_pauses = CASE WHEN json_extract(v.value, '$[4]') = 'our_outage' THEN outage_pauses + 1
    ELSE outage_pauses END
  FROM json_each(?) AS v WHERE feeds.id = json_extract(v.value, '$[0]')
    AND feeds.lease_token = json_extract(v.value, '$[1]')"""


def end(
    database: Database,
    token: str,
    *,
    forgive: bool,
    recent_hosts: RecentHosts | None = None,
    beside: Statement | None = None,
) -> None:
    """Drop a lease and release what it still holds, with the statement `beside`; for some of its hosts the
    next run waits for their pace.

    With `forgive` its feeds are as if never claimed: the run ended politely, or a store failed. Without,
    the claims of those that were begun stay counted: something in the run may have come from one of their
    documents.
    """
    forgiven = "feeds" if forgive else "unbegun"
    database.batch(
        [
            Statement(
                f"""UPDATE feeds SET lease_token = NULL, backup_unsure = 1,
                  unclosed_claims = CASE
                    WHEN id IN (SELECT value FROM json_each((SELECT {forgiven} FROM leases WHERE token = ?)))
                    THEN max(unclosed_claims - 1, 0) ELSE unclosed_claims END
                WHERE lease_token = ?
                AND id IN (SELECT value FROM json_each((SELECT feeds FROM leases WHERE token = ?)))""",
                [token, token, token],
                name="release feeds of a lease",
            ),
            Statement("DELETE FROM leases WHERE token = ?", [token], name="end lease"),
            *(recent_hosts.statements() if recent_hosts is not None else ()),
            *([] if beside is None else [beside]),
        ]
    )


def end_of_killed(database: Database, run_ids: Sequence[str], *, host_delay: float) -> None:
    """Drop the leases of runs that were killed. Claims that were begun stay counted, and the next run leaves
    the hosts alone for so many seconds, as these would have."""
    rows = database.query(
        """SELECT token, run_id, hosts, image_hosts FROM leases
        WHERE run_id IN (SELECT value FROM json_each(?)) AND asked = '[]' AND image_asked = '[]'""",
        [compact(list(run_ids))],
        name="find leases of killed runs",
    ).rows
    for row in rows:
        recent = RecentHosts(
            run_id=row["run_id"],
            seconds=host_delay,
            hosts=json.loads(row["hosts"]),
            image_hosts=json.loads(row["image_hosts"]),
        )
        end(database, row["token"], forgive=False, recent_hosts=recent)


LIVE_RUNS = f"SELECT DISTINCT run_id FROM leases WHERE expires_at > {DB_NOW}"


def live_run_ids(database: Database) -> frozenset[str]:
    """Ids of the runs that hold a live lease."""
    rows = database.query(LIVE_RUNS, [None], name="read live runs").rows
    return frozenset(row["run_id"] for row in rows)
