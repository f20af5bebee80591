"""Items: of one feed or of all, page by page, and one alone; their archived images."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import orjson
from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.answers import gzipped, takes_gzip
from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.conditional import CACHE_CONTROL, gzip_tag, json_answer, unchanged, version_tag
from rss_pipeline.api.feed_json import EXAMPLE as FEED
from rss_pipeline.api.feed_json import NamedFeed, page_of_feed_json
from rss_pipeline.api.item_json import EXAMPLE, Item, item_json
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import Folder, NeverNull, PageKey
from rss_pipeline.api.routers.answered import NOT_CHANGED, no_feed, no_item
from rss_pipeline.api.routing import api_router
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.bodies import Bodies, Body
from rss_pipeline.reader.images import disposition, image, may_see
from rss_pipeline.reader.item_queries import (
    FeedOfPage,
    Filter,
    Items,
    Key,
    Page,
    PageVersion,
    Scope,
    feed_of_page,
    item,
    items,
    page_version,
)
from rss_pipeline.reader.item_queries import Order as ItemOrder
from rss_pipeline.reader.query import together

# Pages of items with their bodies, as JSON; kept in memory for as long as their version lasts.
#
# A page takes two requests to the database: one for its rows, one for the bodies that are not cached; where
# the HTML of some is not kept in the database, a third. An embedded database gives the version first, which
# spares them where the page is kept or the client has it.

MOST_PAGES_BYTES = 16_000_000
MOST_BODIES_BYTES = 32_000_000
"""With the pages, and the bodies of Google Reader clients (16 MB), 64 MB."""
KEPT_SECONDS = 3600.0
_PAGE_BYTES = 1_000
"""Size of a kept page beside its texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """A page as it is sent, with its tag. `json` is None where the client has it already."""

    tag: str
    json: bytes | None
    gzip: bytes | None = None
    """The same, compressed, where that was made."""


@dataclass(frozen=True, slots=True)
class _Kept:
    page: ReadPage
    expires: float
    size: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """A page of which some bodies are not kept."""

    key: object
    tag: str
    items: Items
    feed: FeedOfPage | None
    """For a page of one feed."""


class ItemPages:
    """Reads pages of items for callers. Safe to call from several threads."""

    def __init__(
        self, bodies: Bodies, *, seconds: Callable[[], float], most_bytes: int = MOST_PAGES_BYTES
    ) -> None:
        """`seconds` is a clock that never goes back (time.monotonic)."""
        self._bodies = bodies
        self._seconds = seconds
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[object, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of what is kept."""
        return self._size

    async def page(
        self,
        caller: AsyncCaller,
        filter: Filter,
        page: Page,
        *,
        has: Callable[[str], bool],
        takes_gzip: bool,
    ) -> ReadPage | None:
        """A page; None where its feed is not the caller's. `has` says of a tag if the client has its page."""
        key = (caller.user_id, filter, page)
        if not caller.stores.is_remote:
            version, feed = await caller.ask(
                together(page_version(caller.user_id, filter, page), feed_of_page(caller.user_id, filter))
            )
            if version is None:
                return None
            tag = _tag(key, version, feed)
            if has(tag):
                return ReadPage(tag=tag, json=None)
            kept = self._known(key, tag)
            if kept is not None and (kept.gzip is not None or not takes_gzip):
                return kept if takes_gzip else replace(kept, gzip=None)
        read = await caller.run(lambda one: self._read(one, filter, page, has=has, takes_gzip=takes_gzip))
        if isinstance(read, _Listed):
            listed = read
            read = await caller.make(lambda one: self._made(one, listed, takes_gzip=takes_gzip))
        return read

    def item(self, caller: Caller, item_id: str) -> dict[str, Any] | None:
        """One item with its body; None for what is no item of the caller's feeds."""
        row = caller.ask(item(caller.user_id, item_id))
        if row is None:
            return None
        body = self._bodies.all_of(caller.database, [row.body_key]).get(row.id)
        return None if body is None else item_json(row, body)

    def _read(
        self,
        caller: Caller,
        filter: Filter,
        page: Page,
        *,
        has: Callable[[str], bool],
        takes_gzip: bool,
    ) -> ReadPage | _Listed | None:
        key = (caller.user_id, filter, page)
        found, version, feed = caller.ask(
            together(
                items(caller.user_id, filter, page, with_together=True),
                page_version(caller.user_id, filter, page),
                feed_of_page(caller.user_id, filter),
            )
        )
        if version is None:
            return None
        tag = _tag(key, version, feed)
        if has(tag):
            return ReadPage(tag=tag, json=None)
        kept = self._known(key, tag)
        if kept is not None:
            return self._sent(key, kept, takes_gzip=takes_gzip)
        listed = _Listed(key, tag, found, feed)
        keys = [row.body_key for row in listed.items.items]
        bodies, left = self._bodies.page(caller.database, keys, sanitizes=False)
        if left:
            return listed
        return self._sent(key, ReadPage(tag=tag, json=_json(listed, bodies)), takes_gzip=takes_gzip)

    def _made(self, caller: Caller, listed: _Listed, *, takes_gzip: bool) -> ReadPage:
        keys = [row.body_key for row in listed.items.items]
        bodies, left = self._bodies.page(caller.database, keys)
        read = ReadPage(tag=listed.tag, json=_json(listed, bodies, left=len(left)))
        return self._sent(listed.key, read, takes_gzip=takes_gzip)

    def _sent(self, key: object, read: ReadPage, *, takes_gzip: bool) -> ReadPage:
        if takes_gzip and read.gzip is None and read.json is not None:
            read = replace(read, gzip=gzipped(read.json, is_kept=True))
        self._keep(key, read)
        return read if takes_gzip else replace(read, gzip=None)

    def _known(self, key: object, tag: str) -> ReadPage | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.page.tag != tag or kept.expires <= self._seconds():
                return None
            self._kept.move_to_end(key)
            return kept.page

    def _keep(self, key: object, page: ReadPage) -> None:
        size = len(page.json or b"") + len(page.gzip or b"") + _PAGE_BYTES
        with self._lock:
            before = self._kept.pop(key, None)
            expires = self._seconds() + KEPT_SECONDS
            if before is not None:
                self._size -= before.size
                if before.page.tag == page.tag:
                    expires = before.expires
            if size > self._most // 4:
                return
            self._kept[key] = _Kept(page, expires, size)
            self._size += size
            while self._size > self._most:
                _, gone = self._kept.popitem(last=False)
                self._size -= gone.size


def _tag(key: object, version: PageVersion, feed: FeedOfPage | None) -> str:
    return version_tag(repr(key), version.state, version.items, *(() if feed is None else map(str, feed)))


def _json(listed: _Listed, bodies: Mapping[str, Body], *, left: int = 0) -> bytes:
    """The page up to the last `left` items, which had no room. Items that went since they were listed have no
    body."""
    rows = listed.items.items[: len(listed.items.items) - left]
    next_key = listed.items.key(len(rows) - 1) if left else listed.items.next_key
    shown = [item_json(row, bodies[row.id]) for row in rows if row.id in bodies]
    about = {} if listed.feed is None else page_of_feed_json(listed.feed)
    return orjson.dumps({**about, "items": shown, "next_cursor": next_key and next_key.as_json})


router = api_router("items")

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


# Archived images, where the object store has no public address for them.

images_router = api_router("items", "/images")
_IMAGE_CACHE_CONTROL = "private, max-age=31536000, immutable"
"""An image's key never gets other bytes. The answer varies by the login, so that who logs in next in the same
browser needs the permission again."""


@images_router.get(
    "/{key:path}",
    response_class=Response,
    responses={
        200: {"description": "The image.", "content": {"image/*": {}}},
        304: {"description": "What the ETag in If-None-Match names is still so; no body."},
        **documented("not_signed_in", "foreign_origin", "not_found"),
    },
)
async def read_image(request: Request, caller: SignedIn, key: str) -> Response:
    """An archived image of an item of the user's feeds, by the address that `html` of the item has for it."""
    if not await caller.ask(may_see(caller.user_id, key)):
        raise _no_image()
    tag = version_tag(caller.user_id, key)
    if (same := unchanged(request, tag)) is not None:
        same.headers["Cache-Control"] = _IMAGE_CACHE_CONTROL
        return same
    found = await run_in_threadpool(image, caller.stores.objects, key)
    if found is None:
        raise _no_image()
    body, content_type = found
    headers = {"ETag": tag, "Cache-Control": _IMAGE_CACHE_CONTROL}
    if (given := disposition(content_type)) is not None:
        headers["Content-Disposition"] = given
    return Response(body, headers=headers, media_type=content_type)


def _no_image() -> ApiError:
    return ApiError("not_found", "Your feeds have no image of this key.")
