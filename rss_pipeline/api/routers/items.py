"""Items: of one feed or of all, page by page, and one alone."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.answers import takes_gzip
from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.conditional import CACHE_CONTROL, gzip_tag, json_answer, unchanged
from rss_pipeline.api.feed_json import EXAMPLE as FEED
from rss_pipeline.api.feed_json import NamedFeed
from rss_pipeline.api.fields import Folder, NeverNull, PageKey
from rss_pipeline.api.item_json import EXAMPLE, Item
from rss_pipeline.api.item_pages import ItemPages
from rss_pipeline.api.problems import documented
from rss_pipeline.api.routers.answered import NOT_CHANGED, no_feed, no_item
from rss_pipeline.reader.items import Filter, Key, Page, Scope
from rss_pipeline.reader.items import Order as ItemOrder

router = APIRouter(tags=["items"])

MOST = 200
_READS = NOT_CHANGED | documented("not_signed_in", "foreign_origin", "not_found")
_LISTS = NOT_CHANGED | documented("not_signed_in", "foreign_origin", "invalid_request")

Limit = Annotated[int, Query(ge=1, le=MOST, description="Items of a page.")]
Cursor = Annotated[
    PageKey | None,
    NeverNull(),
    Query(description="The `next_cursor` of the page before, of the same order; none for the first page."),
]
Order = Annotated[
    Literal["newest", "oldest", "published"],
    Query(description="The newest or the oldest arrivals first, or the newest dates of publication."),
]
UnreadOnly = Annotated[bool, Query(description="Only unread items.")]
StarredOnly = Annotated[bool, Query(description="Only items with a star.")]


class ItemsPage(BaseModel):
    """A page of items."""

    items: list[Item]
    next_cursor: int | str | None = Field(
        description="For the next page; null where this is the last one. A number by arrival, a text by date"
        " of publication. Very large items make a page shorter than its limit."
    )

    model_config = {"json_schema_extra": {"example": {"items": [EXAMPLE], "next_cursor": EXAMPLE["cursor"]}}}


class ItemsPageOfFeed(ItemsPage):
    """A page of items of one feed, and the feed."""

    feed: NamedFeed
    total: int = Field(description="The number of items over all pages: with a filter, of those it lists.")
    has_unread: bool = Field(description="True if an item of the feed is unread.")
    last_read_at: str | None = Field(
        description="The last time that the user marked an item of the feed as read; null for none."
    )

    model_config = {
        "json_schema_extra": {
            "example": {
                "feed": {name: FEED[name] for name in NamedFeed.model_fields},
                "total": 131,
                "has_unread": True,
                "last_read_at": FEED["last_read_at"],
                "items": [EXAMPLE],
                "next_cursor": EXAMPLE["cursor"],
            }
        }
    }


@router.get(
    "/feeds/{id}/items",
    operation_id="list_items_of_feed",
    response_model=ItemsPageOfFeed,
    responses=_LISTS | documented("not_found"),
)
async def list_of_feed(
    request: Request,
    caller: SignedIn,
    id: str,
    limit: Limit = 50,
    cursor: Cursor = None,
    order: Order = "newest",
    unread_only: UnreadOnly = False,
    starred_only: StarredOnly = False,
) -> Response:
    """The items of one feed, in the order of their arrival unless another one is named. Marks between two
    pages lose no item."""
    filter = _filter(Scope(feed_id=id), unread_only=unread_only, starred_only=starred_only)
    return await _answer(request, caller, filter, _page(limit, cursor, order))


@router.get("/items", operation_id="list_items", response_model=ItemsPage, responses=_LISTS)
async def list_all(
    request: Request,
    caller: SignedIn,
    folder: Annotated[Folder | None, NeverNull(), Query(description="Only feeds in this folder.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    order: Order = "newest",
    unread_only: UnreadOnly = False,
    starred_only: StarredOnly = False,
) -> Response:
    """The items of all feeds, or of those in a folder, likewise."""
    filter = _filter(Scope(folder=folder), unread_only=unread_only, starred_only=starred_only)
    return await _answer(request, caller, filter, _page(limit, cursor, order))


@router.get("/items/{id}", operation_id="read_item", response_model=Item, responses=_READS)
async def read(request: Request, caller: SignedIn, id: str) -> Response:
    """One item."""
    pages: ItemPages = request.app.state.item_pages
    item = await caller.run(lambda one: pages.item(one, id))
    if item is None:
        raise no_item()
    return json_answer(request, item)


async def _answer(request: Request, caller: AsyncCaller, filter: Filter, page: Page) -> Response:
    pages: ItemPages = request.app.state.item_pages
    found = await pages.page(
        caller,
        filter,
        page,
        has=lambda tag: unchanged(request, tag) is not None,
        takes_gzip=takes_gzip(request.scope),
    )
    if found is None:
        raise no_feed()
    if found.json is None:
        same = unchanged(request, found.tag)
        assert same is not None
        return same
    headers = {"ETag": found.tag, "Cache-Control": CACHE_CONTROL}
    if found.gzip is None:
        return Response(found.json, headers=headers, media_type="application/json")
    headers |= {"ETag": gzip_tag(found.tag.encode()).decode(), "Content-Encoding": "gzip"}
    return Response(found.gzip, headers=headers, media_type="application/json")


def _filter(scope: Scope, *, unread_only: bool, starred_only: bool) -> Filter:
    return Filter(
        scope=scope, is_read=False if unread_only else None, is_starred=True if starred_only else None
    )


def _page(limit: int, cursor: str | None, order: Literal["newest", "oldest", "published"]) -> Page:
    by: ItemOrder = "published" if order == "published" else "arrived"
    after = None if cursor is None else Key.read(cursor).within(by)
    return Page(limit=limit, after=after, newest_first=order != "oldest", order=by)
