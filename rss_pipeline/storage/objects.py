"""The object store as the rest of the project sees it: a protocol, its values and its limits.

No keys of ours are here (see backups/backups.py and images/places.py), nor an implementation (backends/).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from rss_pipeline.errors import StorageRejected

MAX_KEY_BYTES = 1024
MAX_METADATA_BYTES = 4096
"""All names and values together; R2 takes 8 KB, half of it is ours."""

IMAGES = "images/"
PUBLIC = (IMAGES, "topics/")
"""Prefixes of the keys that everybody may read where the store has an address for everybody."""
PRIVATE_IMAGES = "private-images/"
"""The prefix of images of private feeds, where others are public."""

_METADATA_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")
"""S3 folds names to lower case."""
_UNSENDABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
"""S3 lists and deletes by XML, which has no place for most of these; routers trip over the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    """An object without its body. `modified` is UTC; `size` is in bytes."""

    key: str
    size: int
    modified: datetime
    content_type: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


class ObjectStore(Protocol):
    """Bodies under keys, with ASCII metadata, as S3 has them. Safe to call from several threads.

    Raises:
        StorageRejected: this key, metadata or body is refused.
        ObjectStoreUnavailable: the store cannot work now; no part of an object is visible.
    """

    def put(
        self,
        key: str,
        body: bytes | Path,
        *,
        content_type: str,
        metadata: Mapping[str, str] | None = None,
        cache_control: str | None = None,
        only_if_absent: bool = False,
    ) -> bool:
        """Store a body (bytes, or a file's). False, and nothing done, where the key was to be absent.

        `cache_control` is the header with which the store serves the object, where it serves any.
        """
        ...

    def get(self, key: str) -> tuple[bytes, ObjectInfo] | None:
        """The body and its `ObjectInfo`, or None."""
        ...

    def head(self, key: str) -> ObjectInfo | None: ...

    def copy(self, source: str, target: str) -> None:
        """Copy body, content type and metadata; onto itself it makes the object new again.

        Raises:
            KeyError: there is no such source.
        """
        ...

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Every object with a key that begins with `prefix`, in key order, without type and metadata; only
        those with keys behind `after`."""
        ...

    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        """Delete; an absent key is no error. Returns the keys that could not be deleted, with the reason."""
        ...

    def url(self, key: str) -> str | None:
        """A URL at which a browser finds the object; None where nothing serves it. It is one for everybody
        only where the key begins with one of `PUBLIC`."""
        ...

    def probe(self) -> None:
        """Write and delete a small object; raises as above. Runs before any request to a publisher."""
        ...


@runtime_checkable
class PublicBucket(Protocol):
    """A store with a bucket of its own for what everybody may read (`PUBLIC`)."""

    def list_unmoved(self) -> Iterator[ObjectInfo]:
        """The public objects that were stored before there was a public bucket, and are not in it."""
        ...

    def move_to_public(self, info: ObjectInfo) -> bool:
        """Move one of them; False where it is gone."""
        ...


@runtime_checkable
class OnOneDisk(Protocol):
    """A store on a disk of this machine."""

    puts_at_once: int
    """The puts that may wait for the disk together: more take more time of the processors, and no less by
    the clock."""


@runtime_checkable
class Sweeps(Protocol):
    """A store in which killed processes leave what they had half written."""

    def sweep(self, *, before: datetime, dry_run: bool = False) -> int:
        """Delete what they left before then; how many files that is."""
        ...


def check_object(key: str, content_type: str, metadata: Mapping[str, str]) -> None:
    """Refuse what S3 or R2 would refuse, or what would climb out of a folder."""
    check_key(key)
    if not content_type:
        raise StorageRejected(f"{key}: an object has a content type")
    for name in metadata:
        if not _METADATA_NAME.fullmatch(name):
            raise StorageRejected(f"{key}: a metadata name is of a-z, 0-9 and -, not {name[:80]!r}")
    size = sum(map(len, metadata))
    for text in (content_type, *metadata.values()):
        if not text.isascii() or not text.isprintable():
            raise StorageRejected(f"{key}: object metadata is printable ASCII only, not {text[:80]!r}")
        if text != text.strip():
            raise StorageRejected(f"{key}: object metadata loses the blanks around {text[:80]!r}")
        size += len(text)
    if size > MAX_METADATA_BYTES:
        raise StorageRejected(f"{key}: {size:,} bytes of metadata; at most {MAX_METADATA_BYTES:,} fit")


def check_key(key: str) -> None:
    """A key is 1 to 1,024 bytes of UTF-8 without control characters, in segments not empty, `.` or `..`."""
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise StorageRejected(f"object key {key!r}: a lone surrogate cannot be stored") from error
    if not 0 < size <= MAX_KEY_BYTES:
        raise StorageRejected(f"object key of {size:,} bytes; 1 to {MAX_KEY_BYTES:,} fit")
    if any(segment in {"", ".", ".."} for segment in key.split("/")) or _UNSENDABLE.search(key):
        raise StorageRejected(f"object key {key!r}: no empty segment, `.`, `..` or control character")


def disposition(content_type: str) -> str | None:
    """`attachment` for what a browser would run as a page of the bucket's own site (SVG, XML, HTML), opened
    by its address; an `<img>` shows an SVG all the same."""
    return None if content_type.startswith("image/") and "svg" not in content_type else "attachment"


def may_begin_a_key(prefix: str) -> bool:
    """Return True if a key can begin with `prefix`; a store need not be queried for others."""
    try:
        prefix.encode()
    except UnicodeEncodeError:
        return False
    return not _UNSENDABLE.search(prefix)


def public_url(store: ObjectStore, key: str) -> str | None:
    """The address of an object for everybody, where the store has any."""
    url = store.url(key)
    return url if url is not None and url.startswith(("http://", "https://")) else None
