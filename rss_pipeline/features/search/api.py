"""Search in the items of the user's feeds."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.item_json import EXAMPLE, ItemHead, head_json
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import NeverNull
from rss_pipeline.api.routers.answered import NOT_CHANGED
from rss_pipeline.api.routing import api_router
from rss_pipeline.api.user_places import RETRY_SECONDS, UserFull, UserPlaces
from rss_pipeline.collector.sanitize.text import title_line
from rss_pipeline.features.search.index_file import (
    IndexBroken,
    IndexFile,
    SearchUnavailable,
    index_path,
    open_to_read,
    throw_away,
)
from rss_pipeline.features.search.search_query import parse
from rss_pipeline.features.search.service import KEY_PATTERN, Order, Results, Search, SearchHit
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.settings import Settings

router = api_router("search")

MOST = 200
_ANSWERS = NOT_CHANGED | documented(
    "not_signed_in", "foreign_origin", "invalid_request", "too_many_requests", "search_unavailable"
)
_MOST_TITLE_CHARACTERS = 500

_EXAMPLE = {name: value for name, value in EXAMPLE.items() if name != "html"} | {
    "title_html": "<mark>Water</mark> on the moon",
    "snippet_html": "Frozen, but <mark>water</mark>.",
    "others": [],
}


class FoundItem(ItemHead):
    """An item that was found."""

    title_html: str = Field(description="The title as HTML, escaped, with the hits in `<mark>`.")
    snippet_html: str = Field(description="A part of the content around the hits, likewise.")
    others: list["FoundItem"] = Field(
        description="With `stories`, what else is found of its story; empty for the items in here."
    )


class FoundItems(BaseModel):
    """A page of found items."""

    items: list[FoundItem]
    next_cursor: str | None = Field(description="For the next page; null where this is the last one.")
    left_out: list[str] = Field(
        description="A sentence for each part of the query that was not used. No query is an error."
    )

    model_config = {
        "json_schema_extra": {"example": {"items": [_EXAMPLE], "next_cursor": None, "left_out": []}}
    }


@router.get("/search", operation_id="search", response_model=FoundItems, responses=_ANSWERS)
async def search(
    request: Request,
    caller: SignedIn,
    q: Annotated[
        str,
        Query(
            description='Words, all of which an item has; "phrases"; -without; author:, feed:,'
            " after:2026-02-18, before:2026-03; whatever else is read as words."
        ),
    ] = "",
    order: Annotated[
        Literal["date", "rank"],
        Query(description="The newest arrivals first, or the best among the newest 1,000."),
    ] = "date",
    limit: Annotated[int, Query(ge=1, le=MOST, description="Items of a page.")] = 50,
    cursor: Annotated[
        str | None,
        NeverNull(),
        Query(
            pattern=KEY_PATTERN,
            description="The `next_cursor` of the page before, of the same query and order.",
        ),
    ] = None,
    stories: Annotated[
        bool, Query(description="Give a story once, by the first of its items that are found.")
    ] = False,
) -> Response:
    """Search title, author and content of the items of your feeds. What came in is found within a minute."""
    results = await searched(caller, q, order=order, limit=limit, key=cursor, by_story=stories)
    return json_answer(
        request,
        {
            "items": [*map(_found_json, results.found)],
            "next_cursor": results.next_key,
            "left_out": results.left_out,
        },
    )


def _found_json(found: SearchHit) -> dict[str, Any]:
    title = title_line(found.item.title, limit=_MOST_TITLE_CHARACTERS)
    return {
        **head_json(found.item, title, found.item.files),
        "title_html": found.title_html,
        "snippet_html": found.snippet_html,
        "others": [*map(_found_json, found.others)],
    }


# A search for a caller: the JSON API's and the page's way to it.

FIRST_INDEX_SECONDS = 10.0
"""Time from the start in which a search waits for the first index. It is made in some seconds."""
_WAITING = 4
"""Searches that wait for it; each keeps one of the places of all requests."""
_RETRY_SECONDS = 20
_LOOK_SECONDS = 0.1

_logger = logging.getLogger(__name__)


class IndexReaders:
    """The index at `path`, opened for the threads of the reader when it is needed; one that was deleted and
    made again is noticed."""

    def __init__(self, path: Path, *, first_until: float = 0.0, database: Path | None = None) -> None:
        """`first_until`: the time (time.monotonic) until which a search waits for the first index. `database`
        is the file of an embedded one."""
        self._path = path
        self._database = database
        self._first_until = first_until
        self._waiting = asyncio.Semaphore(_WAITING)
        self.searches = UserPlaces()
        """The searches that are running, or wait for the first index."""
        self._idle: list[IndexFile] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[IndexFile]:
        """A connection for this thread alone, until the end of the block.

        Raises:
            SearchUnavailable: there is no index yet, it is broken, or this SQLite has no FTS5.
        """
        file = self._take()
        try:
            yield file
        except IndexBroken:
            file.close()
            self._have_built()
            raise
        except BaseException:
            file.close()
            raise
        with self._lock:
            self._idle.append(file)

    async def wait_for_first(self) -> None:
        """Wait, without a thread, while a reader that has just started has no index yet."""
        if time.monotonic() >= self._first_until or self._waiting.locked():
            return
        async with self._waiting:
            while time.monotonic() < self._first_until and not self._is_there():
                await asyncio.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Close those that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for file in idle:
            file.close()

    def _take(self) -> IndexFile:
        while True:
            with self._lock:
                file = self._idle.pop() if self._idle else None
            if file is None:
                try:
                    return open_to_read(self._path)
                except IndexBroken:
                    self._have_built()
                    raise
            if file.is_current():
                return file
            file.close()

    def _have_built(self) -> None:
        """Delete the file. It is built by whoever looks at the time of the database's."""
        with suppress(OSError):
            throw_away(self._path)
            if self._database is not None:
                os.utime(self._database)

    def _is_there(self) -> bool:
        # Not by its file: that is there before its tables are, and after an upgrade it is of another format.
        try:
            with self.one():
                return True
        except SearchUnavailable:
            return False


@contextmanager
def index_readers(settings: Settings, is_starting: bool) -> Iterator[IndexReaders]:
    """The index for the life of the reader's process."""
    until = time.monotonic() + FIRST_INDEX_SECONDS if is_starting else 0.0
    with closing(
        IndexReaders(index_path(settings), first_until=until, database=settings.database.file)
    ) as readers:
        yield readers


async def searched(
    caller: AsyncCaller,
    text: str,
    *,
    order: Order = "date",
    limit: int = 50,
    key: str | None = None,
    by_story: bool = False,
) -> Results:
    """A page of what a text finds; ApiError where there is no index to search in, and for a third search of
    the same user at once."""
    query = parse(text, today=caller.clock().date())
    index = caller.stores.of(IndexReaders)

    def search(one: Caller) -> Results:
        return Search(
            open_index=index.one,
            read=one.read,
            user_id=one.user_id,
            query=query,
            order=order,
            limit=limit,
            key=key,
            by_story=by_story,
        ).results()

    try:
        with index.searches.one(caller.user_id):
            await index.wait_for_first()
            return await caller.run(search)
    except UserFull:
        raise ApiError(
            "too_many_requests", "Two of your searches are still running.", retry_after=RETRY_SECONDS
        ) from None
    except SearchUnavailable as error:
        # It names files and versions of what is installed.
        _logger.info("search: %s", error)
        detail = "The index cannot be read, or does not exist yet."
        raise ApiError("search_unavailable", detail, retry_after=_RETRY_SECONDS) from error
