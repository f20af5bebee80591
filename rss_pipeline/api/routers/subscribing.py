"""Subscribing a feed by its address, or by that of a web page."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import ADDRESS_CHARACTERS, ADDRESS_PATTERN, Folder, Interval, Line, Title
from rss_pipeline.api.routers.answered import json_of
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.reader.refresh import Held, Queued, TooMany, VisitRunning
from rss_pipeline.reader.subscribe import (
    AddressRefused,
    KnownFeed,
    SubscribeAnswer,
    TooManyFeeds,
    subscribe_address,
)

router = api_router("feeds")


class NewFeed(BaseModel):
    """A feed to subscribe to."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"url": "https://planet.example/", "folder": "News"}},
    )

    url: Annotated[Line, Field(min_length=1, max_length=ADDRESS_CHARACTERS)] = Field(
        description="The address of a feed, or of a web page that names its feed. `https://` may be left out;"
        " names and paths in characters that the pattern lacks are taken, too.",
        json_schema_extra={"pattern": ADDRESS_PATTERN},
    )
    title: Title | None = Field(default=None, description="A title of your own.")
    folder: Folder | None = None
    interval: Interval | None = Field(
        default=None, description="Preferred polling interval in seconds; null for what suits the feed."
    )
    page: bool = Field(
        default=False, description="Where the address has no feed, collect the entries that the page lists."
    )
    choice: Annotated[str, Field(max_length=40)] | None = Field(
        default=None, description="With `page`: the `name` of one of the offer's `choices`."
    )
    full_text: bool = Field(
        default=False, description="True for the articles on the pages behind its new items."
    )


class Subscribed(BaseModel):
    """The result of a subscription."""

    status: Literal["queued", "already_running", "known"] = Field(
        description="`known`: subscribed, and its items are there. `queued`, `already_running`: the first"
        " visit is about to begin, or has begun; follow the task."
    )
    feed_id: str | None = Field(description="The feed; null until an address that is new was visited.")
    task_id: str | None = Field(description="For `GET /api/tasks/{id}`; null where there is nothing to do.")
    delay_seconds: int = Field(description="Seconds until the visit begins, about.")
    held_until: str | None = Field(
        description="The first visit waits until then: the server wants no requests, or more than 60 new"
        " addresses came from one user within an hour."
    )
    waiting: int = Field(
        default=0, description="New addresses of this user that wait: 60 an hour are requested for a user."
    )
    waits_until: str | None = Field(default=None, description="When the last of them is requested.")

    model_config = {
        "json_schema_extra": {
            "example": {
                "status": "queued",
                "feed_id": None,
                "task_id": "5f2b9d3c1a7e4f60",
                "delay_seconds": 2,
                "held_until": None,
                "waiting": 0,
                "waits_until": None,
            }
        }
    }


@router.post(
    "/feeds",
    operation_id="subscribe",
    response_model=Subscribed,
    responses={
        202: {"model": Subscribed, "description": "The first visit is still to be made."},
        **documented(
            "malformed_request",
            "not_signed_in",
            "foreign_origin",
            "too_many_feeds",
            "address_refused",
            "invalid_request",
            "too_many_requests",
        ),
    },
)
async def subscribe(caller: SignedIn, given: NewFeed) -> Response:
    """Subscribe to a feed: at once if it is known. Any other address is visited first, and its task says
    whether there is a feed. Feeds that you subscribe to already stay as they are."""
    wishes = Wishes(
        title=given.title,
        folder=given.folder,
        wished_interval=given.interval,
        takes_offer=given.page,
        choice=given.choice,
        full_text=given.full_text,
    )
    settings = caller.stores.settings
    answer = await caller.change(lambda one: subscribe_address(one, settings, given.url, wishes=wishes))
    found = _answer(answer)
    return json_of(found, status=200 if found["status"] == "known" else 202)


def _answer(answer: SubscribeAnswer) -> dict[str, Any]:
    match answer:
        case KnownFeed(feed_id=feed_id, first=None):
            return _subscribed("known", feed_id)
        case KnownFeed(feed_id=feed_id, first=Held(until=until)):
            return _subscribed("known", feed_id) | {"held_until": instant(until)}
        case KnownFeed(feed_id=feed_id, first=Queued(task_id=id, delay_seconds=delay)):
            return _subscribed("queued", feed_id, id, delay)
        case KnownFeed(feed_id=feed_id, first=VisitRunning(task_id=id, delay_seconds=delay)):
            return _subscribed("already_running", feed_id, id, delay)
        case Queued(task_id=id, delay_seconds=delay, queue=queue, begins_at=begins_at):
            return _subscribed("queued", None, id, delay) | {
                "held_until": None if begins_at is None else instant(begins_at),
                "waiting": queue.waiting,
                "waits_until": None if queue.until is None else instant(queue.until),
            }
        case VisitRunning(task_id=id, delay_seconds=delay):
            return _subscribed("already_running", None, id, delay)
        case AddressRefused(message=message):
            raise ApiError("address_refused", message)
        case TooMany(retry_after=seconds):
            raise ApiError("too_many_requests", "Too many new addresses in an hour.", retry_after=seconds)
        case TooManyFeeds(most=most):
            raise ApiError("too_many_feeds", f"You subscribe to {most:,} feeds, and more are not possible.")
    raise AssertionError(answer)


def _subscribed(
    status: str, feed_id: str | None, task_id: str | None = None, delay: int = 0
) -> dict[str, Any]:
    return {
        "status": status,
        "feed_id": feed_id,
        "task_id": task_id,
        "delay_seconds": delay,
        "held_until": None,
        "waiting": 0,
        "waits_until": None,
    }
