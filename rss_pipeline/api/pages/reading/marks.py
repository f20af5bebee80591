"""Forms that mark items: read, unread, with a star or without, and all that a list has shown.

Scripts mark by the JSON API. An answer leads back to the page that sent the form.
"""

from collections.abc import Mapping
from typing import Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.addresses import local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.render import see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.storage.subscriptions import states
from rss_pipeline.storage.subscriptions.chosen import Chosen, Scope
from rss_pipeline.storage.subscriptions.item_lists import known_ids

router = APIRouter(include_in_schema=False)

Mark = Literal["read", "unread", "star", "unstar"]

_HIGHEST = 2**53


@router.post("/items/{id}/{mark}")
async def mark_item(request: Request, caller: SignedIn, id: str, mark: Mark) -> Response:
    """Mark one item, and go back to where it is in the list."""
    fields = await form_fields(request)
    user_id, chosen = caller.user_id, Chosen.by_ids([id])
    match mark:
        case "read" | "unread":
            statements = states.mark_items(user_id, chosen, is_read=mark == "read")
        case "star":
            statements = states.star_items(user_id, chosen, at=caller.clock())
        case "unstar":
            statements = states.unstar_items(user_id, chosen)
    *_, found = await caller.write(*statements, known_ids(user_id, [id]))
    if not found.rows:
        raise ApiError("not_found", "Your feeds have no such item.")
    back = local(fields.get("back"))
    is_list = not back.startswith("/items/") and "#" not in back
    return see_other(f"{back}#i-{id}" if is_list else back)


@router.post("/mark-read")
async def mark_list(request: Request, caller: SignedIn) -> Response:
    """Mark a feed, a folder or all feeds read up to what the page has shown: what came since stays unread."""
    fields = await form_fields(request)
    scope = Scope(feed_id=fields.get("feed") or None, folder=fields.get("folder") or None)
    await caller.write(*states.mark_read_up_to(caller.user_id, scope, _seen(fields)))
    return see_other(local(fields.get("back")))


def _seen(fields: Mapping[str, str]) -> int:
    text = fields.get("up_to", "")
    if not (text.isascii() and text.isdigit()) or len(text) > 16 or int(text) >= _HIGHEST:
        raise ApiError("invalid_request", "The form does not say up to which item it was shown.")
    return int(text)
