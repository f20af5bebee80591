"""Full text of a feed as a page: the switch of its user, the decision with its figures, and what waits; and
the button of an item whose article is not there."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.addresses import item_url, local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.routers.answered import no_feed, no_item
from rss_pipeline.features.full_text.about import about_feed, can_read, hide_article, request_article
from rss_pipeline.reader.edit import edit_feed
from rss_pipeline.reader.query import together
from rss_pipeline.reader.refresh import NotSubscribed, queue

router = APIRouter(include_in_schema=False)


@router.get("/feeds/{id}/full-text")
async def show(request: Request, caller: SignedIn, id: str) -> Response:
    """The state, and the switch."""
    now = caller.clock()
    asked = together(about_feed(id, now=now, user_id=caller.user_id), queue(caller.user_id, now=now))
    frame, (about, waiting) = await read_frame(caller, asked)
    feed = next((each for each in frame.feeds if each.feed_id == id), None)
    if about is None or feed is None:
        raise no_feed()
    return page(
        request,
        "full_text/full_text.html",
        frame=frame,
        title="Full text",
        feed=feed,
        about=about,
        can_read=await run_in_threadpool(can_read),
        queue=waiting,
    )


@router.post("/feeds/{id}/full-text")
async def switch(request: Request, caller: SignedIn, id: str) -> Response:
    """Switch it on or off, for this user."""
    is_on, settings = (await form_fields(request)).get("on") == "yes", caller.stores.settings
    answer = await caller.change(lambda own: edit_feed(own, settings, id, full_text=is_on))
    if isinstance(answer, NotSubscribed):
        raise no_feed()
    return see_other(f"/feeds/{id}/full-text")


@router.post("/full-text/{id}")
async def request_now(request: Request, caller: SignedIn, id: str) -> Response:
    """Show the article of an item to this user, or the feed's own text again."""
    fields, settings = await form_fields(request), caller.stores.settings
    if fields.get("show") == "feed":
        is_known = await caller.change(lambda own: hide_article(own, id))
    else:
        is_known = await caller.change(lambda own: request_article(own, settings, id))
    if not is_known:
        raise no_item()
    return see_other(local(fields.get("back"), item_url(id)))
