"""The table `new_addresses`: the turns of addresses that are new to the installation, so many an hour a user.

A turn is given in the batch that makes it necessary, so that what is sent at once shares one hour. Known
feeds need none, and the owner of the installation gets none: nothing of theirs waits.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.sql import compact, number

AN_HOUR = 60
_SPAN = timedelta(hours=1)
_SECONDS = int(_SPAN.total_seconds())
_REASON = f"a user adds at most {AN_HOUR} new addresses an hour; this one has its turn then"

NOT_OWNER = "? IN (SELECT id FROM users ORDER BY created_at, id LIMIT -1 OFFSET 1)"
"""The user, who is bound, exists and is not the one that was made first."""
LATER = "SELECT address FROM new_addresses WHERE begins_at > ?"
"""The addresses that wait for their turn at the instant that is bound."""
# Each turn is an hour after the 60th before it, if that is not over: of those given before, or of these.
_GIVE = f"""WITH latest AS (
    SELECT begins_at, row_number() OVER (ORDER BY begins_at DESC) AS back
    FROM new_addresses WHERE user_id = ?),
  given AS (
    SELECT value AS address, row_number() OVER (ORDER BY {number("j.key")}) - 1 AS n
    FROM json_each(?) AS j WHERE {{is_new}}
      AND j.value NOT IN (SELECT address FROM new_addresses WHERE user_id = ?))
  INSERT INTO new_addresses (user_id, address, begins_at)
  SELECT ?, given.address, strftime('%Y-%m-%dT%H:%M:%SZ', max(?, coalesce(
      strftime('%Y-%m-%dT%H:%M:%SZ', latest.begins_at, '+{_SECONDS} seconds'), '')),
    '+' || CAST(given.n / {AN_HOUR} * {_SECONDS} AS INTEGER) || ' seconds')
  FROM given LEFT JOIN latest ON latest.back = {AN_HOUR} - given.n % {AN_HOUR}
  WHERE {NOT_OWNER} ON CONFLICT DO NOTHING"""
_IS_NEW_FEED = f"""(j.value IN ({LATER}) OR NOT EXISTS (SELECT 1 FROM feeds WHERE feeds.id = j.value
  AND forgotten = 0 AND (registered = 1 OR last_visited_at IS NOT NULL)))"""
_IS_OPEN_SEARCH = "EXISTS (SELECT 1 FROM refresh_requests AS r WHERE r.id = j.value AND r.state <> 'done')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The addresses of a user that wait for their turn."""

    waiting: int = 0
    until: datetime | None = None
    """The turn of the last one; None where none waits."""
    an_hour: int = AN_HOUR
    """The addresses of one user that have their turn within an hour."""


def give_turns(user_id: str, feed_ids: Sequence[str], *, now: datetime) -> list[Statement]:
    """Give turns to those of these feeds that nobody has, or that wait for somebody else's turn. It goes into
    its batch before the feeds are added, and `hold_until_turn` behind."""
    at = instant(now)
    return [_forget(now), _give(user_id, compact(list(feed_ids)), _IS_NEW_FEED, [at], at)]


def give_turn_anew(
    user_id: str, feed_id: str, *, condition: str, params: Sequence[str], now: datetime
) -> list[Statement]:
    """Give a turn to a feed that gets another address, if its row meets the condition, whether or not it had
    one: a turn that is over counts on, under a name of no feed."""
    at = instant(now)
    is_new = f"EXISTS (SELECT 1 FROM feeds WHERE feeds.id = j.value AND {condition})"
    return [
        _forget(now),
        Statement(
            "UPDATE new_addresses SET address = address || ? WHERE user_id = ? AND address = ?"
            " AND begins_at <= ?",
            [f" {secrets.token_hex(8)}", user_id, feed_id, at],
            name="count the turn of a former address",
        ),
        leave_queue(user_id, [feed_id], now=now),
        _give(user_id, compact([feed_id]), is_new, params, at),
    ]


def hold_until_turn(
    user_id: str, feed_ids: Sequence[str], *, now: datetime, has_new_address: bool = False
) -> list[Statement]:
    """Hold these feeds until their turns, as far as they were never visited, or have another address now. One
    whose turn has come with this user, or that the owner wants, is released, and waits with nobody."""
    never = "" if has_new_address else "AND feeds.last_visited_at IS NULL"
    ids, at = compact(list(feed_ids)), instant(now)
    return [
        Statement(
            f"""INSERT INTO feed_holds (feed_id, host, hold_until, reason)
            SELECT feeds.id, feeds.host, a.begins_at, ? FROM json_each(?) AS j
            CROSS JOIN new_addresses AS a ON a.user_id = ? AND a.address = j.value AND a.begins_at > ?
            CROSS JOIN feeds ON feeds.id = a.address
            WHERE feeds.listed = 0 {never}
            ON CONFLICT (feed_id) DO UPDATE SET
              hold_until = min(feed_holds.hold_until, excluded.hold_until)""",
            [_REASON, ids, user_id, at],
            name="hold new feeds until their turn",
        ),
        Statement(
            f"""DELETE FROM feed_holds WHERE feed_id IN (SELECT value FROM json_each(?))
            AND feed_id IN ({LATER})
            AND feed_id NOT IN (SELECT address FROM new_addresses WHERE user_id = ? AND begins_at > ?)""",
            [ids, at, user_id, at],
            name="release feeds whose turn has come",
        ),
        Statement(
            """DELETE FROM new_addresses WHERE begins_at > ? AND address IN (SELECT value FROM json_each(?))
            AND address NOT IN (SELECT address FROM new_addresses WHERE user_id = ? AND begins_at > ?)""",
            [at, ids, user_id, at],
            name="end the turns of feeds that wait no more",
        ),
    ]


def queue_search(user_id: str, request_id: str, *, now: datetime) -> list[Statement]:
    """Give a turn to a search, if its request was made."""
    at = instant(now)
    return [
        _forget(now),
        _give(user_id, compact([request_id]), _IS_OPEN_SEARCH, [], at),
        Statement(
            """UPDATE refresh_requests SET begins_at = (SELECT begins_at FROM new_addresses AS a
              WHERE a.user_id = ? AND a.address = refresh_requests.id AND a.begins_at > ?)
            WHERE id = ?""",
            [user_id, at, request_id],
            name="let a search wait for its turn",
        ),
    ]


def give_turns_to(
    user_id: str, addresses: Sequence[str], *, condition: str, params: Sequence[str], now: datetime
) -> list[Statement]:
    """Give turns to addresses that are no feeds, those for which a condition on `j.value` holds."""
    return [_forget(now), _give(user_id, compact(list(addresses)), condition, params, instant(now))]


def read_queue(user_id: str, *, now: datetime) -> Statement:
    """A query for the addresses of a user that wait; `queue_of` reads its result."""
    return Statement(
        """SELECT count(*) AS waiting, max(begins_at) AS until FROM new_addresses
        WHERE user_id = ? AND begins_at > ?""",
        [user_id, instant(now)],
        name="count waiting addresses",
    )


def queue_of(result: Result) -> Queue:
    """The queue of the row of `read_queue`."""
    [row] = result.rows
    return Queue(waiting=int(row["waiting"]), until=from_instant(row["until"]))


def leave_queue(user_id: str, feed_ids: Sequence[str], *, now: datetime) -> Statement:
    """Give up the turns of feeds that the user does not want any more."""
    return Statement(
        """DELETE FROM new_addresses WHERE user_id = ? AND begins_at > ?
        AND address IN (SELECT value FROM json_each(?))""",
        [user_id, instant(now), compact(list(feed_ids))],
        name="give up turns",
    )


def _give(user_id: str, ids: str, is_new: str, params: Sequence[str], at: str) -> Statement:
    return Statement(
        _GIVE.format(is_new=is_new),
        [user_id, ids, *params, user_id, user_id, at, user_id],
        name="give turns to new addresses",
    )


def _forget(now: datetime) -> Statement:
    return Statement(
        "DELETE FROM new_addresses WHERE begins_at <= ?", [instant(now - _SPAN)], name="forget past turns"
    )
