"""Users: added, listed, given another password, removed, as operators do by the command line; what one is
shown of the own account."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import UserRefused
from rss_pipeline.reader.accounts.passwords import hash_password
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.accounts import app_passwords, login_failures, sessions
from rss_pipeline.storage.accounts import user_rows as first_user_code
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backups.user_states import delete_state
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.subscriptions.subscriptions import unsubscribe_all


def as_name(text: str) -> str:
    """A user's name as it is stored; nothing, which is no user's name, for what can be none."""
    name = text.strip().lower()
    # The Kelvin sign is k in lower case.
    return name if text.isascii() and users.NAME.fullmatch(name) else ""


def account_key(name: str) -> str:
    """The key under which failed logins of an account are counted (login.py); a new password clears it."""
    return f"account:{name}"


def add_user(database: Database, *, name: str, password: str, clock: Clock) -> str:
    """Add a user; its name as stored.

    Raises:
        UserRefused: the name can be none, or is taken.
        PasswordRefused: the password can be none.
    """
    stored = check_new_name(name)
    hashed = hash_password(password, name=stored)
    if not users.insert(database, id=secrets.token_hex(16), name=stored, password_hash=hashed, now=clock()):
        raise UserRefused(f"there is a user {stored} already; choose another name")
    return stored


def check_new_name(text: str) -> str:
    """A new user's name as it is stored; UserRefused for what can be none."""
    name = as_name(text)
    if not name:
        raise UserRefused(
            "this cannot be a user's name; write 1 to 64 of the letters a to z, digits and . _ @ -"
        )
    return name


def find_user(database: Database, name: str) -> str:
    """The id of a user; UserRefused where there is none of this name."""
    stored = as_name(name)
    found = users.find_id(database, stored) if stored else None
    if found is None:
        raise UserRefused(f"there is no user {name[:80]!r}; `rss-pipeline user list` shows all")
    return found


def change_password(database: Database, *, name: str, password: str, revoke_apps: bool) -> None:
    """Give a user another password, and end every session. Apps log in again by themselves with their own
    passwords, unless those are revoked too.

    Raises:
        UserRefused: there is no such user.
        PasswordRefused: the password can be none.
    """
    user_id = find_user(database, name)
    statements = [
        users.change_password(user_id, hash_password(password, name=as_name(name))),
        sessions.end_all(user_id),
        login_failures.forget([account_key(as_name(name))]),
    ]
    database.batch([*statements, *([app_passwords.revoke_all(user_id)] if revoke_apps else [])])


def remove_user(database: Database, objects: ObjectStore, *, name: str, clock: Clock) -> None:
    """Remove a user with all that is only the user's: sessions, app passwords, subscriptions, read states,
    and the backup of those.

    A feed that no one else subscribes to, and feeds.yaml does not list, is no longer visited.

    Raises:
        UserRefused: there is no such user.
        ObjectStoreUnavailable: the backup cannot be deleted; the user is there, or is gone but for it.
    """
    user_id = find_user(database, name)
    # First: killed in between, the user is there and can be removed again. A backup without a user would
    # come back with a restore.
    delete_state(objects, user_id)
    database.batch(
        [
            *unsubscribe_all(user_id, at=clock()),
            users.remove(user_id),
            login_failures.forget([account_key(as_name(name))]),
            # Where this was the last one, another code makes the next: the old one is in old logs.
            first_user_code.forget(),
        ]
    )
    # The daemon may have written another one meanwhile.
    delete_state(objects, user_id)


class OpenSession(NamedTuple):
    """A session that has not ended. Instants are text."""

    id: str
    kind: str
    app_password: str | None
    """The name of the app password by which it began."""
    client: str
    created_at: str
    last_used_at: str


def open_sessions(user_id: str, *, now: datetime) -> Query[Sequence[OpenSession]]:
    """The sessions of a user that have not ended, the last used first."""
    return Query.of(
        sessions.listed(user_id, now=now),
        lambda found: [OpenSession(*row) for row in found.columns(*OpenSession._fields)],
    )


def user_name(user_id: str) -> Query[str]:
    """The name of a user."""
    return Query.of(users.named(user_id), lambda found: str(found.values[0][0]))


def is_owner(user_id: str) -> Query[bool]:
    """True for the owner of the installation: of the users that are left, the one that was made first."""
    return Query.of(users.look_for_owner(user_id), lambda found: bool(found.values))
