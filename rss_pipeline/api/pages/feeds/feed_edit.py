"""The changes that a user can make to a subscription (title, folder, interval, end) and to its address."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.pages.addresses import HOME, edit_url, feed_url, local, task_url
from rss_pipeline.api.pages.feeds.owner import partition_url
from rss_pipeline.api.pages.feeds.tasks import no_feed
from rss_pipeline.api.pages.feeds.wishes import FormMistake, offered_intervals, read_wishes
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.pipeline.reading.addresses import AddressRefused
from rss_pipeline.pipeline.reading.change_address import (
    AddressChanged,
    NotTheirs,
    OtherFeed,
    change_address,
    fixed_address,
)
from rss_pipeline.pipeline.reading.failures import failing_feeds
from rss_pipeline.pipeline.reading.refresh import Held, NotSubscribed, Queued, VisitRunning
from rss_pipeline.storage.subscriptions import subscriptions
from rss_pipeline.storage.subscriptions.address import look_at_address
from rss_pipeline.storage.subscriptions.counts import count_starred
from rss_pipeline.storage.subscriptions.listing import FeedRow, list_visits, with_visits

router = APIRouter(include_in_schema=False)

_NEW = timedelta(minutes=1)


@router.get("/feeds/{id}/edit")
async def form(request: Request, caller: SignedIn, id: str, subscribed: str = "") -> Response:
    """The form. `subscribed`: the user has just added this feed, or tried to add it again."""
    return await _form(request, caller, id, has_added=subscribed == "yes")


@router.post("/feeds/{id}/edit")
async def edit(request: Request, caller: SignedIn, id: str) -> Response:
    """Change title, folder and interval, for this user only; and the address, if another one is given. A feed
    with another address is visited at once: its task is shown."""
    fields = await form_fields(request)
    wishes = read_wishes(fields)
    if isinstance(wishes, FormMistake):
        return await _form(request, caller, id, error=wishes.message)
    changes = subscriptions.Edit(
        title=wishes.title, folder=wishes.folder, wished_interval=wishes.wished_interval
    )
    statements = subscriptions.edit(caller.user_id, id, changes, at=caller.clock())
    done = see_other(local(fields.get("back"), feed_url(id)))
    url = fields.get("url", "").strip()
    if not url:
        edited, *_ = await caller.write(*statements)
        if not edited.changes:
            raise no_feed()
        return done
    settings = caller.stores.settings
    answer = await caller.change(lambda one: change_address(one, settings, id, url, others=statements))
    match answer:
        case AddressChanged(visit=Queued(task_id=task_id) | VisitRunning(task_id=task_id)):
            return see_other(task_url(task_id))
        case AddressChanged(visit=Held(until=until, reason=reason)):
            frame, _ = await read_frame(caller)
            title = "The address is changed; the next visit waits"
            return page(
                request, "held.html", frame=frame, title=title, feed_id=id, until=until, reason=reason
            )
        case AddressRefused(message=message):
            error = f"{message} Type the public address of a feed, without a password."
            return await _form(request, caller, id, error=error, given_url=url)
        case NotTheirs() | OtherFeed():
            error = f"{answer.message} {answer.what_to_do}"
            return await _form(request, caller, id, error=error, given_url=url)
        case NotSubscribed():
            raise no_feed()
    return done


@router.get("/feeds/{id}/unsubscribe")
async def confirm(request: Request, caller: SignedIn, id: str) -> Response:
    """The question before a feed is unsubscribed: what goes with it."""
    frame, [starred] = await read_frame(caller, count_starred(caller.user_id, id))
    feed = _feed(frame.feeds, id)
    return page(
        request,
        "unsubscribe.html",
        frame=frame,
        title="Unsubscribe",
        feed=feed,
        starred=int(starred.rows[0]["n"]),
    )


@router.post("/feeds/{id}/unsubscribe")
async def unsubscribe(request: Request, caller: SignedIn, id: str) -> Response:
    """End the subscription, with its read states and stars."""
    fields = await form_fields(request)
    ended, *_ = await caller.write(*subscriptions.unsubscribe(caller.user_id, [id], at=caller.clock()))
    if not ended.changes:
        raise no_feed()
    return see_other(local(fields.get("back"), HOME))


async def _form(
    request: Request,
    caller: AsyncCaller,
    id: str,
    *,
    has_added: bool = False,
    error: str | None = None,
    given_url: str | None = None,
) -> Response:
    frame, [looked, *visit] = await read_frame(
        caller, look_at_address(caller.user_id, id), *list_visits([id])
    )
    feed = _feed(with_visits(frame.feeds, visit), id)
    now: datetime = request.app.state.clock()
    [stored] = looked.rows
    is_owner = bool(stored["is_owner"])
    return page(
        request,
        "feed_edit.html",
        frame=frame,
        title="Edit a feed",
        status=200 if error is None else 422,
        feed=feed,
        failure=next(iter(failing_feeds([feed])), None),
        error=error,
        given_url=given_url or feed.url,
        fixed=fixed_address(stored, id),
        has_added=has_added,
        is_new=now - feed.added_at < _NEW,
        intervals=offered_intervals(feed.wished_interval),
        is_owner=is_owner,
        partition=partition_url(caller.stores.settings, request.scope, id) if is_owner else None,
        edit_url=edit_url(id),
    )


def _feed(feeds: Sequence[FeedRow], id: str) -> FeedRow:
    found = next((feed for feed in feeds if feed.feed_id == id), None)
    if found is None:
        raise no_feed()
    return found
