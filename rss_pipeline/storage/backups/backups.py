"""Backups of documents as served: their keys and the metadata a replay needs.

The bytes are an ObjectStore's business (objects.py).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast, get_args

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import FOREVER_DAYS, Feed, ItemKey
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.errors import BackupUnreadable, StorageRejected
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.objects import MAX_METADATA_BYTES, ObjectInfo, ObjectStore

_CONTENT_TYPE = "application/xml"
METADATA_NAME = "rss-pipeline"
"""One value of JSON: names of S3 metadata are folded to lower case on the way, a value is not."""

Places = tuple[tuple[int, int], ...]
"""Offset and length in bytes."""

_SECONDS_TRIED = 60
_MOST_BYTES = MAX_METADATA_BYTES - len(METADATA_NAME) - len(_CONTENT_TYPE)


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
    item_key: ItemKey | None = None
    """The key that identified the feed's items then; None in backups that do not say it."""
    are_links_shared: bool = False
    """The items without guid that share a link were all stored; False in backups of earlier versions, which
    stored the first of them under the link."""
    are_abouts_shared: bool = False
    """The same of items whose rdf:about is their link."""
    secrets: Places = ()
    """Places in the document where it repeats the feed's password or a header of feeds.yaml."""
    keep_days: int | None = None
    """Age at which the feed's items were retired then; None is the setting's, or not known."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The keys of features by which the document is read, as they were then."""
    memories: Mapping[str, str] = field(default_factory=dict)
    """The memories of these features of the documents before."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Their memories after this document, where there were none before."""
    is_keep_known: bool = False
    """False in backups that do not say how long the feed's items are kept."""


def put_backup(store: ObjectStore, feed: Feed, document: Document, *, secrets: Places = ()) -> str:
    """Store a document as served; returns its key, `backups/{feed_id}/{instant}.xml`.

    Where that second is taken the next one serves. Bytes are those of the spool file: after
    content-decoding, before charset decoding. `secrets` are the places where it repeats a secret: with them a
    replay removes it from the items, whatever feeds.yaml says by then.

    Raises:
        StorageRejected: the feed has a backup of each of the next 60 seconds.
        ObjectStoreUnavailable: the store is not there.
    """
    metadata = _metadata(feed, document, secrets)
    for seconds in range(_SECONDS_TRIED):
        key = backup_key(feed.id, document.response.fetched_at + timedelta(seconds=seconds))
        if store.put(key, document.path, content_type=_CONTENT_TYPE, metadata=metadata, only_if_absent=True):
            return key
    raise StorageRejected(
        f"{feed.id}: no free backup name for {_SECONDS_TRIED} seconds: has the clock stopped?"
    )


def put_again(store: ObjectStore, feed: Feed, document: Document, *, secrets: Places = ()) -> None:
    """Store a document under the key that it has, with what is known of the feed now."""
    assert document.backup_key is not None
    metadata = _metadata(feed, document, secrets)
    store.put(document.backup_key, document.path, content_type=_CONTENT_TYPE, metadata=metadata)


def _metadata(feed: Feed, document: Document, secrets: Places) -> dict[str, str]:
    response = document.response
    known: dict[str, Any] = {
        "content_type": response.content_type,
        "status": response.status,
        "etag": response.etag,
        "last_modified": response.last_modified,
        "requested_url": response.requested_url,
        "url": response.url,
        "fetched_at": instant(response.fetched_at),
        "hint": feed.http.charset,
        "content_hash": document.content_hash,
        "key": feed.key,
        "shared_links": True,
        "shared_abouts": True,
        "keep": feed.keep_days,
    }
    if secrets:
        known["secrets"] = secrets
    if keys := {name: text for name, text in feed.feature_keys.items() if FEED_KEYS[name].reads is not None}:
        known["keys"] = keys
        known["memories"] = {name: text for name, text in feed.memories.items() if name in keys}
    if feed.later_memories:
        known["after"] = dict(feed.later_memories)
    return {METADATA_NAME: _fitting(known)}


_DISPENSABLE = ("etag", "last_modified", "url", "content_type")
"""The fields that are left out of metadata that do not fit, in this order. A restore without validators
requests one document more; without `url`, links are resolved against `requested_url`. The rest is of
our own making, and short."""


def _fitting(known: Mapping[str, Any]) -> str:
    """The metadata as JSON, without what does not fit."""
    left = dict(known)
    for name in _DISPENSABLE:
        if len(text := _as_json(left)) <= _MOST_BYTES:
            return text
        left[name] = None
    return _as_json(left)


def _as_json(known: Mapping[str, Any]) -> str:
    return json.dumps(known, separators=(",", ":"))


def backup_key(feed_id: str, fetched_at: datetime) -> str:
    """The key of a document fetched at that second."""
    return f"backups/{feed_id}/{instant(fetched_at)}.xml"


def describe_backup(info: ObjectInfo) -> Backup:
    """The metadata of a backup, read back. `info` is as `head` or `get` gives it.

    Raises:
        BackupUnreadable: it does not carry what a replay needs; the text says what is missing.
    """
    text = info.metadata.get(METADATA_NAME)
    if text is None:
        raise BackupUnreadable(
            f"{info.key} has no metadata `{METADATA_NAME}`: no backup of ours, or copied without its metadata"
        )
    try:
        known = json.loads(text)
        return Backup(
            key=info.key,
            content_type=_text(known, "content_type", optional=True),
            status=int(known["status"]),
            etag=_text(known, "etag", optional=True),
            last_modified=_text(known, "last_modified", optional=True),
            requested_url=_text(known, "requested_url") or "",
            url=_text(known, "url", optional=True) or _text(known, "requested_url") or "",
            fetched_at=_instant(known["fetched_at"]),
            hint=_text(known, "hint", optional=True),
            content_hash=_text(known, "content_hash") or "",
            item_key=cast("ItemKey", known["key"]) if known.get("key") in get_args(ItemKey) else None,
            are_links_shared=known.get("shared_links") is True,
            are_abouts_shared=known.get("shared_abouts") is True,
            secrets=tuple((int(start), int(length)) for start, length in known.get("secrets", ())),
            keys=_texts(known, "keys"),
            memories=_texts(known, "memories"),
            after=_texts(known, "after"),
            keep_days=_keep_days(known),
            is_keep_known=_is_keep_known(known),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BackupUnreadable(
            f"{info.key}: its metadata cannot be read ({type(error).__name__}: {error})"
        ) from error


def _text(known: dict[str, Any], name: str, *, optional: bool = False) -> str | None:
    value = known.get(name) if optional else known[name]
    if not (isinstance(value, str) or (optional and value is None)):
        raise TypeError(f"`{name}` is {value!r}")
    return value


def _texts(known: dict[str, Any], name: str) -> dict[str, str]:
    """The texts by key of features; those of a feature that is gone are left out."""
    return {key: str(text) for key, text in known.get(name, {}).items() if key in FEED_KEYS}


def _is_keep_known(known: dict[str, Any]) -> bool:
    days = known.get("keep", "unknown")
    return days is None or (type(days) is int and 0 < days <= FOREVER_DAYS)


def _keep_days(known: dict[str, Any]) -> int | None:
    return cast("int | None", known.get("keep")) if _is_keep_known(known) else None


def _instant(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError(f"`fetched_at` {text} has no zone")
    return value


def list_backups(store: ObjectStore, feed_id: str) -> Iterator[ObjectInfo]:
    """A feed's backups, oldest first."""
    return store.list(f"backups/{feed_id}/")


def newest_same_backup(store: ObjectStore, feed_id: str, content_hash: str) -> Backup | None:
    """The feed's newest backup if it has the same bytes, else None. Needed after a crash only."""
    newest = max((info.key for info in list_backups(store, feed_id)), default=None)
    info = None if newest is None else store.head(newest)
    if info is None:
        return None
    try:
        known = describe_backup(info)
    except BackupUnreadable:
        return None
    return known if known.content_hash == content_hash else None
