"""The backups of a feed as its operator looks at them: listed newest first, and read as they were served.

Documents may repeat a password of feeds.yaml: who may see them is decided by the caller.
"""

import re
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.errors import BackupUnreadable, StorageRejected
from rss_pipeline.storage.backups.backups import Backup, describe_backup, list_backups
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore, check_key

_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\.xml")
_AT_ONCE = 8
"""Requests for metadata, each a round trip to R2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDocument:
    """A backup in a list. `name` is the last part of its key; `size` is in bytes."""

    name: str
    taken_at: datetime
    size: int
    about: Backup | None
    """None where its metadata cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDocuments:
    """A part of a feed's backups, newest first. `next_name` leads to the next part; None at the end."""

    documents: Sequence[KeptDocument]
    next_name: str | None


def kept_documents(
    store: ObjectStore, feed_id: str, *, before: str | None = None, limit: int
) -> KeptDocuments:
    """The newest backups, or those before the one of this name.

    Raises:
        ObjectStoreUnavailable: the store cannot work now.
    """
    found: deque[ObjectInfo] = deque(maxlen=limit + 1)
    for info in list_backups(store, feed_id):
        name = _name(info.key)
        if before is not None and name >= before:
            break
        if _NAME.fullmatch(name):
            found.append(info)
    newest = list(reversed(found))
    shown = newest[:limit]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        described = list(threads.map(lambda info: _described(store, info), shown))
    return KeptDocuments(
        documents=[each for each in described if each is not None],
        next_name=_name(shown[-1].key) if len(newest) > limit else None,
    )


def _described(store: ObjectStore, info: ObjectInfo) -> KeptDocument | None:
    """None where it was removed meanwhile."""
    head = store.head(info.key)
    if head is None:
        return None
    name = _name(info.key)
    taken_at = datetime.fromisoformat(name.removesuffix(".xml"))
    try:
        about = describe_backup(head)
    except BackupUnreadable:
        about = None
    return KeptDocument(name=name, taken_at=taken_at, size=head.size, about=about)


def kept_document(store: ObjectStore, feed_id: str, name: str) -> bytes | None:
    """The document of a backup as it was served; None if there is no such backup.

    Raises:
        ObjectStoreUnavailable: the store cannot work now.
    """
    if not _NAME.fullmatch(name):
        return None
    key = f"backups/{feed_id}/{name}"
    try:
        check_key(key)
        found = store.get(key)
    except StorageRejected:
        return None
    return None if found is None else found[0]


def _name(key: str) -> str:
    return key.rpartition("/")[2]
