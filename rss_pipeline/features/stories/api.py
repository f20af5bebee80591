"""Stories in the JSON API: their items in the user's feeds, why these stand together, what the user says."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import Line, NeverNull
from rss_pipeline.api.routers.answered import NOT_CHANGED, no_feed, no_item
from rss_pipeline.api.routing import api_router
from rss_pipeline.features.stories import acts
from rss_pipeline.features.stories.person import SeenItem, stories_of, story_of, with_added

router = api_router("stories")

MOST = 100

_ANSWERS = documented("not_signed_in", "foreign_origin", "not_found")
_LISTS = documented("not_signed_in", "foreign_origin", "invalid_request")
_JOINS = _ANSWERS | documented("invalid_request")

ItemId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Reason(BaseModel):
    """The reason for which an item stands in a story."""

    kind: str = Field(
        description="`first`; a copy by `link`, `text` or `retitled`; `reissue`: the same item of its feed"
        " again, changed; `event`: the same event; `operator`; `chosen`: you put it there; `tied`: what it"
        " was joined with is gone."
    )
    nearest: str | None = Field(description="The item of yours that it is most like.")
    names: list[str] = Field(description="Names of both texts.")
    numbers: list[str] = Field(description="Numbers of both texts.")
    terms: list[str] = Field(description="Rare words of both texts.")


class StoryItem(BaseModel):
    """An item of a story, in a feed of yours."""

    id: str
    feed_id: str
    feed_title: str | None
    title: str | None
    link: str | None
    published_at: str
    collected_at: str
    is_read: bool
    leads: bool = Field(description="You prefer its feed as the leading one.")
    reason: Reason
    adds: str | None = Field(
        default=None,
        description="A sentence of it that says what no item before it does; null for none, and in lists.",
    )


class Story(BaseModel):
    """The items of your feeds on one event, the leading one first; one alone is in none."""

    items: list[StoryItem]


class Stories(BaseModel):
    """A page of stories, the one with the newest item first."""

    stories: list[Story]
    next_cursor: int | None = Field(description="For the next page; null where this is the last one.")


class Together(BaseModel):
    """Two items on one event."""

    items: list[ItemId] = Field(min_length=2, max_length=2, description="Their ids.")


class LeadingFeed(BaseModel):
    """A feed of yours."""

    feed_id: Annotated[Line, Field(max_length=80)]
    leads: Annotated[bool, Field(strict=True)] = Field(description="Its items lead; false: as others do.")


@router.get("/stories", operation_id="list_stories", response_model=Stories, responses=NOT_CHANGED | _LISTS)
async def list_all(
    request: Request,
    caller: SignedIn,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Stories of a page.")] = 50,
    cursor: Annotated[
        int | None, NeverNull(), Query(ge=0, lt=2**53, description="The `next_cursor` of the page before.")
    ] = None,
) -> Response:
    """All stories of two items and more in your feeds, with reasons."""
    found = await caller.run(lambda own: stories_of(own, limit=limit, below=cursor))
    stories = [{"items": [*map(_as_json, items)]} for items in found.stories]
    return json_answer(request, {"stories": stories, "next_cursor": found.next_key})


@router.get(
    "/stories/{id}", operation_id="read_story", response_model=Story, responses=NOT_CHANGED | _ANSWERS
)
async def read(request: Request, caller: SignedIn, id: str) -> Response:
    """The story of an item, with reasons."""
    found = await caller.run(lambda own: with_added(own, story_of(own, id)))
    if not found:
        raise no_item()
    return json_answer(request, {"items": [*map(_as_json, found)]})


@router.post("/stories/{id}/apart", operation_id="split_story", status_code=204, responses=_ANSWERS)
async def apart(caller: SignedIn, id: str) -> None:
    """ "Not the same": the item stands alone from now on, for you."""
    if not await caller.change(lambda own: acts.apart(own, id)):
        raise ApiError("not_found", "Your feeds have no such item.")


@router.post("/stories/together", operation_id="join_stories", status_code=204, responses=_JOINS)
async def together(caller: SignedIn, both: Together) -> None:
    """ "The same": another item, with its story, belongs to the story of this one, for you."""
    if not await caller.change(lambda own: acts.together(own, *both.items)):
        raise ApiError("not_found", "Your feeds have no such items, or they are one story already.")


@router.post("/stories/lead", operation_id="lead_stories", status_code=204, responses=_JOINS)
async def lead(caller: SignedIn, feed: LeadingFeed) -> None:
    """Let items of a feed lead the stories that they are in, for you, or no longer."""
    if not await caller.change(lambda own: acts.lead(own, feed.feed_id, leads=feed.leads)):
        raise no_feed()


@router.post("/stories/undo", operation_id="undo_story", status_code=204, responses=_ANSWERS)
async def undo(caller: SignedIn) -> None:
    """Take back what you said last."""
    if await caller.change(acts.undo) is None:
        raise ApiError("not_found", "There is nothing to undo.")


def _as_json(item: SeenItem) -> dict[str, Any]:
    return {
        "id": item.id,
        "feed_id": item.feed_id,
        "feed_title": item.feed_title,
        "title": item.title,
        "link": item.link,
        "published_at": item.published,
        "collected_at": item.collected,
        "is_read": item.is_read,
        "leads": item.leads,
        "reason": asdict(item.reason),
        "adds": item.adds or None,
    }
