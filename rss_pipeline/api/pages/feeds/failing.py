"""The feeds of a user that fail: since when, why, what to do, and the next visit."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.feeds.feed_edit import partition_url
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page
from rss_pipeline.reader.accounts.users import is_owner
from rss_pipeline.reader.failures import failing_feeds
from rss_pipeline.reader.feeds import visits, with_visits

router = APIRouter(include_in_schema=False)

_MOST_SHOWN = 200


@router.get("/failing")
async def failing(request: Request, caller: SignedIn) -> Response:
    """Feeds with a failed last visit, and those that are not visited at all."""
    frame, owns = await read_frame(caller, is_owner(caller.user_id))
    failing = [feed for feed in frame.feeds if feed.last_visit_failed]
    visited = with_visits(failing, await caller.ask(visits([feed.feed_id for feed in failing])))
    found = failing_feeds(visited)
    failures = found[:_MOST_SHOWN]
    settings, scope = caller.stores.settings, request.scope
    partitions = {each.feed_id: partition_url(settings, scope, each.feed_id) for each in failures}
    return page(
        request,
        "failing.html",
        frame=frame,
        title="Feeds that fail",
        failures=failures,
        more=len(found) - len(failures),
        off=[feed for feed in frame.feeds if not feed.is_collected],
        partitions=partitions if owns else {},
        is_owner=owns,
    )
