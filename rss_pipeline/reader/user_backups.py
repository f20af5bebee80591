"""Backups of what users have: those of users with changes, and those that are missing or get old.

The form is storage.backups.user_states', the reading storage.subscriptions.kept_states'. The sensor
`back_up_users` and the daily clean call it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backups.user_states import delete_state, list_states, put_state, user_key
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.subscriptions.kept_states import read_state

RENEWED_AFTER = timedelta(days=7)
"""A restore compares with the times of documents, which get younger as their backups expire: the state of a
user who is away must not be older than those. RSS_BACKUP_DAYS is a week at least."""


@dataclass(slots=True)
class UserBackups:
    """The users that were backed up, or not."""

    written: int = 0
    left: int = 0
    """Not reached in time; the next call writes them."""
    refused: dict[str, str] = field(default_factory=dict)
    """Keys that were not written, with the reason."""


def back_up_users(
    database: Database,
    objects: ObjectStore,
    ids: Iterable[str],
    *,
    now: datetime,
    is_over: Callable[[], bool],
) -> UserBackups:
    """Back up these users, until `is_over`."""
    done = UserBackups()
    for id in ids:
        if is_over():
            done.left += 1
            continue
        try:
            done.written += back_up_user(database, objects, id, now=now)
        except StorageRejected as error:
            done.refused[user_key(id)] = str(error)
    return done


def back_up_all(
    database: Database, objects: ObjectStore, *, now: datetime, is_over: Callable[[], bool]
) -> UserBackups:
    """Back up each user with changes, and each one with a backup that is missing or older than RENEWED_AFTER.

    The backup of a user that is not in the database stays: it is what a restore needs.
    """
    changed = users.to_back_up(database)
    known = users.to_back_up(database, all_users=True)
    if not known:
        return UserBackups()
    young = {info.key for info in list_states(objects) if info.modified > now - RENEWED_AFTER}
    old = [id for id in known if user_key(id) not in young]
    return back_up_users(database, objects, dict.fromkeys(chain(changed, old)), now=now, is_over=is_over)


def back_up_user(database: Database, objects: ObjectStore, user_id: str, *, now: datetime) -> bool:
    """Store what a user has; False where the user is gone, or is being restored.

    Killed at any moment, it is done again by the next call.
    """
    found = read_state(database, user_id, now=now)
    if found is None:
        return False
    head, rest = found
    put_state(objects, user_id, chain([head], rest))
    if users.note_backup(database, user_id, version=head.version):
        return True
    # Removed meanwhile: no restore may bring the user back.
    delete_state(objects, user_id)
    return False
