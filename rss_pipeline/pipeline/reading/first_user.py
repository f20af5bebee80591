"""The first user, who adds themselves: while there is none, no one could let them in.

From where a request for it may come is decided in api/; other users are added by pipeline/accounts.
"""

import secrets

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import StorageRejected
from rss_pipeline.pipeline.accounts.passwords import hash_password
from rss_pipeline.pipeline.accounts.users import check_new_name
from rss_pipeline.pipeline.reading.listed_feeds import read_list, wanted_listed
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.subscriptions.subscriptions import joinable_listed, subscribe


def has_users(database: Database) -> bool:
    """True if there is a user."""
    [found] = database.batch([users.is_there_one()])
    return bool(found.rows[0]["is_there"])


def add_first_user(
    database: Database,
    *,
    name: str,
    password: str,
    with_listed: bool,
    clock: Clock,
    settings: Settings | None = None,
) -> str | None:
    """Add a user while there is none; with `with_listed` also the user's subscriptions of all feeds of
    feeds.yaml, in the same transaction. With `settings`, the file is read where it was not read before: a
    person may be faster than the first run.

    Return the name as it is stored; None where there is a user, even one that was added just now.

    Raises:
        UserRefused: the name can be none.
        PasswordRefused: the password can be none.
        HashingBusy: too many passwords are being checked.
    """
    stored = check_new_name(name)
    if has_users(database):
        # No hash is spent on it.
        return None
    id, hashed, now = secrets.token_hex(16), hash_password(password), clock()
    statements: list[Statement] = [users.insert_first(id=id, name=stored, password_hash=hashed, now=now)]
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
