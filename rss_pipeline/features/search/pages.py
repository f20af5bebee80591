"""Search as a page: the box, what was found with the hits marked, and how to search."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.addresses import with_query
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.user_places import RETRY_SECONDS
from rss_pipeline.features.search.api import searched
from rss_pipeline.features.search.search_query import MOST_CHARACTERS
from rss_pipeline.features.search.service import KEY_PATTERN, Order, Results, SearchHit

router = APIRouter(include_in_schema=False)

_PATH = "/search"


@router.get(_PATH)
async def search(
    request: Request,
    caller: SignedIn,
    q: str = "",
    order: Order = "date",
    after: Annotated[str | None, Query(pattern=KEY_PATTERN)] = None,
) -> Response:
    """The items that a text finds; without a text, instructions."""
    frame, _ = await read_frame(caller)
    limit = frame.preferences.entries_per_page
    missing, retry_after = None, None
    try:
        results = Results()
        if q.strip():
            folds = frame.preferences.stories
            results = await searched(caller, q, order=order, limit=limit, key=after, by_story=folds)
    except ApiError as error:
        if error.problem["kind"] == "too_many_requests":
            retry_after = RETRY_SECONDS
        elif error.problem["kind"] != "search_unavailable":
            raise
        when = "in a minute" if retry_after is None else f"in {retry_after} seconds"
        results, missing = Results(), f"{error.problem['detail']} Try again {when}."
    text = q[:MOST_CHARACTERS]

    def address(**query: str) -> str:
        return with_query(_PATH, {"q": text, **query})

    return await run_in_threadpool(
        page,
        request,
        "search/search.html",
        frame=frame,
        title=f"{text[:60]} - Search" if text.strip() else "Search",
        text=text,
        order=order,
        found=[*map(_entry, results.found)],
        left_out=results.left_out,
        missing=missing,
        retry_after=retry_after,
        is_first=after is None,
        by_date=address(),
        by_rank=address(order="rank"),
        more=None if results.next_key is None else address(order=order, after=results.next_key),
    )


def _entry(found: SearchHit) -> dict[str, Any]:
    all_of_it = (found, *found.others)
    return {
        "item": found.item,
        "title": Markup(found.title_html),
        "words": Markup(found.snippet_html),
        "others": [{"item": each.item, "title": Markup(each.title_html)} for each in found.others],
        "is_read": all(each.item.is_read for each in all_of_it),
        "listed": ",".join(
            each.item.id for each in all_of_it if each is found or each.item.arrived in found.read_with
        )
        if found.others
        else "",
    }
