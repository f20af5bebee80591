"""The places of archived images: those of private feeds where nobody reads them, others where everybody may.

Which keys and which bucket that is, is told below and in backends/s3/objects.py. A new image is put into
the right place; here are those that were stored before their feed became private, or before there was a
public bucket.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.errors import DatabaseFull, ObjectStoreUnavailable, StorageRejected
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.feeds.predicates import PRIVATE
from rss_pipeline.storage.objects import (
    IMAGES,
    PRIVATE_IMAGES,
    ObjectInfo,
    ObjectStore,
    PublicBucket,
    public_url,
)
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.stale import mark_stale

_AT_ONCE = 200
_THREADS = 8
_MOST_COUNTED = 1_000


@dataclass(slots=True)
class Moved:
    """Objects that were moved, or are to be."""

    private: int = 0
    """Images of private feeds, away from the public place."""
    public: int = 0
    """Images and topics, into the public bucket."""


def to_move(database: Database, objects: ObjectStore) -> Moved:
    """The objects in the wrong place; each number stops at 1,000."""
    private = (info for feed_id in _private_feeds(database, objects) for info in _images(objects, feed_id))
    return Moved(
        private=sum(1 for _ in islice(private, _MOST_COUNTED)),
        public=sum(1 for _ in islice(_unmoved(database, objects), _MOST_COUNTED)),
    )


def move(
    database: Database, objects: ObjectStore, *, on_moved: Callable[[int], None] = lambda _: None
) -> Moved:
    """Move every object into its place. After an interruption the next call continues."""
    moved = Moved()
    # First: what is private must not come into the public bucket.
    moved.private = move_private(database, objects, on_moved=on_moved)
    if not isinstance(objects, PublicBucket):
        return moved
    with ThreadPoolExecutor(_THREADS, "move") as pool:
        for some in batched(_unmoved(database, objects), _AT_ONCE):
            public = sum(pool.map(objects.move_to_public, some))
            moved.public += public
            on_moved(public)
    return moved


def move_private(
    database: Database,
    objects: ObjectStore,
    *,
    on_moved: Callable[[int], None] = lambda _: None,
    feeds: Collection[str] | None = None,
    most: int | None = None,
) -> int:
    """Move images of private feeds, or of some of them, away from the place that everybody may read; how
    many. It ends once `most` are moved."""
    number = 0
    with ThreadPoolExecutor(_THREADS, "move") as pool:
        for feed_id in _private_feeds(database, objects):
            if feeds is not None and feed_id not in feeds:
                continue
            for some in batched(_images(objects, feed_id), _AT_ONCE):
                if most is not None and number >= most:
                    return number
                keys = [info.key for info in some]
                try:
                    list(pool.map(lambda key: objects.copy(key, _private(key)), keys))
                    _record(database, feed_id, keys)
                except (DatabaseFull, ObjectStoreUnavailable):
                    # Of an item that is removed before they are made again, copies would be left.
                    with suppress(ObjectStoreUnavailable):
                        objects.delete_many(_unnamed(database, feed_id, map(_private, keys)))
                    raise
                objects.delete_many(keys)
                number += len(keys)
                on_moved(len(keys))
    return number


def _private(key: str) -> str:
    return PRIVATE_IMAGES + key.removeprefix(IMAGES)


def _private_feeds(database: Database, objects: ObjectStore) -> list[str]:
    if public_url(objects, f"{IMAGES}x") is None:
        return []
    rows = database.query(f"SELECT id FROM feeds WHERE {PRIVATE} ORDER BY id", name="list private feeds").rows
    return [row["id"] for row in rows]


def _images(objects: ObjectStore, feed_id: str) -> Iterable[ObjectInfo]:
    return objects.list(f"{IMAGES}{feed_id}/")


def _unmoved(database: Database, objects: ObjectStore) -> Iterable[ObjectInfo]:
    """The objects that belong into the public bucket. Images of unknown feeds stay: they may be private."""
    if not isinstance(objects, PublicBucket):
        return
    rows = database.query(f"SELECT id FROM feeds WHERE NOT ({PRIVATE})", name="list public feeds").rows
    public = {row["id"] for row in rows}
    for info in objects.list_unmoved():
        if not info.key.startswith(IMAGES) or info.key.split("/", 2)[1] in public:
            yield info


def _unnamed(database: Database, feed_id: str, keys: Iterable[str]) -> list[str]:
    """The keys that no row has. An earlier move may have been killed after it had written its rows."""
    found = database.query(
        """SELECT r2_key FROM image_tasks WHERE item_id IN (SELECT id FROM items WHERE feed_id = ?)
        AND r2_key IS NOT NULL""",
        [feed_id],
        name="read keys of images",
    )
    named = {row["r2_key"] for row in found.rows}
    return [key for key in keys if key not in named]


def _record(database: Database, feed_id: str, keys: list[str]) -> None:
    database.batch(
        [
            *mark_stale(compact([feed_id])),
            Statement(
                f"""UPDATE image_tasks SET r2_key = '{PRIVATE_IMAGES}' || substr(r2_key, {len(IMAGES) + 1})
                WHERE item_id IN (SELECT id FROM items WHERE feed_id = ?)
                AND r2_key IN (SELECT value FROM json_each(?))""",
                [feed_id, compact(keys)],
                name="record moved images",
            ),
        ]
    )


# The keys of archived images and what travels with them.
#
# Which image a task is for is image_tasks.py's; bytes are an ObjectStore's business.

TASK_METADATA = "task-id"
PIXELS_METADATA = "pixels"
"""Width and height, so that an image which is adopted later has them in its row without being read."""
_PIXELS = re.compile("([1-9][0-9]{0,5})x([1-9][0-9]{0,5})")
_DIGITS = (8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePlace:
    """The parts of an image's key: `images/{feed_id}/{item_guid_hash}/{position}.{extension}`; or, of a
    private feed where other images are public, with `private-images/`."""

    task_id: str
    feed_id: str
    guid: str
    position: int
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class StoredImage:
    key: str
    size: int
    """Bytes."""
    pixels: ImageSize | None = None


def put_image(
    store: ObjectStore,
    place: ImagePlace,
    body: bytes | Path,
    *,
    size: int,
    content_type: str,
    extension: str,
    pixels: ImageSize | None = None,
) -> StoredImage:
    """Store an image; where it is already, it stays as it is.

    The hash is of 8 hex digits of the guid's MD5. Another item of the feed may have the same ones: more
    digits are taken then, so that no image is overwritten by another item's.

    Raises:
        StorageRejected: the store refuses it.
        ObjectStoreUnavailable: the store is not there.
    """
    metadata = {TASK_METADATA: place.task_id}
    if pixels is not None:
        metadata[PIXELS_METADATA] = f"{pixels.width}x{pixels.height}"
    prefix = PRIVATE_IMAGES if place.is_private else IMAGES
    for digits in _DIGITS:
        key = f"{prefix}{_folder(place, digits)}/{place.position}.{extension}"
        if store.put(key, body, content_type=content_type, metadata=metadata, only_if_absent=True):
            return StoredImage(key, size, pixels)
        there = store.head(key)
        if there is not None and there.metadata.get(TASK_METADATA) == place.task_id:
            return StoredImage(key, there.size, stored_pixels(there.metadata))
    raise StorageRejected(
        f"{place.feed_id}: image {place.position} of this item already belongs to another URL"
    )


def stored_image(store: ObjectStore, place: ImagePlace) -> StoredImage | None:
    """This task's image where the store has it already, whatever its extension."""
    return next(stored_images(store, place), None)


def stored_images(store: ObjectStore, place: ImagePlace) -> Iterator[StoredImage]:
    """All of this task's images: two, where a page gave another kind of image after a crash."""
    for info in _candidates(store, place):
        known = store.head(info.key)
        if known is not None and known.metadata.get(TASK_METADATA) == place.task_id:
            yield StoredImage(known.key, known.size, stored_pixels(known.metadata))


def stored_pixels(metadata: Mapping[str, str]) -> ImageSize | None:
    """The size in an image's metadata; None for one that was stored without."""
    found = _PIXELS.fullmatch(metadata.get(PIXELS_METADATA, ""))
    return ImageSize(int(found[1]), int(found[2])) if found else None


def _candidates(store: ObjectStore, place: ImagePlace) -> Iterator[ObjectInfo]:
    for prefix in (PRIVATE_IMAGES, IMAGES) if place.is_private else (IMAGES,):
        for info in store.list(prefix + _folder(place, _DIGITS[0])):
            if info.key.rpartition("/")[2].partition(".")[0] == str(place.position):
                yield info


def _folder(place: ImagePlace, digits: int) -> str:
    digest = hashlib.md5(place.guid.encode(), usedforsecurity=False).hexdigest()
    return f"{place.feed_id}/{digest[:digits]}"
