"""Users and sessions for tests, put into the database without a password's long hash."""

import secrets

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.reader.accounts.callers import Caller, SessionKey
from rss_pipeline.storage.accounts import sessions
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Database


def add_user(database: Database, name: str, *, clock: Clock) -> str:
    """The id of a new user, with a password that no hash matches."""
    id = secrets.token_hex(16)
    assert users.insert(database, id=id, name=name, password_hash="none", now=clock())
    return id


def begin(database: Database, user_id: str, *, clock: Clock) -> SessionKey:
    """A session of kind `login`."""
    id = secrets.token_hex(32)
    [row] = database.query("SELECT password_hash FROM users WHERE id = ?", [user_id]).rows
    hashed = row["password_hash"]
    [begun] = database.batch(
        [sessions.begin_by_password(id, user_id, password_hash=hashed, client="a test", now=clock())]
    )
    assert begun.changes == 1
    return SessionKey(id, user_id, "login")


def signed_in(database: Database, name: str, *, clock: Clock) -> Caller:
    """A new user with a session."""
    user_id = add_user(database, name, clock=clock)
    return Caller(begin(database, user_id, clock=clock), database, clock)
