"""The user's preferences: how the reader shows things."""

from fastapi import Request
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.problems import documented
from rss_pipeline.api.routing import api_router
from rss_pipeline.reader.accounts.preferences import (
    Preferences,
    SomePreferences,
    change_preferences,
    own_preferences,
    write_preferences,
)

router = api_router("preferences", "/user/preferences")

_WRITES = documented("malformed_request", "not_signed_in", "foreign_origin")


@router.get("", response_model=Preferences, responses=documented("not_signed_in", "foreign_origin"))
async def preferences(request: Request, caller: SignedIn) -> Response:
    """Every preference, with its default where the user has set none."""
    found = await caller.ask(own_preferences(caller.user_id))
    return json_answer(request, found.model_dump(mode="json"))


@router.put("", response_model=Preferences, responses=_WRITES)
async def put_preferences(caller: SignedIn, given: Preferences) -> Preferences:
    """Replace all preferences; one that is left out has its default again."""
    await caller.change(lambda one: write_preferences(one, given))
    return given


@router.patch("", response_model=Preferences, responses=_WRITES)
async def patch_preferences(caller: SignedIn, given: SomePreferences) -> Preferences:
    """Set the preferences that are given; the others stay as they are."""
    return await caller.change(lambda one: change_preferences(one, given))
