"""The page of lists of feeds: OPML in from another reader, and out to one."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.features.opml.service import UPLOAD, ListedFeed, OpmlRefused, import_list
from rss_pipeline.reader.refresh import queue

router = APIRouter(prefix="/settings", include_in_schema=False)

PATH = "/settings/opml"
_FIELD_BYTES = 10_000
"""Bytes of a field of the form."""
_FORM = "multipart/form-data"
_MOST_MISTAKES, _MOST_PAGES = 100, 200


@router.get("/opml")
async def show(
    request: Request, caller: SignedIn, added: int = -1, known: int = 0, merged: int = 0
) -> Response:
    """Both forms, and what became of the list that was just imported."""
    done = None if added < 0 else {"added": added, "known": known, "merged": merged}
    return await _page(request, caller, done=done)


@router.post("/opml")
async def take_in(request: Request, caller: SignedIn) -> Response:
    """Subscribe to all feeds of a list, or none."""
    body = await _file(request)
    if not body:
        return await _page(request, caller, error="Choose a file first: nothing was sent, or it is empty.")
    settings = caller.stores.settings
    try:
        done = await caller.change(lambda own: import_list(own, body, settings=settings))
    except OpmlRefused as refused:
        return await _page(request, caller, refused=refused)
    if done.pages:
        # A list of pages is too long for an address. To send the form again changes nothing.
        counts = {"added": done.added, "known": done.known, "merged": done.merged}
        return await _page(request, caller, done=counts, pages=done.pages)
    return see_other(f"{PATH}?added={done.added}&known={done.known}&merged={done.merged}")


async def _file(request: Request) -> bytes:
    """The file of the form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise ApiError("unsupported_media_type", "The body is not the form of this page.")
    try:
        async with request.form(max_files=1, max_fields=4, max_part_size=_FIELD_BYTES) as fields:
            found = fields.get("file")
            return await found.read() if isinstance(found, UploadFile) else b""
    except HTTPException as error:
        raise ApiError("malformed_request", "The form cannot be read.") from error


async def _page(
    request: Request,
    caller: AsyncCaller,
    *,
    done: dict[str, int] | None = None,
    refused: OpmlRefused | None = None,
    error: str | None = None,
    pages: Sequence[ListedFeed] = (),
) -> Response:
    frame, queued = await read_frame(caller, queue(caller.user_id, now=caller.clock()))
    mistakes = () if refused is None else refused.mistakes
    return page(
        request,
        "opml/opml.html",
        frame=frame,
        title="Lists of feeds (OPML)",
        status=200 if error is None and refused is None else 422,
        done=done,
        queue=queued,
        error=error,
        mistakes=[(each.line, each.sentence) for each in mistakes[:_MOST_MISTAKES]],
        mistake_count=len(mistakes),
        pages=pages[:_MOST_PAGES],
        page_count=len(pages),
        most_bytes=UPLOAD.file_bytes,
        most_outlines=UPLOAD.outlines,
    )
