"""Objects from one store into another, several at once, each read back.

Whether a copy may be made, and in which order, is stores.py's.
"""

import hashlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from rss_pipeline.errors import CopyRefused
from rss_pipeline.progress import Progress
from rss_pipeline.storage.copy.tables import Fingerprint
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline.storage.sql import compact

OBJECTS_AT_ONCE = 8

_NOT_COPIED = ("copies/", "probe/")
USED_MEANWHILE = "One of them was used meanwhile: stop the daemon and start the copy again."


def copied_keys(store: ObjectStore) -> Iterator[ObjectInfo]:
    """The objects of a store that a copy includes: all but its own marks."""
    return (info for info in store.list("") if not info.key.startswith(_NOT_COPIED))


def _beside(source: ObjectStore, target: ObjectStore) -> Iterator[tuple[ObjectInfo, ObjectInfo | None]]:
    """Every object of the source and what the target has under its key, both listings side by side."""
    theirs = copied_keys(target)
    other = next(theirs, None)
    for ours in copied_keys(source):
        while other is not None and other.key < ours.key:
            other = next(theirs, None)
        yield ours, other if other is not None and other.key == ours.key else None


@dataclass(frozen=True, slots=True)
class _Object:
    key: str
    size: int
    sha256: str
    written: bool


def copy_objects(
    source: ObjectStore, target: ObjectStore, progress: Progress
) -> tuple[Fingerprint, int, int]:
    """Make the target hold these objects, each read back; with how many were written, and all their bytes."""
    progress.begin("objects", sum(1 for _ in copied_keys(source)))
    digest, count, written, total = hashlib.sha256(), 0, 0, 0
    with ThreadPoolExecutor(OBJECTS_AT_ONCE, "copy") as pool:
        under_way: deque[Future[_Object | None]] = deque()

        def arrived() -> Iterator[_Object | None]:
            for ours, theirs in _beside(source, target):
                under_way.append(pool.submit(_copy_object, source, target, ours, theirs))
                if len(under_way) >= 2 * OBJECTS_AT_ONCE:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()

        try:
            for made in arrived():
                progress.advance("objects")
                if made is not None:
                    digest.update(compact([made.key, made.size, made.sha256]).encode() + b"\n")
                    count, written, total = count + 1, written + made.written, total + made.size
        finally:
            for future in under_way:
                future.cancel()
    return Fingerprint(count, digest.hexdigest()), written, total


def _copy_object(
    source: ObjectStore, target: ObjectStore, ours: ObjectInfo, theirs: ObjectInfo | None
) -> _Object | None:
    """Make one object the target's and read it back; None where it has gone from the source."""
    found = source.get(ours.key)
    if found is None:
        return None
    body, info = found
    info = replace(info, content_type=info.content_type or "application/octet-stream")
    made = _Object(ours.key, len(body), hashlib.sha256(body).hexdigest(), written=False)
    if theirs is not None and theirs.size == len(body) and _same(target, body, info):
        return made
    target.put(ours.key, body, content_type=str(info.content_type), metadata=info.metadata)
    if not _same(target, body, info):
        raise CopyRefused(f"{ours.key} differs after it was copied. {USED_MEANWHILE}")
    return replace(made, written=True)


def _same(store: ObjectStore, body: bytes, info: ObjectInfo) -> bool:
    there = store.get(info.key)
    return (
        there is not None
        and there[0] == body
        and there[1].content_type == info.content_type
        and dict(there[1].metadata) == dict(info.metadata)
    )


def sizes(store: ObjectStore) -> Fingerprint:
    """The fingerprint of its keys and sizes alone."""
    digest, count = hashlib.sha256(), 0
    for info in copied_keys(store):
        digest.update(compact([info.key, info.size]).encode() + b"\n")
        count += 1
    return Fingerprint(count, digest.hexdigest())
