"""Forms that mark items: read, unread, with a star or without, all that a list has shown; and undo of that.

Scripts mark by the JSON API. An answer leads back to the page that sent the form.
"""

import re
from collections.abc import Mapping
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.addresses import local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.reader import mark as marking
from rss_pipeline.reader.item_queries import Scope, Shown
from rss_pipeline.reader.mark import ItemMarks

router = APIRouter(include_in_schema=False)

Mark = Literal["read", "unread", "star", "unstar"]

_MARKS: Mapping[Mark, ItemMarks] = {
    "read": ItemMarks(is_read=True),
    "unread": ItemMarks(is_read=False),
    "star": ItemMarks(is_starred=True),
    "unstar": ItemMarks(is_starred=False),
}
_BESIDE: Mapping[str, str] = {"read": "with", "unread": "copied"}
"""The field with the items that are marked beside one: all that the list has shown with it, or what it is a
copy of."""
_HIGHEST = 2**53
_ID = re.compile(r"[0-9a-f]{32}")


@router.post("/items/{id}/{mark}")
async def mark_item(request: Request, caller: SignedIn, id: str, mark: Mark) -> Response:
    """Mark one item, and what is read or unread with it; and go back to its place in the list."""
    fields = await form_fields(request)
    ids = [id, *_ids(fields.get(_BESIDE.get(mark, ""), ""))]
    if not await caller.change(lambda one: marking.mark_items(one, ids, _MARKS[mark])):
        raise ApiError("not_found", "Your feeds have no such item.")
    back = local(fields.get("back"))
    is_list = not back.startswith("/items/") and "#" not in back
    return see_other(f"{back}#i-{id}" if is_list else back)


@router.post("/mark-read")
async def mark_list(request: Request, caller: SignedIn) -> Response:
    """Mark a feed, a folder or all feeds read up to what the page has shown: what came since stays unread."""
    fields = await form_fields(request)
    scope = Scope(feed_id=fields.get("feed") or None, folder=fields.get("folder") or None)
    shown = Shown(scope=scope, up_to=_seen(fields))
    await caller.change(lambda one: marking.mark_shown(one, shown))
    return see_other(local(fields.get("back")))


@router.post("/mark-read/undo")
async def undo(request: Request, caller: SignedIn) -> Response:
    """Take such a mark back."""
    fields = await form_fields(request)
    id = fields.get("id", "")
    undone, is_recent = await caller.change(
        lambda one: (marking.undo_mark(one, id), marking.is_of_last_hour(one, id))
    )
    if not undone and is_recent:
        # A second click was faster than the answer to the first.
        return page(
            request,
            "error.html",
            title="It is undone already",
            detail="What it marked and was not read since is unread again.",
            what_to_do="Go back to the list.",
            back=local(fields.get("back")),
        )
    if not undone:
        raise ApiError(
            "not_found",
            "There is nothing to undo.",
            what_to_do="It has been undone, all of it was read since, or it was too long ago.",
        )
    return see_other(local(fields.get("back")))


def _ids(text: str) -> list[str]:
    return [id for id in text.split(",") if _ID.fullmatch(id)]


def _seen(fields: Mapping[str, str]) -> int:
    text = fields.get("up_to", "")
    if not (text.isascii() and text.isdigit()) or len(text) > 16 or int(text) >= _HIGHEST:
        raise ApiError("invalid_request", "The form does not say up to which item it was shown.")
    return int(text)
