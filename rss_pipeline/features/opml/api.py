"""Lists of feeds from and to other readers, as OPML."""

from collections.abc import Sequence
from datetime import datetime

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.google_reader.call import Call, FeatureCall, signed_in
from rss_pipeline.api.google_reader.responses import PRIVATE, not_understood, ok
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import ADDRESS_PATTERN
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.opml.service import (
    UPLOAD,
    OpmlRefused,
    export_subscriptions,
    import_list,
    subscribed,
)
from rss_pipeline.reader.feed_queries import FeedName, feed_names, folders
from rss_pipeline.reader.query import Query, together

router = api_router("feeds")

MEDIA_TYPE = "text/x-opml"
_MOST_MISTAKES = 100
_FEEDS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["xmlUrl"],
        "properties": {
            "xmlUrl": {
                "type": "string",
                "pattern": ADDRESS_PATTERN,
                "xml": {"attribute": True},
            }
        },
    },
}
_OPML = {
    "type": "object",
    "xml": {"name": "opml"},
    "required": ["body"],
    "properties": {"body": {"type": "object", "required": ["outline"], "properties": {"outline": _FEEDS}}},
}
"""The most that a schema can say of a list: that it has a feed."""


class ListedPage(BaseModel):
    """A web page without a feed in the list."""

    url: str
    title: str | None
    folder: str | None


class Imported(BaseModel):
    """The feeds of a list: what became of them."""

    added: int = Field(description="New subscriptions; the next polls visit the feeds that are new.")
    known: int = Field(description="Subscribed already; they keep their titles and folders.")
    merged: int = Field(description="Further outlines of a feed that the list has more than once.")
    waiting: int = Field(
        default=0,
        description="New addresses of this user that wait: at most 60 an hour are requested for a user.",
    )
    waits_until: str | None = Field(default=None, description="When the last of them is requested.")
    pages: list[ListedPage] = Field(
        default=[],
        description="Web pages without a feed, which were not added: `POST /api/feeds` looks at one, its task"
        " shows what would be collected, and the same with `page: true` takes it.",
    )


@router.post(
    "/import/opml",
    operation_id="import_opml",
    response_model=Imported,
    responses=documented("not_signed_in", "foreign_origin", "body_too_large", "invalid_request"),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "OPML 1.0 or 2.0: at most 1 MB, 10,000 outlines, ten levels, no document type."
            " Attributes and folders are OPML's; every feed has an `xmlUrl`, every page"
            " without a feed an `htmlUrl`. Any other type, such as"
            f" {MEDIA_TYPE}, is read as XML, too; of a form, its file.",
            "content": {kind: {"schema": _OPML} for kind in ("text/xml", "application/xml")},
        }
    },
)
async def import_opml(request: Request, caller: SignedIn) -> Imported:
    """Subscribe to all feeds of a list, or none: `errors` has every mistake with its line."""
    body = await _list_in(request)
    settings = caller.stores.settings
    try:
        done = await caller.change(lambda own: import_list(own, body, settings=settings))
    except OpmlRefused as refused:
        raise _problem(refused) from None
    return Imported(
        added=done.added,
        known=done.known,
        merged=done.merged,
        waiting=done.queue.waiting,
        waits_until=None if done.queue.until is None else instant(done.queue.until),
        pages=[ListedPage(url=each.url, title=each.title, folder=each.folder) for each in done.pages],
    )


@router.get(
    "/export/opml",
    operation_id="export_opml",
    response_class=Response,
    responses={
        200: {"description": "OPML 2.0.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}},
        **documented("not_signed_in", "foreign_origin"),
    },
)
async def export(caller: SignedIn) -> Response:
    """The user's subscriptions as OPML, with titles and folders."""
    found = await caller.ask_long(_subscriptions(caller.user_id))
    return await _exported(*found, now=caller.clock())


def _subscriptions(user_id: str) -> Query[tuple[Sequence[FeedName], Sequence[str]]]:
    return together(feed_names(user_id), folders(user_id))


async def _exported(feeds: Sequence[FeedName], names: Sequence[str], *, now: datetime) -> Response:
    body = await run_in_threadpool(export_subscriptions, subscribed(feeds), names, now=now)
    headers = {"Content-Disposition": 'attachment; filename="subscriptions.opml"'}
    return Response(body, media_type=MEDIA_TYPE, headers=headers)


async def _list_in(request: Request) -> bytes:
    """The list: the body, or the file of a form, as `curl -F file=@feeds.opml` sends it."""
    if not request.headers.get("content-type", "").lower().lstrip().startswith("multipart/"):
        return await request.body()
    try:
        async with request.form(max_files=1, max_fields=4, max_part_size=UPLOAD.file_bytes) as fields:
            parts = [part for _, part in fields.multi_items()]
            for part in sorted(parts, key=lambda each: isinstance(each, str)):
                return part.encode() if isinstance(part, str) else await part.read()
    except HTTPException as error:
        raise ApiError("malformed_request", "The form cannot be read.") from error
    raise ApiError("malformed_request", "The form has no file.")


def _problem(refused: OpmlRefused) -> ApiError:
    found = [
        {"where": f"line {each.line}" if each.line else "file", "message": each.sentence}
        for each in refused.mistakes[:_MOST_MISTAKES]
    ]
    count = len(refused.mistakes)
    more = f"; the first {_MOST_MISTAKES} are listed" if count > _MOST_MISTAKES else ""
    return ApiError(
        "invalid_request",
        f"The list has {count} mistake{'s' if count > 1 else ''}{more}. Nothing was imported.",
        what_to_do="Correct the lines that `errors` names, then send the list again.",
        members={"errors": found},
    )


# The calls of the Google Reader API.

_MOST_LINES = 20


async def _export_call(call: Call) -> Response:
    """GET subscription/export: the subscriptions as OPML."""
    session = signed_in(call)
    found = await session.ask_long(_subscriptions(session.user_id))
    answer = await _exported(*found, now=call.service.clock())
    answer.headers.update(PRIVATE)
    return answer


async def _import_call(call: Call) -> Response:
    """POST subscription/import: OPML as the body, of any content type (NetNewsWire, RSS Guard), or as a file
    in a form. All of it is imported, or nothing."""
    session = signed_in(call)
    settings = call.service.stores.settings
    body = _list_of_call(call)
    try:
        await session.change(lambda caller: import_list(caller, body, settings=settings))
    except OpmlRefused as refused:
        lines = str(refused).splitlines()
        more = [] if len(lines) <= _MOST_LINES else [f"... and {len(lines) - _MOST_LINES} more"]
        raise not_understood("\n".join(lines[:_MOST_LINES] + more)) from None
    return ok()


def _list_of_call(call: Call) -> bytes:
    kind = call.request.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/"):
        return call.body
    texts = [text for name in call.form.names for text in call.form.all(name) if "<" in text]
    if not texts:
        raise not_understood("The form has no file with a list of feeds.")
    return texts[0].encode()


EXPORT_CALL = FeatureCall(by_method={"GET": _export_call})
IMPORT_CALL = FeatureCall(
    by_method={"POST": _import_call},
    # A form around it has a head of its own.
    body_bytes=UPLOAD.file_bytes + 10_000,
    takes_any_body=True,
)
