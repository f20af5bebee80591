"""A search for a caller: the JSON API's and the page's way to it."""

import asyncio
import logging
import time

from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.stores import Stores
from rss_pipeline.errors import SearchUnavailable
from rss_pipeline.features.search.query import parse
from rss_pipeline.features.search.search import Order, Results, Search
from rss_pipeline.reader.accounts.callers import Caller

_RETRY_SECONDS = 20
_LOOK_SECONDS = 0.1

_logger = logging.getLogger(__name__)


async def searched(
    caller: AsyncCaller, text: str, *, order: Order = "date", limit: int = 50, key: str | None = None
) -> Results:
    """A page of what a text finds; ApiError where there is no index to search in."""
    query = parse(text, today=caller.clock().date())

    def search(one: Caller) -> Results:
        return Search(
            open_index=caller.stores.search.one,
            read=one.read,
            user_id=one.user_id,
            query=query,
            order=order,
            limit=limit,
            key=key,
        ).results()

    try:
        await _first_index(caller.stores)
        return await caller.run(search)
    except SearchUnavailable as error:
        # It names files and versions of what is installed.
        _logger.info("search: %s", error)
        detail = "The index cannot be read, or does not exist yet."
        raise ApiError("search_unavailable", detail, retry_after=_RETRY_SECONDS) from error


async def _first_index(stores: Stores) -> None:
    """Wait, without a thread, while a reader that has just started has no index yet."""
    if time.monotonic() >= stores.first_index_until or stores.waiting.locked():
        return
    async with stores.waiting:
        while time.monotonic() < stores.first_index_until and not _is_there(stores):
            await asyncio.sleep(_LOOK_SECONDS)


def _is_there(stores: Stores) -> bool:
    # Not by its file: that is there before its tables are, and after an upgrade it is of another format.
    try:
        with stores.search.one():
            return True
    except SearchUnavailable:
        return False
