"""Refresh now, for a feed, a folder or all; and what became of it, and of an address that was added."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.pages.addresses import edit_url, task_url, with_query
from rss_pipeline.api.pages.feeds.feed_edit import INTERVALS, FormMistake, read_wishes
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.routers.answered import begun
from rss_pipeline.collector.models.clock import milliseconds
from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS
from rss_pipeline.reader.query import together
from rss_pipeline.reader.refresh import (
    Held,
    Queued,
    TooMany,
    VisitRunning,
    queue,
    refresh_feed,
    refresh_feeds,
    task,
    tasks,
)
from rss_pipeline.reader.subscribe import AddressRefused, KnownFeed, TooManyFeeds, subscribe_address

router = APIRouter(include_in_schema=False)

Count = Annotated[int, Query(ge=0, le=10_000)]

_LATE = timedelta(minutes=1)
"""A visit that has not begun by then probably has no run that makes it."""
_MOST_SHOWN = 500
_RECENT = timedelta(hours=1)


@router.get("/tasks/{id}")
async def show_task(request: Request, caller: SignedIn, id: str) -> Response:
    """One task. The page comes again until the task is done."""
    now = request.app.state.clock()
    frame, (found, queued) = await read_frame(
        caller,
        together(task(caller.user_id, id, now=now), queue(caller.user_id, now=now)),
    )
    if found is None:
        raise ApiError(
            "not_found",
            "You have no such visit.",
            what_to_do="Visits that you requested are shown for a day.",
        )
    feed = next((each for each in frame.feeds if each.feed_id == found.feed_id), None)
    again = {"url": found.address or ""} | {
        name: str(value)
        for name, value in (
            ("title", found.wishes.title),
            ("folder", found.wishes.folder),
            ("interval", found.wishes.wished_interval),
            ("full_text", "yes" if found.wishes.full_text else None),
        )
        if value is not None
    }
    is_late = found.state == "queued" and now - (found.begins_at or found.requested_at) > _LATE
    return page(
        request,
        "task.html",
        frame=frame,
        title=_title(found.state),
        task=found,
        feed=feed,
        is_late=is_late,
        again=with_query("/feeds/add", again),
        queue=queued,
        waits=found.state == "queued" and found.begins_at is not None and found.begins_at > now,
    )


@router.get("/tasks")
async def show_tasks(
    request: Request,
    caller: SignedIn,
    since: int | None = None,
    held: Count = 0,
    off: Count = 0,
    over: Count = 0,
) -> Response:
    """The user's visits that are still to be made, or were requested since this millisecond.

    The counts are of feeds that were left out then.
    """
    now: datetime = request.app.state.clock()
    begin = now - _RECENT
    if since is not None and 0 <= since <= milliseconds(now):
        begin = datetime.fromtimestamp(since / 1000, UTC)
    frame, shown = await read_frame(caller, tasks(caller.user_id, since=begin, now=now, limit=_MOST_SHOWN))
    done = [task for task, _ in shown if task.result is not None]
    outcomes = Counter(task.result.outcome for task in done if task.result is not None)
    open_ones = len(shown) - len(done)
    return page(
        request,
        "tasks.html",
        frame=frame,
        title=_title("running" if open_ones else "done"),
        tasks=shown,
        open_ones=open_ones,
        done=len(done),
        items_new=sum(task.result.items_new for task in done if task.result is not None),
        failed=outcomes["failed"],
        most=_MOST_SHOWN if len(shown) == _MOST_SHOWN else None,
        held=held,
        off=off,
        over=over,
    )


@router.post("/feeds/{id}/refresh")
async def refresh(request: Request, caller: SignedIn, id: str) -> Response:
    """Visit one feed now, and show its task."""
    await form_fields(request)
    settings = caller.stores.settings
    match begun(await caller.change(lambda own: refresh_feed(own, settings, id))):
        case Queued(task_id=task_id) | VisitRunning(task_id=task_id):
            return see_other(task_url(task_id))
        case Held(until=until, reason=reason):
            frame, _ = await read_frame(caller)
            return page(
                request,
                "held.html",
                frame=frame,
                title="This feed cannot be visited now",
                status=409,
                feed_id=id,
                until=until,
                reason=reason,
            )


@router.post("/refresh")
async def refresh_many(request: Request, caller: SignedIn) -> Response:
    """Visit the feeds of a folder now, or all, and show how far it is."""
    fields = await form_fields(request)
    now = caller.clock()
    folder, settings = fields.get("folder") or None, caller.stores.settings
    found = await caller.change(lambda own: refresh_feeds(own, settings, folder=folder))
    counts = {"held": found.held, "off": found.off, "over": found.over}
    query = {"since": milliseconds(now)} | {name: count for name, count in counts.items() if count > 0}
    return see_other(with_query("/tasks", {name: str(value) for name, value in query.items()}))


def _title(state: str) -> str:
    return {"queued": "A visit is about to begin", "running": "Visiting"}.get(state, "Visited")


@router.get("/feeds/add")
async def form(
    request: Request,
    caller: SignedIn,
    url: str = "",
    folder: str = "",
    title: str = "",
    interval: str = "",
    full_text: str = "",
) -> Response:
    """The form; what is given is filled in, for bookmarks and for another attempt."""
    given = {"url": url, "folder": folder, "title": title, "interval": interval, "full_text": full_text}
    return await _form(request, caller, given)


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
        case KnownFeed(feed_id=feed_id, first=None):
            return see_other(f"{edit_url(feed_id)}?subscribed=yes")
        case KnownFeed(feed_id=feed_id, first=Held(until=until, reason=reason)):
            frame, _ = await read_frame(caller)
            title = "The feed is subscribed; its first visit waits"
            return page(
                request, "held.html", frame=frame, title=title, feed_id=feed_id, until=until, reason=reason
            )
        case (
            KnownFeed(first=Queued(task_id=id) | VisitRunning(task_id=id))
            | Queued(task_id=id)
            | VisitRunning(task_id=id)
        ):
            return see_other(task_url(id))
        case AddressRefused(message=message):
            advice = "Type the public address of a feed or of its page, without a password."
            return await _form(request, caller, fields, error=f"{message} {advice}", status=422)
        case TooMany(retry_after=seconds):
            error = f"You have added many new addresses. Add the next one in {-(-seconds // 60)} minutes."
            return await _form(request, caller, fields, error=error, retry_after=seconds)
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
    retry_after: int | None = None,
) -> Response:
    frame, _ = await read_frame(caller)
    names = ("url", "folder", "title", "interval", "full_text")
    shown = {name: given.get(name, "")[:MAX_URL_CHARACTERS] for name in names}
    return page(
        request,
        "add.html",
        frame=frame,
        title="Add a feed",
        status=status,
        given=shown,
        intervals=INTERVALS,
        error=error,
        retry_after=retry_after,
    )
