"""Archived images of items, where the object store has no public address for them."""

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import unchanged, version_tag
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.routing import api_router
from rss_pipeline.reader.images import disposition, image, may_see

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
    if not await caller.ask(may_see(caller.user_id, key)):
        raise _no_image()
    tag = version_tag(caller.user_id, key)
    if (same := unchanged(request, tag)) is not None:
        same.headers["Cache-Control"] = _CACHE_CONTROL
        return same
    found = await run_in_threadpool(image, caller.stores.objects, key)
    if found is None:
        raise _no_image()
    body, content_type = found
    headers = {"ETag": tag, "Cache-Control": _CACHE_CONTROL}
    if (given := disposition(content_type)) is not None:
        headers["Content-Disposition"] = given
    return Response(body, headers=headers, media_type=content_type)


def _no_image() -> ApiError:
    return ApiError("not_found", "Your feeds have no image of this key.")
