"""The first user, who adds themselves: while there is none, no one could let them in.

Who has to know the code is decided in api/; other users are added by reader/accounts.
"""

import secrets
from datetime import datetime

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.environment import CONTACT_WANTED, is_contact
from rss_pipeline.errors import CodeRefused, ContactRefused, StorageRejected
from rss_pipeline.reader.accounts.passwords import hash_password
from rss_pipeline.reader.accounts.users import check_new_name
from rss_pipeline.reader.subscribe import read_list, wanted_listed
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts import user_rows as first_user_code
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.installation import put_contact
from rss_pipeline.storage.subscriptions.subscriptions import joinable_listed, subscribe

_CODE_SIGNS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
"""Without those that look like others."""
_CODE_PART = 4


def has_users(database: Database) -> bool:
    """True if there is a user."""
    [found] = database.batch([users.is_there_one()])
    return bool(found.rows[0]["is_there"])


def code_of_first_user(database: Database) -> str | None:
    """The code that the page for the first user asks for; the same one until there is a user, then None."""
    _, found, users_there = database.batch(
        [first_user_code.put(_new_code()), first_user_code.read(), users.is_there_one()]
    )
    return None if users_there.rows[0]["is_there"] else str(found.rows[0]["code"])


def check_code(database: Database, given: str, *, now: datetime) -> None:
    """Check a code that somebody has typed, in capitals or not, with its hyphen or without.

    Raises:
        CodeRefused: it is wrong, or too many were wrong in the last hour: then the right one is, too.
    """
    if not _plain(given):
        raise CodeRefused("type the code")
    _, counted, found = database.batch(
        [first_user_code.put(_new_code()), first_user_code.count(now=now), first_user_code.read()]
    )
    if not found.rows:
        return  # There is a user by now, so that no other is added.
    again_at = first_user_code.tries_again_at(found)
    if counted.changes == 0 and again_at is not None:
        raise CodeRefused(
            f"{first_user_code.TRIES} codes were wrong in an hour; try again later, or add the user by the"
            " command",
            retry_after=max(1, int((again_at - now).total_seconds())),
        )
    if not secrets.compare_digest(_plain(given), _plain(found.rows[0]["code"])):
        raise CodeRefused("this is not the code")
    database.batch([first_user_code.take_back()])


def add_first_user(
    database: Database,
    *,
    name: str,
    password: str,
    with_listed: bool,
    clock: Clock,
    settings: Settings | None = None,
    contact: str = "",
) -> str | None:
    """Add a user while there is none; with `with_listed` also the user's subscriptions of all feeds of
    feeds.yaml, in the same transaction. With `settings`, the file is read where it was not read before: a
    person may be faster than the first run. A `contact` is sent to publishers from the next run on.

    Return the name as it is stored; None where there is a user, even one that was added just now.

    Raises:
        UserRefused: the name can be none.
        PasswordRefused: the password can be none.
        ContactRefused: the contact can be none.
        HashingBusy: too many passwords are being checked.
    """
    stored = check_new_name(name)
    if not is_contact(contact):
        raise ContactRefused(f"this contact cannot be sent to publishers: {CONTACT_WANTED}")
    if has_users(database):
        # No hash is spent on it.
        return None
    id, hashed, now = secrets.token_hex(16), hash_password(password, name=stored), clock()
    statements: list[Statement] = [
        users.insert_first(id=id, name=stored, password_hash=hashed, now=now),
        first_user_code.forget(),
        *([put_contact(contact)] if contact else []),
    ]
    if with_listed:
        [listed] = database.batch([joinable_listed()])
        if settings is not None and not listed.rows:
            read_list(database, settings, now=now)
            [listed] = database.batch([joinable_listed()])
        if wanted := wanted_listed(listed):
            statements += subscribe(id, wanted, at=now)
    try:
        added, *_ = database.batch(statements)
    except StorageRejected:
        # Subscriptions refer to their user: of one that was not added, the store refuses the whole batch.
        if has_users(database):
            return None
        raise
    return stored if added.changes else None


def _new_code() -> str:
    parts = ("".join(secrets.choice(_CODE_SIGNS) for _ in range(_CODE_PART)) for _ in range(2))
    return "-".join(parts)


def _plain(code: str) -> bytes:
    return "".join(code.upper().replace("-", "").split()).encode()
