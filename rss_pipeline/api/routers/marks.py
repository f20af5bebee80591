"""The marks of a user: a feed read up to what was seen, items read, unread, starred."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.feed_json import EXAMPLE, Feed
from rss_pipeline.api.fields import Line, Seen
from rss_pipeline.api.item_json import EXAMPLE as ITEM
from rss_pipeline.api.routers.answered import CHANGES, changed_feed, json_of, no_item
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.subscriptions import states
from rss_pipeline.storage.subscriptions.chosen import Chosen, Scope
from rss_pipeline.storage.subscriptions.item_lists import known_ids
from rss_pipeline.storage.subscriptions.listing import list_feeds

router = APIRouter(tags=["marks"])

MOST_IDS = 1_000


class SeenFeed(BaseModel):
    """The part of a feed that the client has shown."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"up_to": EXAMPLE["version"]}})

    up_to: Seen = Field(
        description="The `version` of the feed that the client saw, or the `cursor` of an item: this item and"
        " all before it are read. What came later stays unread."
    )


class Marks(BaseModel):
    """Marks to set; what is left out, or null, stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"ids": [ITEM["id"]], "is_read": True, "is_starred": None}},
    )

    ids: list[Annotated[Line, Field(max_length=64)]] = Field(min_length=1, max_length=MOST_IDS)
    is_read: Annotated[bool, Field(strict=True)] | None = None
    is_starred: Annotated[bool, Field(strict=True)] | None = None


class Marked(BaseModel):
    """The number of items that have the marks now."""

    marked: int
    unknown: list[str] = Field(description="The ids that no item of the user's feeds has.")

    model_config = {"json_schema_extra": {"example": {"marked": 1, "unknown": []}}}


@router.post("/feeds/{id}/mark-read", operation_id="mark_feed_read", response_model=Feed, responses=CHANGES)
async def mark_feed(caller: SignedIn, id: str, seen: SeenFeed) -> Response:
    """Mark a feed read up to what the client has seen; answers the feed. The same again changes nothing."""
    found = await caller.write(
        *states.mark_read_up_to(caller.user_id, Scope(feed_id=id), seen.up_to), list_feeds(caller.user_id, id)
    )
    return changed_feed(found[-1])


@router.post("/items/mark", operation_id="mark_items", response_model=Marked, responses=CHANGES)
async def mark_items(caller: SignedIn, marks: Marks) -> Response:
    """Mark items read, unread, with a star or without. Other ids are left out; 404 if no id is known."""
    ids = list(dict.fromkeys(marks.ids))
    user_id, chosen, statements = caller.user_id, Chosen.by_ids(ids), list[Statement]()
    if marks.is_read is not None:
        statements += states.mark_items(user_id, chosen, is_read=marks.is_read)
    if marks.is_starred:
        statements += states.star_items(user_id, chosen, at=caller.clock())
    elif marks.is_starred is not None:
        statements += states.unstar_items(user_id, chosen)
    *_, found = await caller.write(*statements, known_ids(user_id, ids))
    known = {row["id"] for row in found.rows}
    if not known:
        raise no_item()
    return json_of({"marked": len(known), "unknown": [id for id in ids if id not in known]})
