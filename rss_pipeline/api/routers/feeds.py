"""The user's feeds: listed, changed, unsubscribed. How one is subscribed is in subscribe.py."""

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.feed_json import EXAMPLE, Feed, feed_json
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import (
    ADDRESS_CHARACTERS,
    ADDRESS_PATTERN,
    Folder,
    Interval,
    Line,
    NeverNull,
    Number,
    Position,
    Title,
)
from rss_pipeline.api.routers.answered import (
    CHANGE_KINDS,
    CHANGES,
    NOT_CHANGED,
    READS,
    json_of,
    no_feed,
)
from rss_pipeline.api.routing import api_router
from rss_pipeline.reader import edit
from rss_pipeline.reader.accounts.preferences import state_version
from rss_pipeline.reader.edit import Edited, NotTheirs, OtherFeed
from rss_pipeline.reader.feed_queries import feeds, folders, visits, with_visits
from rss_pipeline.reader.query import together
from rss_pipeline.reader.refresh import NotSubscribed
from rss_pipeline.reader.subscribe import AddressRefused

router = api_router("feeds", "/feeds")


class Feeds(BaseModel):
    """All feeds of the user."""

    state_version: int = Field(description="It grows with every change the user makes.")
    version: int = Field(description="The highest version of a feed: pass it as `since` to feeds/updated.")
    folders: list[str] = Field(description="All folders, empty ones too, sorted.")
    feeds: list[Feed] = Field(description="In the user's order, unless the call names another one.")

    model_config = {
        "json_schema_extra": {
            "example": {
                "state_version": 12,
                "version": EXAMPLE["version"],
                "folders": ["Later", "News"],
                "feeds": [EXAMPLE],
            }
        }
    }


class Changes(BaseModel):
    """The changes; fields that are left out stay."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"folder": "News", "interval": 3600}}
    )

    url: Annotated[Line, Field(min_length=1, max_length=ADDRESS_CHARACTERS)] = Field(
        default="",
        description="Another address of the feed; its items, stars, title and folder stay, and it is visited"
        " at once. 409 for a feed of the operator's list, for one that others subscribe to unless you are the"
        " owner of the server, and where another feed has the address.",
        json_schema_extra={"pattern": ADDRESS_PATTERN},
    )
    title: Title | None = Field(default=None, description="A title of your own; null for the feed's.")
    folder: Folder | None = Field(default=None, description="null for none.")
    position: Position = Field(default=0, description="The place in your order of feeds.")
    interval: Interval | None = Field(
        default=None,
        description="Preferred polling interval in seconds; the shortest of all subscribers wins, and the"
        " publisher's own limits come first. null for what suits the feed.",
    )
    full_text: bool = Field(
        default=False,
        description="True for the articles on the pages behind items that come from now on, in place of"
        " teasers. All who subscribe to the feed see them.",
    )


@router.get("", operation_id="list_feeds", response_model=Feeds, responses=NOT_CHANGED | READS)
async def list_all(request: Request, caller: SignedIn) -> Response:
    """All feeds of the user, with unread counts, health and next visit."""
    return json_answer(request, await _feeds(caller))


@router.get(
    "/updated",
    operation_id="list_updated_feeds",
    response_model=Feeds,
    responses=NOT_CHANGED | documented("not_signed_in", "foreign_origin", "invalid_request"),
)
async def list_updated(
    request: Request,
    caller: SignedIn,
    since: Annotated[
        Number | None, NeverNull(), Query(description="The `version` of an earlier answer.")
    ] = None,
) -> Response:
    """The feeds with items that came after `since`, in the user's order. Without it, the feeds with unread
    items, those with the newest item first."""
    answer = await _feeds(caller, since=since)
    if since is None:
        unread = (feed for feed in answer["feeds"] if feed["is_unread"])
        answer["feeds"] = sorted(unread, key=lambda feed: feed["version"], reverse=True)
    return json_answer(request, answer)


@router.patch(
    "/{id}",
    operation_id="change_feed",
    response_model=Feed,
    responses=documented(*CHANGE_KINDS, "conflict", "address_refused"),
)
async def change(caller: SignedIn, id: str, changes: Changes) -> Response:
    """Change the title, folder, place, wished interval or full text of a feed, for this user only; or its
    address."""
    given: dict[str, Any] = changes.model_dump(exclude_unset=True)
    if "interval" in given:
        given["wished_interval"] = given.pop("interval")
    settings = caller.stores.settings
    answer = await caller.change(lambda one: edit.edit_feed(one, settings, id, **given))
    match answer:
        case Edited(feed=feed):
            return json_of(feed_json(feed))
        case AddressRefused(message=message):
            raise ApiError("address_refused", message)
        case NotTheirs() | OtherFeed():
            raise ApiError("conflict", answer.message, what_to_do=answer.what_to_do)
        case NotSubscribed():
            raise no_feed()


@router.delete("/{id}", operation_id="unsubscribe", status_code=204, responses=CHANGES)
async def unsubscribe(caller: SignedIn, id: str) -> Response:
    """Unsubscribe from a feed: its read states and stars go with it. Once no one uses the feed, it is no
    longer visited, and a week later its items are removed."""
    if not await caller.change(lambda one: edit.unsubscribe(one, [id])):
        raise no_feed()
    return Response(status_code=204)


async def _feeds(caller: AsyncCaller, *, since: int | None = None) -> dict[str, Any]:
    """The feeds with an item behind `since`. Where results are kept, the list is one of them, and only the
    visits of its feeds are read."""
    is_kept = caller.stores.kept is not None
    state, names, rows = await caller.ask(
        together(
            state_version(caller.user_id),
            folders(caller.user_id),
            feeds(caller.user_id, newer_than=None if is_kept else since, has_visits=not is_kept),
        )
    )
    if is_kept:
        rows = [row for row in rows if since is None or row.version > since]
        rows = with_visits(rows, await caller.ask(visits([row.feed_id for row in rows])))
    since = since or 0
    return {
        "state_version": state,
        "version": max((row.version for row in rows), default=since),
        "folders": names,
        "feeds": [feed_json(row) for row in rows],
    }
