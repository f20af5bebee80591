"""A search for a caller: the JSON API's and the page's way to it."""

import logging

from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.problems import ApiError
from rss_pipeline.errors import SearchUnavailable
from rss_pipeline.pipeline.accounts.callers import Caller
from rss_pipeline.pipeline.search.query import parse
from rss_pipeline.pipeline.search.search import Order, Results, Search

_RETRY_SECONDS = 20

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
        return await caller.run(search)
    except SearchUnavailable as error:
        # It names files and versions of what is installed.
        _logger.info("search: %s", error)
        detail = "The index cannot be read, or does not exist yet."
        raise ApiError("search_unavailable", detail, retry_after=_RETRY_SECONDS) from error
