"""Backups of documents as served: their keys and the metadata a replay needs.

The bytes are an ObjectStore's business (objects.py).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models import Document, Feed, instant
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore

METADATA_NAME = "rss-pipeline"
"""One value of JSON: names of S3 metadata are folded to lower case on the way, a value is not."""

_SECONDS_TRIED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup's key and what was known when it was taken."""

    key: str
    content_type: str | None
    status: int
    etag: str | None
    last_modified: str | None
    requested_url: str
    url: str
    fetched_at: datetime
    hint: str | None
    """The codec that parsing was offered as a hint."""
    content_hash: str


def put_backup(store: ObjectStore, feed: Feed, document: Document) -> str:
    """Store a document as served; returns its key, `backups/{feed_id}/{instant}.xml`.

    Where that second is taken the next one serves. Bytes are those of the spool file: after
    content-decoding, before charset decoding.

    Raises:
        StorageRejected: what travels with it does not fit into object metadata.
        ObjectStoreUnavailable: the store is not there.
    """
    response = document.response
    known: dict[str, Any] = {
        "content_type": response.content_type,
        "status": response.status,
        "etag": response.etag,
        "last_modified": response.last_modified,
        "requested_url": response.requested_url,
        "url": response.url,
        "fetched_at": instant(response.fetched_at),
        "hint": feed.charset,
        "content_hash": document.content_hash,
    }
    metadata = {METADATA_NAME: json.dumps(known, separators=(",", ":"))}
    for seconds in range(_SECONDS_TRIED):
        key = backup_key(feed.id, response.fetched_at + timedelta(seconds=seconds))
        if store.put(
            key, document.path, content_type="application/xml", metadata=metadata, only_if_absent=True
        ):
            return key
    raise StorageRejected(f"{feed.id}: {_SECONDS_TRIED} backups in as many seconds; is a clock standing?")


def backup_key(feed_id: str, fetched_at: datetime) -> str:
    """The key of a document fetched at that second."""
    return f"backups/{feed_id}/{instant(fetched_at)}.xml"


def describe_backup(info: ObjectInfo) -> Backup:
    """What travels with a backup, read back. `info` as `head` or `get` gives it."""
    known = json.loads(info.metadata[METADATA_NAME])
    return Backup(key=info.key, **{**known, "fetched_at": datetime.fromisoformat(known["fetched_at"])})


def list_backups(store: ObjectStore, feed_id: str) -> Iterator[ObjectInfo]:
    """A feed's backups, oldest first."""
    return store.list(f"backups/{feed_id}/")


def newest_same_backup(store: ObjectStore, feed_id: str, content_hash: str) -> Backup | None:
    """The feed's newest backup where it is of the same bytes, else None: asked after a crash only."""
    newest = max((info.key for info in list_backups(store, feed_id)), default=None)
    info = None if newest is None else store.head(newest)
    if info is None or METADATA_NAME not in info.metadata:
        return None
    known = describe_backup(info)
    return known if known.content_hash == content_hash else None
