"""The backups of a feed, for the owner of the installation: a list, and each document as it was served."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page
from rss_pipeline.api.problems import ApiError
from rss_pipeline.reader.accounts.users import is_owner
from rss_pipeline.reader.feeds import has_feed
from rss_pipeline.reader.kept_documents import kept_document, kept_documents
from rss_pipeline.reader.query import together

router = APIRouter(include_in_schema=False)

_ON_A_PAGE = 25


@router.get("/feeds/{id}/backups")
async def backups(request: Request, caller: SignedIn, id: str, before: str | None = None) -> Response:
    """Backups, newest first."""
    frame, owns = await read_frame(caller, is_owner(caller.user_id))
    feed = next((each for each in frame.feeds if each.feed_id == id), None)
    if feed is None or not owns:
        raise _not_there()
    objects = caller.stores.objects
    found = await run_in_threadpool(kept_documents, objects, id, before=before, limit=_ON_A_PAGE)
    return page(request, "backups.html", frame=frame, title="Backups", feed=feed, found=found, before=before)


@router.get("/feeds/{id}/backups/{name}")
async def document(caller: SignedIn, id: str, name: str) -> Response:
    """A document as it was served, to be saved: a browser never shows it as a page of ours."""
    owns = await caller.ask(together(is_owner(caller.user_id), has_feed(caller.user_id, id)))
    if not all(owns):
        raise _not_there()
    body = await run_in_threadpool(kept_document, caller.stores.objects, id, name)
    if body is None:
        raise ApiError(
            "not_found",
            "This feed has no such backup.",
            what_to_do="Old backups are removed by the daily clean.",
        )
    headers = {
        "Content-Disposition": f'attachment; filename="{id}-{name.replace(":", "")}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, no-store",
    }
    return Response(body, headers=headers, media_type="application/octet-stream")


def _not_there() -> ApiError:
    return ApiError(
        "not_found",
        "This page is only there for the owner of the reader, and for feeds that the owner reads.",
        what_to_do="The owner is the user who was added first.",
    )
