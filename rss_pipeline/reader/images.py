"""The images of items as people are shown them: archived ones by key, and how many are not archived; a
request to load those now."""

from datetime import datetime

from rss_pipeline.errors import StorageRejected
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.images.image_tasks import MissingImages
from rss_pipeline.storage.objects import (
    IMAGES,
    PRIVATE_IMAGES,
    ObjectStore,
    check_key,
    disposition,
    public_url,
)
from rss_pipeline.storage.subscriptions.item_lists import known_ids
from rss_pipeline.storage.subscriptions.listing import look_for_feed

__all__ = [
    "MissingImages",
    "disposition",
    "image",
    "may_see",
    "missing_images",
    "public_images",
    "request_images",
]


def missing_images(user_id: str, item_id: str, *, now: datetime) -> Query[MissingImages]:
    """The images of an item of the user's feeds that are not archived."""
    return Query.of(tasks.missing_images(user_id, item_id, now=now), tasks.missing_of)


def request_images(caller: Caller, item_id: str) -> bool:
    """Request those of them that can be requested; False where the user's feeds have no such item."""
    now = caller.clock()
    *_, found = caller.write(
        tasks.request_images(caller.user_id, item_id, now=now), known_ids(caller.user_id, [item_id])
    )
    return bool(found.values)


def may_see(user_id: str, key: str) -> Query[bool]:
    """True for the key of an image, if the user subscribes to its feed."""
    folder, _, rest = key.partition("/")
    is_image = f"{folder}/" in (IMAGES, PRIVATE_IMAGES)
    return Query.of(
        look_for_feed(user_id, rest.partition("/")[0]), lambda found: is_image and bool(found.values)
    )


def image(objects: ObjectStore, key: str) -> tuple[bytes, str] | None:
    """The bytes of an archived image, and their media type; None where there is none of this key.

    Raises:
        ObjectStoreUnavailable: the store cannot work now.
    """
    try:
        check_key(key)
        found = objects.get(key)
        if found is None and key.startswith(IMAGES):
            # An app may know it from before its feed became a private one.
            found = objects.get(PRIVATE_IMAGES + key.removeprefix(IMAGES))
    except StorageRejected:
        return None
    if found is None:
        return None
    body, info = found
    content_type = info.content_type or ""
    # Whatever else was stored is bytes: nothing of a publisher is a page of this server.
    return body, content_type if content_type.startswith("image/") else "application/octet-stream"


def public_images(objects: ObjectStore) -> str | None:
    """The address below which all archived images are public; None for a store without one."""
    url = public_url(objects, f"{IMAGES}x")
    return None if url is None else url.removesuffix("x")
