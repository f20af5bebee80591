"""Full text in the JSON API: the state of a feed, and why an item has the feed's own text. The switch is
`full_text` of a feed (PATCH /api/feeds/{id})."""

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.problems import documented
from rss_pipeline.api.routers.answered import NOT_CHANGED, json_of, no_feed, no_item
from rss_pipeline.api.routing import api_router
from rss_pipeline.features.full_text import about

router = api_router("full text")

_ASKED = documented("not_signed_in", "foreign_origin", "not_found")
_ANSWERS = NOT_CHANGED | _ASKED


class Decided(BaseModel):
    """The decision of `auto`, by up to five items and their pages; characters are medians."""

    is_truncated: bool
    compared: int = Field(description="Items with an article on their page.")
    longer: int = Field(description="Those of them with more text on the page.")
    own_characters: int
    page_characters: int
    summary: str


class Reason(BaseModel):
    """Why some items have the feed's own text."""

    verdict: str = Field(
        description="`consent`, `login`, `paywall`, `robot_check`, `list`, `stub`, `scripts`, `robots`, ..."
    )
    items: int
    example: str = Field(description="The reason of one of them, in words.")


class HostDay(BaseModel):
    """Requests for articles to a host within 24 hours, of all feeds."""

    host: str
    requests: int
    most: int


class FeedFullText(BaseModel):
    """Full text of a feed."""

    in_registry: str | None = Field(description="`on` or `auto` of the operator's list; null for off.")
    switched: bool = Field(description="A subscriber's switch is on.")
    can_read: bool = Field(description="False: this server lacks what reads articles.")
    decision: Decided | None
    shown: int = Field(description="Items whose article is shown.")
    waiting: int = Field(description="Items whose page waits for its request.")
    waiting_until: str | None
    reasons: list[Reason]
    hosts: list[HostDay]


class ItemFullText(BaseModel):
    """Full text of an item."""

    status: str = Field(
        description="`shown`; `none`: the feed's own text, for the reason; `pending`: not requested yet, or"
        " again later; `off`: you did not request it."
    )
    verdict: str | None
    reason: str | None = Field(description="Why the feed's own text is shown.")
    until: str | None = Field(description="The earliest time of the next request.")
    own_characters: int | None
    page_characters: int | None
    can_fetch: bool = Field(description="POST shows it to you, or has its page requested (again).")
    can_hide: bool = Field(description="You see it because you requested it; DELETE hides it.")


@router.get(
    "/feeds/{id}/full-text",
    operation_id="read_full_text_of_feed",
    response_model=FeedFullText,
    responses=_ANSWERS,
)
async def of_feed(request: Request, caller: SignedIn, id: str) -> Response:
    """The articles behind the items of a feed: the decision, what waits, and the limit of its hosts."""
    found = await caller.ask(about.about_feed(id, now=caller.clock(), user_id=caller.user_id))
    if found is None:
        raise no_feed()
    return json_answer(request, {**found.as_json(), "can_read": await run_in_threadpool(about.can_read)})


@router.get(
    "/items/{id}/full-text",
    operation_id="read_full_text_of_item",
    response_model=ItemFullText,
    responses=_ANSWERS,
)
async def of_item(request: Request, caller: SignedIn, id: str) -> Response:
    """The article of an item, or the reason why it has the feed's own text."""
    found = await caller.ask(about.about_item(caller.user_id, id))
    if found is None:
        raise no_item()
    return json_answer(request, found.as_json())


@router.post(
    "/items/{id}/full-text",
    operation_id="request_full_text_of_item",
    response_model=ItemFullText,
    responses=_ASKED,
)
async def request_now(caller: SignedIn, id: str) -> Response:
    """Show the article of an item to you, whatever its feed: its page is requested once for all who want it,
    in a moment or in its turn among your new addresses; the limits and holds of its host apply."""
    settings = caller.stores.settings
    if not await caller.change(lambda own: about.request_article(own, settings, id)):
        raise no_item()
    return await _now(caller, id)


@router.delete(
    "/items/{id}/full-text",
    operation_id="hide_full_text_of_item",
    response_model=ItemFullText,
    responses=_ASKED,
)
async def hide(caller: SignedIn, id: str) -> Response:
    """Show the feed's own text of an item again, of which you requested the article."""
    if not await caller.change(lambda own: about.hide_article(own, id)):
        raise no_item()
    return await _now(caller, id)


async def _now(caller: AsyncCaller, id: str) -> Response:
    found = await caller.ask(about.about_item(caller.user_id, id))
    if found is None:
        raise no_item()
    return json_of(found.as_json())
