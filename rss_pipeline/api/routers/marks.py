"""The marks of a user: what was seen of a feed, a folder or all read, and that undone; items read, unread,
starred."""

from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.feed_json import EXAMPLE, Feed, feed_json
from rss_pipeline.api.item_json import EXAMPLE as ITEM
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import Folder, Line, Seen
from rss_pipeline.api.routers.answered import CHANGES, NOT_CHANGED, json_of, no_feed, no_item
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader import mark
from rss_pipeline.reader.item_queries import Scope, Shown

router = api_router("marks")

MOST_IDS = 1_000
_UNDOABLE: dict[str, Any] = {
    "id": "0660b3a1f2c4d85a1b2c3d4e5f607182",
    "items": 131,
    "until": "2026-11-22T10:30:00Z",
}


class SeenFeed(BaseModel):
    """The part of a feed that the client has shown."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"up_to": EXAMPLE["version"]}})

    up_to: Seen = Field(
        description="The `version` of the feed that the client saw, or the `cursor` of an item: this item and"
        " all before it are read. What came later stays unread."
    )


class SeenItems(BaseModel):
    """The part of all feeds, or of a folder, that the client has shown."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"up_to": EXAMPLE["version"], "folder": None}}
    )

    up_to: Seen = Field(
        description="The greatest `version` of the feeds that the client saw, or the `cursor` of an item:"
        " this item and all before it are read. What came later stays unread."
    )
    folder: Folder | None = Field(default=None, description="Only feeds in this folder; null for all.")


class UndoableMark(BaseModel):
    """A mark of many items that can be undone."""

    id: str
    items: int = Field(description="The items that would be unread again.")
    until: str = Field(description="The end of the time in which it can be undone, in UTC.")

    model_config = {"json_schema_extra": {"example": _UNDOABLE}}


class MarkedFeed(Feed):
    """The feed afterwards, and the mark."""

    undo: UndoableMark | None = Field(
        description="The mark, for `POST /api/mark-read/{id}/undo`; null where nothing was unread."
    )

    model_config = ConfigDict(json_schema_extra={"example": {**EXAMPLE, "undo": _UNDOABLE}})


class MarkedRead(BaseModel):
    """The mark of a folder or of all feeds."""

    undo: UndoableMark | None = Field(
        description="The mark, for `POST /api/mark-read/{id}/undo`; null where nothing was unread."
    )

    model_config = {"json_schema_extra": {"example": {"undo": _UNDOABLE}}}


class UndoableMarks(BaseModel):
    """The marks that can be undone, the last one first."""

    marks: list[UndoableMark]

    model_config = {"json_schema_extra": {"example": {"marks": [_UNDOABLE]}}}


class Undone(BaseModel):
    """The number of items that are unread again."""

    items: int

    model_config = {"json_schema_extra": {"example": {"items": 131}}}


class Marks(BaseModel):
    """Marks to set; what is left out, or null, stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"ids": [ITEM["id"]], "is_read": True, "is_starred": None}},
    )

    ids: list[Annotated[Line, Field(max_length=64)]] = Field(min_length=1, max_length=MOST_IDS)
    is_read: Annotated[bool, Field(strict=True)] | None = None
    is_starred: Annotated[bool, Field(strict=True)] | None = None


class Marked(BaseModel):
    """The number of items that have the marks now."""

    marked: int
    unknown: list[str] = Field(description="The ids that no item of the user's feeds has.")

    model_config = {"json_schema_extra": {"example": {"marked": 1, "unknown": []}}}


@router.post(
    "/feeds/{id}/mark-read", operation_id="mark_feed_read", response_model=MarkedFeed, responses=CHANGES
)
async def mark_feed(caller: SignedIn, id: str, seen: SeenFeed) -> Response:
    """Mark a feed read up to what the client has seen; answers the feed. The same again changes nothing."""
    shown = Shown(scope=Scope(feed_id=id), up_to=seen.up_to)
    found = await caller.change(lambda one: mark.mark_shown(one, shown))
    if found.feed is None:
        raise no_feed()
    return json_of({**feed_json(found.feed), "undo": _undo(found.undoable)})


@router.post("/mark-read", operation_id="mark_read", response_model=MarkedRead, responses=CHANGES)
async def mark_all(caller: SignedIn, seen: SeenItems) -> Response:
    """Mark the feeds of a folder, or all, read up to what the client has seen. The same again changes
    nothing."""
    shown = Shown(scope=Scope(folder=seen.folder), up_to=seen.up_to)
    found = await caller.change(lambda one: mark.mark_shown(one, shown))
    return json_of({"undo": _undo(found.undoable)})


@router.get(
    "/mark-read",
    operation_id="list_undoable_marks",
    response_model=UndoableMarks,
    responses=NOT_CHANGED | documented("not_signed_in", "foreign_origin"),
)
async def undoable(request: Request, caller: SignedIn) -> Response:
    """The marks of feeds, folders and all, from the page and from apps too, that can be undone: those of the
    last hour."""
    found = await caller.ask(mark.undoable(caller.user_id, now=caller.clock()))
    return json_answer(request, {"marks": [_undo(each) for each in found]})


@router.post("/mark-read/{id}/undo", operation_id="undo_mark", response_model=Undone, responses=CHANGES)
async def undo(caller: SignedIn, id: str) -> Response:
    """Make the items unread again that a mark made read. What was read before it stays read, and so does what
    was marked or opened since."""
    items = await caller.change(lambda one: mark.undo_mark(one, id))
    if not items:
        raise ApiError(
            "not_found",
            "There is no such mark that can be undone.",
            what_to_do="GET /api/mark-read lists those of the last hour that were not undone yet.",
        )
    return json_of({"items": items})


@router.post("/items/mark", operation_id="mark_items", response_model=Marked, responses=CHANGES)
async def mark_items(caller: SignedIn, marks: Marks) -> Response:
    """Mark items read, unread, with a star or without. Other ids are left out; 404 if no id is known."""
    ids = list(dict.fromkeys(marks.ids))
    wanted = mark.ItemMarks(is_read=marks.is_read, is_starred=marks.is_starred)
    known = await caller.change(lambda one: mark.mark_items(one, ids, wanted))
    if not known:
        raise no_item()
    return json_of({"marked": len(known), "unknown": [id for id in ids if id not in known]})


def _undo(found: mark.Undoable | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"id": found.id, "items": found.items, "until": instant(found.until)}
