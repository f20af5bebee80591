"""Archived images of items, where the object store has no public address for them."""

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import unchanged, version_tag
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.routing import api_router
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.objects import IMAGES, PRIVATE_IMAGES, ObjectStore, check_key, disposition
from rss_pipeline.storage.subscriptions.listing import look_for_feed

router = api_router("items", "/images")

_CACHE_CONTROL = "private, max-age=31536000, immutable"
"""An image's key never gets other bytes. The answer varies by the login, so that who logs in next in the same
browser needs the permission again."""


@router.get(
    "/{key:path}",
    operation_id="read_image",
    response_class=Response,
    responses={
        200: {"description": "The image.", "content": {"image/*": {}}},
        304: {"description": "What the ETag in If-None-Match names is still so; no body."},
        **documented("not_signed_in", "foreign_origin", "not_found"),
    },
)
async def read(request: Request, caller: SignedIn, key: str) -> Response:
    """An archived image of an item of the user's feeds, by the address that `html` of the item has for it."""
    folder, _, rest = key.partition("/")
    [found] = await caller.read(look_for_feed(caller.user_id, rest.partition("/")[0]))
    if f"{folder}/" not in (IMAGES, PRIVATE_IMAGES) or not found.rows:
        raise _no_image()
    tag = version_tag(caller.user_id, key)
    if (same := unchanged(request, tag)) is not None:
        same.headers["Cache-Control"] = _CACHE_CONTROL
        return same
    image = await run_in_threadpool(_get, caller.stores.objects, key)
    if image is None:
        raise _no_image()
    body, content_type = image
    headers = {"ETag": tag, "Cache-Control": _CACHE_CONTROL}
    if (given := disposition(content_type)) is not None:
        headers["Content-Disposition"] = given
    return Response(body, headers=headers, media_type=content_type)


def _get(objects: ObjectStore, key: str) -> tuple[bytes, str] | None:
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


def _no_image() -> ApiError:
    return ApiError("not_found", "Your feeds have no image of this key.")
