"""The table `users`: accounts by name, their passwords' hashes and their preferences.

Who may log in as one is decided in reader/accounts. Sessions are in sessions.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Database, Result, Row, Statement, one
from rss_pipeline.storage.sql import compact

NAME = re.compile(r"[a-z0-9._@-]{1,64}", re.ASCII)
"""A user's name."""
NO_PASSWORD = ""
"""In place of a password's hash: none is the right one, until the operator sets one."""
_PREFERENCES = '{"order":"published","stories":true}'
"""The preferences of a new user. A user without it, in a backup, is from when there was one order only."""
_RESTORING = -1
"""As `backed_up_version`: a restore of the user has begun and is not done. Never backed up meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user as an operator sees one."""

    id: str
    name: str
    created_at: datetime
    last_used_at: datetime | None
    """The last use of a session that has not ended."""
    sessions: int
    app_passwords: int


def insert(database: Database, *, id: str, name: str, password_hash: str, now: datetime) -> bool:
    """Add a user; False if the name is taken."""
    added = database.query(
        "INSERT INTO users (id, name, password_hash, preferences, created_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO NOTHING",
        [id, name, password_hash, _PREFERENCES, instant(now)],
        name="add a user",
    )
    return added.changes == 1


def insert_first(*, id: str, name: str, password_hash: str, now: datetime) -> Statement:
    """Add a user while there is none; else it changes no row."""
    return Statement(
        """INSERT INTO users (id, name, password_hash, preferences, created_at)
        SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM users)""",
        [id, name, password_hash, _PREFERENCES, instant(now)],
        name="add the first user",
    )


def is_there_one() -> Statement:
    """One row with `is_there`: 1 if there is a user."""
    return Statement("SELECT EXISTS (SELECT 1 FROM users) AS is_there", name="look for users")


def by_name(name: str) -> Statement:
    """The id and the password's hash of the user with this name, if there is one."""
    return Statement("SELECT id, password_hash FROM users WHERE name = ?", [name], name="find a user")


def find_id(database: Database, name: str) -> str | None:
    """The id of the user with this name."""
    row = one(database.batch([by_name(name)])[0])
    return None if row is None else str(row["id"])


def named(user_id: str) -> Statement:
    """The name of this user."""
    return Statement("SELECT name FROM users WHERE id = ?", [user_id], name="name a user")


def look_for_owner(user_id: str) -> Statement:
    """A query that gives one row if this user is the owner of the installation: the one that was made first,
    of those that are left."""
    return Statement(
        "SELECT 1 FROM (SELECT id FROM users ORDER BY created_at, id LIMIT 1) AS first WHERE first.id = ?",
        [user_id],
        name="look for the owner",
    )


def accounts(database: Database, *, now: datetime) -> list[Account]:
    """All users by name."""
    rows = database.query(
        """SELECT id, name, created_at,
          (SELECT max(last_used_at) FROM sessions WHERE user_id = users.id AND expires_at > ?)
            AS last_used_at,
          (SELECT count(*) FROM sessions WHERE user_id = users.id AND expires_at > ?) AS sessions,
          (SELECT count(*) FROM app_passwords WHERE user_id = users.id) AS app_passwords
        FROM users ORDER BY name""",
        [instant(now), instant(now)],
        name="list users",
    ).rows
    return [_account(row) for row in rows]


def change_password(user_id: str, password_hash: str) -> Statement:
    """Put another password's hash; where the user is gone it changes no row."""
    return Statement(
        "UPDATE users SET password_hash = ? WHERE id = ?", [password_hash, user_id], name="change a password"
    )


def rehash(user_id: str, *, old: str, new: str) -> Statement:
    """Put the same password's hash with today's parameters, unless the password has changed meanwhile."""
    return Statement(
        "UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?",
        [new, user_id, old],
        name="renew a password's hash",
    )


def remove(user_id: str) -> Statement:
    """Remove a user with all that refers to it."""
    return Statement("DELETE FROM users WHERE id = ?", [user_id], name="remove a user")


READ_FAILURES = "failing_read"
"""The key, beside the preferences, for the failures of feeds that the user has seen."""


def preferences(user_id: str) -> Statement:
    """The JSON of a user's preferences, and the version of what the user sees."""
    return Statement(
        "SELECT preferences, state_version FROM users WHERE id = ?",
        [user_id],
        name="read preferences",
        is_kept=True,
    )


def read_version(user_id: str) -> Statement:
    """A query for the version of all that this user sees of feeds and items, but for the times of visits
    (`state_version`, `number`), and for what `read_changes` reads (`number`, `changes`): two rows are read.

    `state_version` grows with all that is the user's own, the number of arrival with new items and with what
    `note_change_of_items` notes; a trigger does the same for the rows of feeds (0052).
    """
    return Statement(
        """SELECT u.state_version, coalesce(s.value, 0) AS number, s.changes
        FROM users AS u LEFT JOIN sequences AS s ON s.name = 'items' WHERE u.id = ?""",
        [user_id],
        name="read version of what a user sees",
    )


def read_changes() -> Statement:
    """A query for `number` and `changes`. While they are the same, no user sees anything else, but for the
    times of visits, and no session has ended before its time: one row is read, or none in a new database."""
    return Statement(
        "SELECT value AS number, changes FROM sequences WHERE name = 'items'", name="read what has changed"
    )


def note_change(user_id: str) -> Statement:
    """A statement after which clients see that something of this user has changed."""
    return Statement(
        "UPDATE users SET state_version = state_version + 1 WHERE id = ?", [user_id], name="note a change"
    )


def note_change_of_items() -> Statement:
    """A statement after which no result of before is valid, for no user: stored items went, or are shown in
    another way from now on.

    It gives a number of arrival to no item, so it never goes between an insert and its `count_on`.
    """
    return Statement(
        """INSERT INTO sequences (name, value) VALUES ('items', 1)
        ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1""",
        name="note changed items",
    )


def change_preferences(user_id: str, changes: str) -> Statement:
    """Set these preferences of a user; the others stay as they are."""
    return Statement(
        "UPDATE users SET preferences = json_patch(preferences, ?) WHERE id = ?",
        [changes, user_id],
        name="change preferences",
    )


def to_back_up(database: Database, *, all_users: bool = False) -> list[str]:
    """Ids of the users with changes that their backups do not hold, or of all, in no order: where time is
    short, it is not always the same ones that wait."""
    changed = "" if all_users else "AND backed_up_version IS NOT state_version"
    rows = database.query(
        f"SELECT id FROM users WHERE backed_up_version IS NOT {_RESTORING} {changed} ORDER BY random()",
        name="find users to back up",
    ).rows
    return [row["id"] for row in rows]


def head(user_id: str) -> Statement:
    """The row of a user, but for the password; none while the user is being restored."""
    return Statement(
        f"""SELECT id, name, created_at, preferences, state_version FROM users
        WHERE id = ? AND backed_up_version IS NOT {_RESTORING}""",
        [user_id],
        name="read a user to back up",
    )


def note_backup(database: Database, user_id: str, *, version: int) -> bool:
    """Note that the backup holds this `state_version`; False if the user is gone."""
    noted = database.query(
        "UPDATE users SET backed_up_version = ? WHERE id = ?", [version, user_id], name="note a user's backup"
    )
    return noted.changes > 0


def known_to_restore(database: Database, user_id: str, name: str) -> tuple[bool, bool]:
    """Is there a user of this id, or another one of this name, that no restore is to touch?"""
    rows = database.query(
        f"""SELECT id, backed_up_version IS NOT {_RESTORING} AS whole FROM users WHERE id = ? OR name = ?""",
        [user_id, name],
        name="find a user to restore",
    ).rows
    same = any(row["id"] == user_id and row["whole"] for row in rows)
    return same, any(row["id"] != user_id for row in rows)


def begin_restore(*, id: str, name: str, preferences: str, version: int, created_at: str) -> Statement:
    """Add a user without a password, marked as not restored completely."""
    return Statement(
        f"""INSERT INTO users (id, name, password_hash, preferences, state_version, backed_up_version,
          created_at)
        VALUES (?, ?, '{NO_PASSWORD}', ?, ?, {_RESTORING}, ?) ON CONFLICT (id) DO NOTHING""",
        [id, name, preferences, version, created_at],
        name="restore a user",
    )


def end_restore(user_id: str) -> Statement:
    """Take the mark away. The user is backed up again."""
    return Statement(
        f"""UPDATE users SET backed_up_version = NULL
        WHERE id = ? AND backed_up_version = {_RESTORING}""",
        [user_id],
        name="end the restore of a user",
    )


def put_read_failures(user_id: str, numbers: Sequence[int]) -> Statement:
    """Replace the numbers of the failures that the user has seen."""
    return Statement(
        f"UPDATE users SET preferences = json_set(preferences, '$.{READ_FAILURES}', json(?)) WHERE id = ?",
        [compact(list(numbers)), user_id],
        name="mark failures of feeds",
    )


def _account(row: Row) -> Account:
    created_at = from_instant(row["created_at"])
    assert created_at is not None
    return Account(
        id=row["id"],
        name=row["name"],
        created_at=created_at,
        last_used_at=from_instant(row["last_used_at"]),
        sessions=int(row["sessions"]),
        app_passwords=int(row["app_passwords"]),
    )


# The table `first_user_code`: one row, while there is no user, with the code that makes the first one.
#
# A try is counted before its code is looked at, so that many at once are not all the first one.

TRIES = 10
"""Wrong codes in `TRIES_LAST`."""
TRIES_LAST = timedelta(hours=1)


def put(code: str) -> Statement:
    """Keep this code while there is no user, unless there is one already."""
    return Statement(
        """INSERT INTO first_user_code (id, code) SELECT 1, ? WHERE NOT EXISTS (SELECT 1 FROM users)
        ON CONFLICT (id) DO NOTHING""",
        [code],
        name="keep a code for the first user",
    )


def read() -> Statement:
    """The code, with `tried_at`; no row where none was kept."""
    return Statement("SELECT code, tried_at FROM first_user_code", name="read the code for the first user")


def count(*, now: datetime) -> Statement:
    """Count a try; it changes no row where no further one is allowed now."""
    begun = instant(now - TRIES_LAST)
    return Statement(
        """UPDATE first_user_code SET tries = CASE WHEN tried_at > ? THEN tries ELSE 0 END + 1,
          tried_at = CASE WHEN tried_at > ? THEN tried_at ELSE ? END
        WHERE tries < ? OR tried_at <= ?""",
        [begun, begun, instant(now), TRIES, begun],
        name="count a try of the code",
    )


def tries_again_at(result: Result) -> datetime | None:
    """The time from which a code may be tried again once all tries are used, of the row that `read` gave."""
    first = from_instant(result.rows[0]["tried_at"]) if result.rows else None
    return None if first is None else first + TRIES_LAST


def take_back() -> Statement:
    """Undo `count`: the code was right."""
    return Statement("UPDATE first_user_code SET tries = tries - 1", name="take back a try of the code")


def forget() -> Statement:
    """Remove the code: it was used, or is of a time before there were users."""
    return Statement("DELETE FROM first_user_code", name="remove the code for the first user")
