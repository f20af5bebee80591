"""Search in the items of the user's feeds."""

from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.fields import NeverNull
from rss_pipeline.api.item_json import EXAMPLE, ItemHead, head_json
from rss_pipeline.api.problems import documented
from rss_pipeline.api.routers.answered import NOT_CHANGED
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.sanitize.text import title_line
from rss_pipeline.features.search.search import KEY_PATTERN, Found
from rss_pipeline.features.search.searching import searched

router = api_router("search")

MOST = 200
_ANSWERS = NOT_CHANGED | documented(
    "not_signed_in", "foreign_origin", "invalid_request", "search_unavailable"
)
_MOST_TITLE_CHARACTERS = 500

_EXAMPLE = {name: value for name, value in EXAMPLE.items() if name != "html"} | {
    "title_html": "<mark>Water</mark> on the moon",
    "snippet_html": "Frozen, but <mark>water</mark>.",
}


class FoundItem(ItemHead):
    """An item that was found."""

    title_html: str = Field(description="The title as HTML, escaped, with the hits in `<mark>`.")
    snippet_html: str = Field(description="A part of the content around the hits, likewise.")


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
) -> Response:
    """Search title, author and content of the items of your feeds. What came in is found within a minute."""
    results = await searched(caller, q, order=order, limit=limit, key=cursor)
    return json_answer(
        request,
        {
            "items": [*map(_found_json, results.found)],
            "next_cursor": results.next_key,
            "left_out": results.left_out,
        },
    )


def _found_json(found: Found) -> dict[str, Any]:
    title = title_line(found.item.title, limit=_MOST_TITLE_CHARACTERS)
    return {
        **head_json(found.item, title, found.item.files),
        "title_html": found.title_html,
        "snippet_html": found.snippet_html,
    }
