"""The table `app_passwords`: passwords of single apps, by their hash.

Their sessions end with them; sessions.py begins those.
"""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Row, Statement

MOST = 50
"""App passwords of one user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPassword:
    """An app password without its secret, which is shown once and stored nowhere."""

    id: str
    name: str
    created_at: datetime
    last_used_at: datetime | None


def insert(*, id: str, user_id: str, name: str, secret_hash: str, now: datetime) -> Statement:
    """Add an app password. It changes no row where the name is taken, or the user has `MOST` of them."""
    return Statement(
        """INSERT INTO app_passwords (id, user_id, name, secret_hash, created_at)
        SELECT ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM app_passwords WHERE user_id = ?) < ?
        ON CONFLICT (user_id, name) DO NOTHING""",
        [id, user_id, name, secret_hash, instant(now), user_id, MOST],
        name="add an app password",
    )


def listed(user_id: str) -> Statement:
    """A user's app passwords by name, for `app_password`."""
    return Statement(
        "SELECT id, name, created_at, last_used_at FROM app_passwords WHERE user_id = ? ORDER BY name",
        [user_id],
        name="list app passwords",
    )


def use(*, user_name: str, secret_hash: str, now: datetime) -> Statement:
    """Write the last use of the app password that this user has under this hash."""
    return Statement(
        """UPDATE app_passwords SET last_used_at = ?
        WHERE user_id = (SELECT id FROM users WHERE name = ?) AND secret_hash = ?""",
        [instant(now), user_name, secret_hash],
        name="write last use of an app password",
    )


def revoke(id: str, user_id: str) -> tuple[Statement, Statement]:
    """The end of an app password's sessions, then of itself; if there was one, that changes a row."""
    return (
        Statement(
            "DELETE FROM sessions WHERE user_id = ? AND app_password_id = ?",
            [user_id, id],
            name="end sessions of an app password",
        ),
        Statement(
            "DELETE FROM app_passwords WHERE id = ? AND user_id = ?",
            [id, user_id],
            name="revoke an app password",
        ),
    )


def revoke_all(user_id: str) -> Statement:
    """Remove every app password of a user; their sessions go with them."""
    return Statement(
        "DELETE FROM app_passwords WHERE user_id = ?", [user_id], name="revoke all app passwords"
    )


def app_password(row: Row) -> AppPassword:
    """A row of `listed`."""
    created_at = from_instant(row["created_at"])
    assert created_at is not None
    return AppPassword(
        id=row["id"],
        name=row["name"],
        created_at=created_at,
        last_used_at=from_instant(row["last_used_at"]),
    )
