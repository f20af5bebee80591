"""Items that a page shows already, for its script: their marks, and their lines once more.

Others mark items too: apps, other windows, the page of an item that somebody comes back from.
"""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.frame import items_of_all
from rss_pipeline.api.pages.reading.lists import entries_of
from rss_pipeline.api.pages.reading.views import view_at
from rss_pipeline.api.pages.render import page
from rss_pipeline.reader.accounts.preferences import own_preferences, state_version
from rss_pipeline.reader.feeds import star_count, unread_counts
from rss_pipeline.reader.items import marks, named_items_with_texts
from rss_pipeline.reader.query import together

router = APIRouter(include_in_schema=False)

MOST_IDS = 100
"""Their address has 3,300 characters, which every proxy takes."""
Ids = Annotated[str, Query(pattern=rf"^(?:[0-9a-f]{{32}}(?:,[0-9a-f]{{32}}){{0,{MOST_IDS - 1}}})?$")]


@router.get("/state")
async def state(caller: SignedIn, ids: Ids = "") -> Response:
    """All counts of the user, and the marks of these items."""
    own, counts, stars, marked = await caller.ask_long(
        together(
            state_version(caller.user_id),
            unread_counts(caller.user_id),
            star_count(caller.user_id),
            marks(caller.user_id, _listed(ids)),
        )
    )
    version = max((each.newest for each in counts), default=0)
    found: dict[str, Any] = {
        "state": own,
        "version": version,
        "unread": {each.feed_id: each.unread for each in counts if each.unread},
        "starred": stars,
        "all": await items_of_all(caller, sorted(each.feed_id for each in counts), version),
        "items": {each.id: [bool(each.read), bool(each.starred)] for each in marked},
    }
    headers = {"Cache-Control": "private, no-store"}
    return Response(orjson.dumps(found), headers=headers, media_type="application/json")


@router.get("/entries")
async def entries(
    request: Request, caller: SignedIn, ids: Ids = "", source: Annotated[str, Query(alias="from")] = ""
) -> Response:
    """The lines of these items in a list, in this order; those that are gone are left out."""
    preferences, (found, texts) = await caller.ask_long(
        together(own_preferences(caller.user_id), named_items_with_texts(caller.user_id, _listed(ids)))
    )
    rows = {row.id: row for row in found}

    def shown() -> Response:
        listed = [rows[id] for id in _listed(ids) if id in rows]
        has_words = preferences.density == "comfortable"
        return page(
            request,
            "entries.html",
            title="",
            view=view_at(source),
            entries=entries_of(listed, texts, has_words=has_words),
        )

    return await run_in_threadpool(shown)


def _listed(ids: str) -> list[str]:
    return ids.split(",") if ids else []
