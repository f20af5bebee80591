"""Lists of items: unread, all, starred, of a feed, of a folder."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.addresses import HOME
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.storage.subscriptions.item_lists import Filter, Page, items_of, list_items

router = APIRouter(include_in_schema=False)


@router.get("/")
async def home() -> Response:
    """The first page."""
    return see_other(HOME)


@router.get("/unread")
async def unread(request: Request, caller: SignedIn, after: int | None = None) -> Response:
    """Unread items of all feeds."""
    wanted = Page(limit=50, after=after)
    frame, [found] = await read_frame(caller, list_items(caller.user_id, Filter(is_read=False), wanted))
    items = items_of(found, wanted)
    return page(request, "list.html", frame=frame, title="Unread", items=items)
