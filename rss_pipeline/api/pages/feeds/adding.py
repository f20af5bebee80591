"""The page to add a feed, by its address or by that of a web page. What follows is shown by tasks.py."""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.pages.addresses import edit_url, task_url
from rss_pipeline.api.pages.feeds.feed_edit import INTERVALS, FormMistake, read_wishes
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS
from rss_pipeline.reader.addresses import AddressRefused
from rss_pipeline.reader.refresh import Held, Queued, TooMany, VisitRunning
from rss_pipeline.reader.subscribe import Known, TooManyFeeds, subscribe_address

router = APIRouter(include_in_schema=False)


@router.get("/feeds/add")
async def form(
    request: Request,
    caller: SignedIn,
    url: str = "",
    folder: str = "",
    title: str = "",
    interval: str = "",
) -> Response:
    """The form; what is given is filled in, for bookmarks and for another attempt."""
    return await _form(request, caller, {"url": url, "folder": folder, "title": title, "interval": interval})


@router.post("/feeds/add")
async def add(request: Request, caller: SignedIn) -> Response:
    """Subscribe. A feed with items is shown, any other leads to the page of its task."""
    fields = await form_fields(request)
    address = fields.get("url", "").strip()
    wishes = read_wishes(fields)
    if not address:
        wishes = FormMistake("Type the address of a feed, or of a web page that has one.")
    if isinstance(wishes, FormMistake):
        return await _form(request, caller, fields, error=wishes.message, status=422)
    settings, chosen = caller.stores.settings, wishes
    answer = await caller.change(lambda one: subscribe_address(one, settings, address, wishes=chosen))
    match answer:
        case Known(feed_id=feed_id, first=None):
            return see_other(f"{edit_url(feed_id)}?subscribed=yes")
        case Known(feed_id=feed_id, first=Held(until=until, reason=reason)):
            frame, _ = await read_frame(caller)
            title = "The feed is subscribed; its first visit waits"
            return page(
                request, "held.html", frame=frame, title=title, feed_id=feed_id, until=until, reason=reason
            )
        case (
            Known(first=Queued(task_id=id) | VisitRunning(task_id=id))
            | Queued(task_id=id)
            | VisitRunning(task_id=id)
        ):
            return see_other(task_url(id))
        case AddressRefused(message=message):
            advice = "Type the public address of a feed or of its page, without a password."
            return await _form(request, caller, fields, error=f"{message} {advice}", status=422)
        case TooMany(retry_after=seconds):
            error = f"You have added many new addresses. Add the next one in {-(-seconds // 60)} minutes."
            refused = await _form(request, caller, fields, error=error, status=429)
            refused.headers["Retry-After"] = str(seconds)
            return refused
        case TooManyFeeds(most=most):
            error = (
                f"You subscribe to {most:,} feeds, and more are not possible."
                " Unsubscribe from one that you no longer read."
            )
            return await _form(request, caller, fields, error=error, status=409)
    raise AssertionError(answer)


async def _form(
    request: Request,
    caller: AsyncCaller,
    given: Mapping[str, str],
    *,
    error: str | None = None,
    status: int = 200,
) -> Response:
    frame, _ = await read_frame(caller)
    shown = {
        name: given.get(name, "")[:MAX_URL_CHARACTERS] for name in ("url", "folder", "title", "interval")
    }
    return page(
        request,
        "add.html",
        frame=frame,
        title="Add a feed",
        status=status,
        given=shown,
        intervals=INTERVALS,
        error=error,
    )
