"""The keys of archived images and what travels with them.

Which image a task is for is image_tasks.py's; bytes are an ObjectStore's business.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.objects import IMAGES, PRIVATE_IMAGES, ObjectInfo, ObjectStore

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
