"""App passwords: one for each app that speaks the Google Reader API, so that a lost phone is not the account.

Their form is made for typing on a phone. Logging in with one is login.py's.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.errors import AppPasswordRefused
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.accounts import app_passwords
from rss_pipeline.storage.accounts.app_passwords import AppPassword
from rss_pipeline.storage.database import Database, Result, Statement

_SECRET_BYTES = 20
_NAME_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class NewAppPassword:
    """An app password with its secret, which is shown this once."""

    id: str
    name: str
    secret: str


def create(caller: Caller, name: str) -> NewAppPassword:
    """Add an app password of this name ("Ada's phone").

    Raises:
        AppPasswordRefused: the name is empty, too long or taken, or there are too many.
        NoSession: the session has ended.
    """
    new = _new(name)
    return _added(new, caller.write(*_insert(new, caller.user_id, now=caller.clock())))


def create_for(database: Database, user_id: str, name: str, *, now: datetime) -> NewAppPassword:
    """Add an app password for a user, as the operator of this machine.

    Raises:
        AppPasswordRefused: as from `create`.
    """
    new = _new(name)
    return _added(new, database.batch(_insert(new, user_id, now=now)))


def listed(user_id: str) -> Query[Sequence[AppPassword]]:
    """The app passwords of a user, by name."""
    return Query.of(
        app_passwords.listed(user_id),
        lambda found: [app_passwords.app_password(row) for row in found.rows],
    )


def revoke(caller: Caller, id: str) -> bool:
    """Remove one of the caller's app passwords, and end its sessions; False where there is none of this id.

    Raises NoSession where the session has ended.
    """
    return caller.write(*app_passwords.revoke(id, caller.user_id))[-1].changes > 0


def secret_hash(text: str) -> str:
    """The hash of an app password as somebody typed it: case, blanks and hyphens do not count."""
    plain = re.sub(r"[\s-]", "", text).lower()
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()


def _new(name: str) -> NewAppPassword:
    name = " ".join(name.split())
    if not (name.isprintable() and 0 < len(name) <= _NAME_CHARACTERS):
        raise AppPasswordRefused(f"the name of an app password has 1 to {_NAME_CHARACTERS} characters")
    return NewAppPassword(secrets.token_hex(8), name, _new_secret())


def _insert(new: NewAppPassword, user_id: str, *, now: datetime) -> list[Statement]:
    return [
        app_passwords.listed(user_id),
        app_passwords.insert(
            id=new.id, user_id=user_id, name=new.name, secret_hash=secret_hash(new.secret), now=now
        ),
    ]


def _added(new: NewAppPassword, results: Sequence[Result]) -> NewAppPassword:
    before, added = results
    if added.changes:
        return new
    if any(row["name"] == new.name for row in before.rows):
        raise AppPasswordRefused(
            f"there is an app password {new.name} already; revoke it, or choose another name"
        )
    raise AppPasswordRefused(f"there are {app_passwords.MOST} app passwords; revoke one that is not used")


def _new_secret() -> str:
    """160 random bits in eight groups of four characters, none of them 0, 1, 8 or 9."""
    plain = base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode().lower()
    return "-".join(plain[at : at + 4] for at in range(0, len(plain), 4))
