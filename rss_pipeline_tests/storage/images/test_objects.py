"""Archived images: one key each, none overwritten by another item's, found again after a crash."""

import hashlib
from pathlib import Path

import pytest

from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline.storage.images.places import (
    ImagePlace,
    StoredImage,
    put_image,
    stored_image,
    stored_pixels,
)
from rss_pipeline.storage.objects import ObjectStore

HASH = hashlib.md5(b"guid", usedforsecurity=False).hexdigest()


def place(task: str = "t", *, position: int = 0, guid: str = "guid") -> ImagePlace:
    return ImagePlace(task_id=task, feed_id="feed", guid=guid, position=position)


def put(store: ObjectStore, where: ImagePlace, body: bytes = b"image", extension: str = "png") -> StoredImage:
    return put_image(
        store, where, body, size=len(body), content_type=f"image/{extension}", extension=extension
    )


def test_the_key_names_feed_item_and_index(objects: ObjectStore, tmp_path: Path) -> None:
    assert put(objects, place()) == StoredImage(f"images/feed/{HASH[:8]}/0.png", 5)
    large = tmp_path / "large"
    large.write_bytes(b"large")
    key = put_image(
        objects, place("u", position=1), large, size=5, content_type="image/webp", extension="webp"
    )
    assert key.key == f"images/feed/{HASH[:8]}/1.webp"
    found = objects.get(key.key)
    assert found is not None
    assert (found[0], found[1].content_type, found[1].metadata) == (b"large", "image/webp", {"task-id": "u"})


def test_an_image_put_twice_is_stored_once(objects: ObjectStore) -> None:
    first = put(objects, place())
    assert put(objects, place(), b"other bytes of the same URL") == first
    assert [info.key for info in objects.list("images/")] == [first.key]


def test_an_item_with_the_hash_of_another_takes_more_digits(objects: ObjectStore) -> None:
    keys = [put(objects, place(task), task.encode()).key for task in "tuv"]
    assert keys == [f"images/feed/{HASH[:n]}/0.png" for n in (8, 16, 32)]
    for task, key in zip("tuv", keys, strict=True):
        found = objects.get(key)
        assert found is not None
        assert found[0] == task.encode()
        assert stored_image(objects, place(task)) == StoredImage(key, 1)
    with pytest.raises(StorageRejected, match="belongs to another URL"):
        put(objects, place("w"))


def test_what_a_run_did_not_live_to_record_is_found_whatever_its_extension(objects: ObjectStore) -> None:
    put(objects, place("t", position=1), extension="jpg")
    put(objects, place("other", position=11))
    assert stored_image(objects, place("t", position=1)) == StoredImage(f"images/feed/{HASH[:8]}/1.jpg", 5)
    assert stored_image(objects, place("t", position=11)) is None
    assert stored_image(objects, place("t", position=2)) is None


def test_the_size_in_pixels_goes_with_the_image(objects: ObjectStore) -> None:
    size = ImageSize(640, 480)
    stored = put_image(
        objects, place(), b"image", size=5, content_type="image/png", extension="png", pixels=size
    )
    assert stored.pixels == size
    assert stored_image(objects, place()) == stored
    # Another download of the same URL: the image that is there counts, with its size.
    assert put(objects, place()) == stored


@pytest.mark.parametrize("text", ["", "0x5", "5", "5x-1", "1x1x1", "1000000x1", "a"])
def test_a_size_that_somebody_else_wrote_is_none(text: str) -> None:
    assert stored_pixels({"pixels": text}) is None


@pytest.mark.parametrize(
    ("content_type", "disposition"),
    [("image/png", None), ("image/svg+xml", "attachment"), ("application/xml", "attachment")],
)
def test_what_a_browser_would_run_is_served_for_download_only(
    r2: S3Store, content_type: str, disposition: str | None
) -> None:
    r2.put("images/x", b"x", content_type=content_type)
    head = r2.client.head_object(Bucket=r2._bucket, Key="images/x")
    assert head.get("ContentDisposition") == disposition
    # Also once a backup was written again, so that it does not expire.
    r2.copy("images/x", "images/x")
    head = r2.client.head_object(Bucket=r2._bucket, Key="images/x")
    assert head.get("ContentDisposition") == disposition
