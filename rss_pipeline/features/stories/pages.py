"""A story as a page: its items in the user's feeds, why they stand together, what the user says of that."""

import re
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.pages.addresses import local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.features.stories import acts
from rss_pipeline.features.stories.person import story_of, with_added
from rss_pipeline.reader.accounts.preferences import SomePreferences, change_preferences
from rss_pipeline.reader.item_queries import Filter, ItemRow, Key, Page, items
from rss_pipeline.reader.query import Query, together

router = APIRouter(prefix="/stories", include_in_schema=False)

_NEAR = 20
"""Items before one, and after it, that may be of the same event."""
_ID = re.compile(r"[0-9a-f]{32}")
_SAID = {
    "apart": "It stands alone from now on, for you.",
    "together": "They are one story from now on, for you.",
    "undone": "What you said last is undone.",
}


@router.post("/switch")
async def switch(request: Request, caller: SignedIn) -> Response:
    """Show stories once, or each item by itself."""
    fields = await form_fields(request)
    changes = SomePreferences(stories=fields.get("on") == "yes")
    await caller.change(lambda own: change_preferences(own, changes))
    return see_other(local(fields.get("back")))


@router.get("/{id}")
async def show(request: Request, caller: SignedIn, id: str, said: str = "") -> Response:
    """The story of an item."""
    frame, undoable = await read_frame(caller, acts.can_undo(caller.user_id))
    members = await caller.run(lambda own: with_added(own, story_of(own, id)))
    if not members:
        raise _no_item()
    near = await caller.ask_long(_near(caller.user_id, members[0].arrived))
    ids = {each.id for each in members}
    return page(
        request,
        "stories/story.html",
        frame=frame,
        title="Story",
        members=members,
        near=[each for each in near if each.id not in ids],
        is_new=said != "undone",
        undoable=undoable is not None,
        said=_SAID.get(said),
    )


@router.post("/apart")
async def apart(request: Request, caller: SignedIn) -> Response:
    """Say "not the same" of an item."""
    item = (await form_fields(request)).get("item", "")
    if not await caller.change(lambda own: acts.apart(own, item)):
        raise _no_item()
    return see_other(f"/stories/{item}?said=apart")


@router.post("/together")
async def join(request: Request, caller: SignedIn) -> Response:
    """Say "the same" of two items; the other one by its id, or by the address of its page."""
    fields = await form_fields(request)
    item, other = fields.get("item", ""), _ID.search(fields.get("other", ""))
    if other is None or not await caller.change(lambda own: acts.together(own, item, other[0])):
        raise ApiError(
            "not_found",
            "Your feeds have no such other item, or both are one story already.",
            what_to_do="Open the other item, and copy its address from the browser: it ends with 32 letters"
            " and digits.",
        )
    return see_other(f"/stories/{item}?said=together")


@router.post("/lead")
async def lead(request: Request, caller: SignedIn) -> Response:
    """Let a feed lead the stories that it is in, or no longer."""
    fields = await form_fields(request)
    leads = "leads" in fields
    feed = fields.get("leads" if leads else "follows", "")
    if not await caller.change(lambda own: acts.lead(own, feed, leads=leads)):
        raise ApiError("not_found", "You have no such feed.")
    return see_other(local(fields.get("back")))


@router.post("/undo")
async def undo(caller: SignedIn) -> Response:
    """Take back what was said last."""
    item = await caller.change(acts.undo)
    if item is None:
        raise ApiError("not_found", "There is nothing to undo.")
    return see_other(f"/stories/{item}?said=undone")


def _near(user_id: str, number: int) -> Query[Sequence[ItemRow]]:
    """The items of the user that came in before and after one, the newest first."""
    before = Page(limit=_NEAR, after=Key.of_number(number))
    after = replace(before, newest_first=False)
    return together(items(user_id, Filter(), before), items(user_id, Filter(), after)).then(
        lambda found: [*reversed(found[1].items), *found[0].items]
    )


def _no_item() -> ApiError:
    return ApiError(
        "not_found",
        "Your feeds have no such item.",
        what_to_do="Old items are removed after some time; starred ones stay.",
    )
