"""Subscribing for clients that want the feed's id at once, although an unknown address has to be looked at.

A known feed is subscribed at once. For another address a run makes the request to the publisher; the client's
request waits for it for a while, and only few wait at one time, so that the others find their place.
"""

import asyncio
from dataclasses import dataclass

from rss_pipeline.api.google_reader.call import SignedIn
from rss_pipeline.api.google_reader.refused import Refused, not_understood
from rss_pipeline.api.google_reader.streams import Feed, FeedStream
from rss_pipeline.api.google_reader.subscriptions.feeds import read_feeds
from rss_pipeline.pipeline.reading.addresses import AddressRefused
from rss_pipeline.pipeline.reading.refresh import Queued, Task, TooMany, VisitRunning, task_of
from rss_pipeline.pipeline.reading.subscribe import Known, TooManyFeeds, subscribe_address
from rss_pipeline.storage.database import one
from rss_pipeline.storage.refresh.refresh_requests import Wishes, task_statement
from rss_pipeline.storage.subscriptions import subscriptions
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS, UNCHANGED

_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Subscribed:
    feed_id: str


@dataclass(frozen=True, slots=True)
class Searching:
    """The address is being looked at, or will be; what is found is subscribed."""

    later: Queued | None = None
    """It waits for a turn of its user, who has brought many new addresses."""


async def subscribe_feed(
    session: SignedIn, feed: Feed, *, title: str | None = None, folder: str | None = None, waits: bool = True
) -> Subscribed | Searching:
    """Subscribe to a feed; one that is subscribed already gets this title and folder.

    `waits`: for the search of an unknown address, for a while. A feed is named by its address: by an id only
    one's own, since an id could be guessed.

    Raises:
        Refused: the address can be none, there is no feed, or the user has too many.
    """
    if isinstance(feed, FeedStream):
        feed_id = (await read_feeds(session)).known(feed).feed_id
    else:
        wishes = Wishes(title=title, folder=folder)
        settings = session.service.stores.settings
        answer = await session.change(
            lambda caller: subscribe_address(caller, settings, feed.url, wishes=wishes)
        )
        match answer:
            case Known():
                feed_id = answer.feed_id
            case Queued():
                if answer.begins_at is not None:
                    return Searching(later=answer)
                return await _searched(session, answer.task_id) if waits else Searching()
            case VisitRunning():
                return await _searched(session, answer.task_id) if waits else Searching()
            case AddressRefused():
                raise not_understood(answer.message)
            case TooMany():
                headers = {"Retry-After": str(answer.retry_after)}
                raise Refused(429, "Too many new addresses within an hour.", headers=headers)
            case TooManyFeeds():
                raise Refused(403, f"There are {MAX_SUBSCRIPTIONS:,} subscriptions, and no more can be had.")
    if title is not None or folder is not None:
        changes = subscriptions.Edit(
            title=UNCHANGED if title is None else title, folder=UNCHANGED if folder is None else folder
        )
        await session.write(
            *subscriptions.edit(session.user_id, feed_id, changes, at=session.service.clock())
        )
    return Subscribed(feed_id)


async def _searched(session: SignedIn, task_id: str) -> Subscribed | Searching:
    with session.service.waiting.one() as has_place:
        task = await _result(session, task_id) if has_place else None
    if task is None or task.result is None:
        return Searching()
    if task.feed_id is not None and task.result.outcome in ("subscribed", "known"):
        return Subscribed(task.feed_id)
    sentences = (task.result.error or "No feed was found at this address.", task.result.what_to_do)
    raise Refused(422, " ".join(filter(None, sentences)))


async def _result(session: SignedIn, task_id: str) -> Task | None:
    """The task once it is done; None if it is not soon."""
    try:
        async with asyncio.timeout(session.service.patience_seconds):
            while True:
                now = session.service.clock()
                (found,) = await session.read(task_statement(session.user_id, task_id, now=now))
                task = task_of(one(found))
                if task is not None and task.state == "done":
                    return task
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        return None
