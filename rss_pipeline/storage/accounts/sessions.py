"""Statements on sessions: one that shows a session alive, one that guards a write, begin, renew and end.

They are put together with others into one batch, so that a request needs one round trip. Who may begin a
session is decided in reader/accounts.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Statement

Kind = Literal["login", "google_reader"]

LIFETIME = timedelta(days=30)
"""A session ends this long after its last use."""
LONGEST_DAYS = {"login": 90, "google_reader": 365}
"""A session ends so many days after its begin, however much it is used. Apps begin the next by themselves."""
TOUCHED_EVERY = timedelta(minutes=10)
"""The last use is written this often at most: otherwise each read would be a write."""
MOST_OF_A_KIND = 50
"""Sessions of one user and app password, or of one user's own password. Some clients log in at each start."""

_CLIENT_CHARACTERS = 200
_END = f"""min(?, strftime('%Y-%m-%dT%H:%M:%SZ', created_at, '+' || CASE kind
  WHEN 'login' THEN {LONGEST_DAYS["login"]} ELSE {LONGEST_DAYS["google_reader"]} END || ' days'))"""
"""The end of a session that is used now; binds the end that its last use gives it."""
_ALIVE = "SELECT {} FROM sessions WHERE id = ? AND user_id = ? AND kind = ? AND expires_at > ?"


def alive(session_id: str, user_id: str, kind: Kind, *, now: datetime) -> Statement:
    """One row with `last_used_at` and `expires_at` while this session is that user's, of that kind, and has
    not ended."""
    return Statement(
        _ALIVE.format("last_used_at, expires_at"),
        [session_id, user_id, kind, instant(now)],
        name="look for a session",
    )


def guard(session_id: str, user_id: str, kind: Kind, *, now: datetime) -> tuple[Statement, Statement]:
    """The first statements of a batch that writes. The second raises the user's `state_version`.

    Where the session has ended, or the user is gone, the first one inserts a session without an id, which its
    table refuses (StorageRejected), so that nothing of the batch is applied.
    """
    return (
        Statement(
            f"""INSERT INTO sessions (id, user_id, kind, client, created_at, expires_at, last_used_at)
            SELECT NULL, '', 'login', '', '', '', '' WHERE NOT EXISTS ({_ALIVE.format(1)})""",
            [session_id, user_id, kind, instant(now)],
            name="guard a write by its session",
        ),
        Statement(
            "UPDATE users SET state_version = state_version + 1 WHERE id = ?",
            [user_id],
            name="raise a user's state version",
        ),
    )


def touch(session_id: str, *, now: datetime) -> tuple[Statement, ...]:
    """Write the last use of a session and of its app password, if that is due; its time begins again."""
    at, before = instant(now), instant(now - TOUCHED_EVERY)
    return (
        Statement(
            """UPDATE app_passwords SET last_used_at = ? WHERE id =
              (SELECT app_password_id FROM sessions WHERE id = ? AND last_used_at <= ? AND expires_at > ?)""",
            [at, session_id, before, at],
            name="write last use of an app password",
        ),
        Statement(
            f"""UPDATE sessions SET last_used_at = ?, expires_at = {_END}
            WHERE id = ? AND last_used_at <= ? AND expires_at > ?""",
            [at, instant(now + LIFETIME), session_id, before, at],
            name="write last use of a session",
        ),
    )


def begin_by_password(
    session_id: str, user_id: str, *, password_hash: str, client: str, now: datetime
) -> Statement:
    """Begin a session, unless the password is no longer the one that was checked: it then changes no row."""
    return Statement(
        """INSERT INTO sessions (id, user_id, kind, client, created_at, expires_at, last_used_at)
        SELECT ?, id, 'login', ?, ?, ?, ? FROM users WHERE id = ? AND password_hash = ?""",
        [session_id, _cut(client), *_times(now), user_id, password_hash],
        name="begin a session",
    )


def begin_by_app_password(
    session_id: str, *, user_name: str, secret_hash: str, client: str, now: datetime
) -> Statement:
    """Begin a session by the app password with this hash; where the user has none it changes no row."""
    return Statement(
        """INSERT INTO sessions
          (id, user_id, kind, app_password_id, client, created_at, expires_at, last_used_at)
        SELECT ?, p.user_id, 'google_reader', p.id, ?, ?, ?, ?
        FROM users AS u CROSS JOIN app_passwords AS p ON p.user_id = u.id
        WHERE u.name = ? AND p.secret_hash = ?""",
        [session_id, _cut(client), *_times(now), user_name, secret_hash],
        name="begin a session of an app",
    )


def tidy(session_id: str, *, now: datetime) -> Statement:
    """Remove old sessions of this new one's user: those that ended, and of too many those unused longest."""
    return Statement(
        """DELETE FROM sessions WHERE user_id = (SELECT user_id FROM sessions WHERE id = ?) AND id <> ? AND (
          expires_at <= ? OR id IN (
            SELECT other.id FROM sessions AS mine JOIN sessions AS other ON other.user_id = mine.user_id
              AND other.kind = mine.kind AND other.app_password_id IS mine.app_password_id
            WHERE mine.id = ? AND other.id <> mine.id
            ORDER BY other.last_used_at DESC, other.id LIMIT -1 OFFSET ?))""",
        [session_id, session_id, instant(now), session_id, MOST_OF_A_KIND - 1],
        name="remove old sessions",
    )


def user_of(session_id: str) -> Statement:
    """One row with `user_id` if there is such a session."""
    return Statement("SELECT user_id FROM sessions WHERE id = ?", [session_id], name="find a session's user")


def renew(session_id: str, user_id: str, kind: Kind, *, now: datetime) -> Statement:
    """Let a session that is alive live on from now; it changes one row, or none."""
    at = instant(now)
    return Statement(
        f"""UPDATE sessions SET last_used_at = ?, expires_at = {_END}
        WHERE id = ? AND user_id = ? AND kind = ? AND expires_at > ?""",
        [at, instant(now + LIFETIME), session_id, user_id, kind, at],
        name="renew a session",
    )


def end(session_id: str) -> Statement:
    """End one session; again, it changes no row."""
    return Statement("DELETE FROM sessions WHERE id = ?", [session_id], name="end a session")


def listed(user_id: str, *, now: datetime) -> Statement:
    """A user's sessions that have not ended, the last used first."""
    return Statement(
        """SELECT s.id, s.kind, p.name AS app_password, s.client, s.created_at, s.last_used_at
        FROM sessions AS s LEFT JOIN app_passwords AS p ON p.id = s.app_password_id
        WHERE s.user_id = ? AND s.expires_at > ? ORDER BY s.last_used_at DESC, s.id""",
        [user_id, instant(now)],
        name="list sessions",
    )


def end_of(user_id: str, session_id: str) -> Statement:
    """End one session of a user; where that is none of the user's, it changes no row."""
    return Statement(
        "DELETE FROM sessions WHERE user_id = ? AND id = ?",
        [user_id, session_id],
        name="end a user's session",
    )


def end_others(user_id: str, session_id: str) -> Statement:
    """End every session of a user but this one."""
    return Statement(
        "DELETE FROM sessions WHERE user_id = ? AND id <> ?", [user_id, session_id], name="end other sessions"
    )


def end_all(user_id: str) -> Statement:
    """End every session of a user."""
    return Statement("DELETE FROM sessions WHERE user_id = ?", [user_id], name="end all sessions of a user")


def _times(now: datetime) -> Sequence[str]:
    return instant(now), instant(now + LIFETIME), instant(now)


def _cut(client: str) -> str:
    """A user agent as far as it is kept, without what the store would refuse."""
    return client.replace("\0", "").encode(errors="replace").decode()[:_CLIENT_CHARACTERS]
