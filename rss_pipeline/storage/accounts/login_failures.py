"""The tables `login_failures` and `known_clients`: how many logins failed, by account and by address.

Which keys an attempt counts for is in reader/accounts/login.py. An attempt is counted before its
password is looked at: attempts made at once would otherwise all be the first one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.sql import compact, number

LONGEST_LOCK = timedelta(minutes=15)
_LONGEST_SECONDS = int(LONGEST_LOCK.total_seconds())
_DOUBLED = 20
_LOCKS = compact([min(_LONGEST_SECONDS, 1 << n) for n in range(_DOUBLED + 1)])
"""Seconds of the first lock, of the second ..., of the last and of all after it."""
FORGOTTEN_AFTER = timedelta(hours=24)
"""After the last failure of a key."""
KNOWN_FOR = timedelta(days=120)
"""Time for which an account's owner is known at an address, or on a device, after a login: longer than a
session lasts, so that it still holds at the login after it."""
MOST_KNOWN = 20
"""Addresses and devices at which one account is known: the latest ones."""

_IS_KNOWN = """(CAST(? AS INTEGER) = 1 OR EXISTS (
  SELECT 1 FROM users CROSS JOIN known_clients AS c ON c.user_id = users.id
  WHERE users.name = ? AND c.address = ? AND c.last_at > ?))"""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an attempt: an address, a device, a session."""

    address: str
    is_proven: bool = False
    """True where the account is known for certain; else the addresses of earlier logins say so."""


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """A property that an attempt shares with others, and how many of those may fail before there is a
    lock."""

    key: str
    free: int
    of_known: bool
    """True if it counts only where the account is known at the address; False: only where it is not."""


def lock(keys: Sequence[AttemptKey], *, name: str, place: Place, now: datetime) -> Statement:
    """The longest lock on an attempt of this account from this place, for `locked_until`."""
    return Statement(
        f"""SELECT max(f.until) AS until FROM json_each(?) AS k
        CROSS JOIN login_failures AS f ON f.key = json_extract(k.value, '$.key')
        WHERE CAST(json_extract(k.value, '$.of_known') AS INTEGER) = {number(_IS_KNOWN)} AND f.until > ?""",
        [_json(keys), *_known(name, place, now), instant(now)],
        name="look for a lock on logins",
    )


def locked_until(result: Result) -> datetime | None:
    """The end of the lock that `lock` found; None where a login may be tried."""
    return from_instant(result.rows[0]["until"])


def count(keys: Sequence[AttemptKey], *, name: str, place: Place, now: datetime) -> Statement:
    """Count an attempt for its keys, unless one of them is locked. It changes a row for each key, or none.

    From the last free one on, each locks its key for twice as long as the one before: 1 s, 2 s, 4 s.
    """
    at = instant(now)
    return Statement(
        f"""WITH mine AS (
          SELECT json_extract(value, '$.key') AS key, CAST(json_extract(value, '$.free') AS INTEGER) AS free
          FROM json_each(?)
          WHERE CAST(json_extract(value, '$.of_known') AS INTEGER) = {number(_IS_KNOWN)}),
        counted AS (
          SELECT mine.key, free, CASE WHEN f.last_at > ? THEN f.failures ELSE 0 END + 1 AS failures
          FROM mine LEFT JOIN login_failures AS f ON f.key = mine.key)
        INSERT INTO login_failures (key, failures, last_at, until)
        SELECT key, failures, ?, CASE WHEN failures >= free THEN strftime('%Y-%m-%dT%H:%M:%SZ', ?,
          '+' || json_extract('{_LOCKS}', '$[' || min({_DOUBLED}, CAST(failures - free AS INTEGER)) || ']')
            || ' seconds') END
        FROM counted WHERE NOT EXISTS (
          SELECT 1 FROM mine CROSS JOIN login_failures AS f ON f.key = mine.key WHERE f.until > ?)
        ON CONFLICT (key) DO UPDATE SET
          failures = excluded.failures, last_at = excluded.last_at, until = excluded.until""",
        [_json(keys), *_known(name, place, now), instant(now - FORGOTTEN_AFTER), at, at, at],
        name="count a login",
    )


def take_back(keys: Sequence[AttemptKey]) -> tuple[Statement, ...]:
    """Undo `count` for these keys: the password was right, or was not looked at.

    A lock ends with it: the one that this attempt began, for under another one it had not been counted.
    """
    named = compact([key.key for key in keys])
    return (
        Statement(
            "DELETE FROM login_failures WHERE failures <= 1 AND key IN (SELECT value FROM json_each(?))",
            [named],
            name="forget a first failed login",
        ),
        Statement(
            """UPDATE login_failures SET failures = failures - 1, until = NULL
            WHERE key IN (SELECT value FROM json_each(?))""",
            [named],
            name="take back a counted login",
        ),
    )


def forget(keys: Iterable[str]) -> Statement:
    """Forget every failure of these keys."""
    return Statement(
        "DELETE FROM login_failures WHERE key IN (SELECT value FROM json_each(?))",
        [compact(list(keys))],
        name="forget failed logins",
    )


def tidy(*, now: datetime) -> Statement:
    """Remove failures that count no more."""
    return Statement(
        "DELETE FROM login_failures WHERE last_at <= ?",
        [instant(now - FORGOTTEN_AFTER)],
        name="remove old failed logins",
    )


def is_known(name: str, place: Place, *, now: datetime) -> Statement:
    """One row with `known`: 1 if this account is known at this place."""
    return Statement(
        f"SELECT {number(_IS_KNOWN)} AS known", _known(name, place, now), name="look for a known client"
    )


def know(session_id: str, address: str, *, now: datetime) -> tuple[Statement, ...]:
    """Keep that the user of this session, if it has begun, logged in from this address."""
    return (
        Statement(
            """INSERT INTO known_clients (user_id, address, last_at)
            SELECT user_id, ?, ? FROM sessions WHERE id = ?
            ON CONFLICT (user_id, address) DO UPDATE SET last_at = excluded.last_at""",
            [address, instant(now), session_id],
            name="keep a known client",
        ),
        Statement(
            """DELETE FROM known_clients WHERE user_id = (SELECT user_id FROM sessions WHERE id = ?)
            AND address IN (
              SELECT c.address FROM sessions AS s CROSS JOIN known_clients AS c ON c.user_id = s.user_id
              WHERE s.id = ? ORDER BY c.last_at DESC, c.address LIMIT -1 OFFSET ?)""",
            [session_id, session_id, MOST_KNOWN],
            name="remove old known clients",
        ),
    )


def _known(name: str, place: Place, now: datetime) -> tuple[int, str, str, str]:
    return int(place.is_proven), name, place.address, instant(now - KNOWN_FOR)


def _json(keys: Sequence[AttemptKey]) -> str:
    return compact([asdict(key) for key in keys])
