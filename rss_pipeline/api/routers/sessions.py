"""The user's sessions: where the account is logged in, and an end to them."""

from pydantic import BaseModel, Field
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.routing import api_router
from rss_pipeline.reader.accounts import login
from rss_pipeline.reader.accounts.users import open_sessions

router = api_router("sessions", "/user/sessions")


class Session(BaseModel):
    """A session that has not ended."""

    id: str
    kind: str = Field(description="`login`, or `google_reader` of an app.")
    app_password: str | None = Field(description="The name of the app password it began with.")
    client: str = Field(description="The User-Agent at its login.")
    created_at: str
    last_used_at: str = Field(description="Within ten minutes.")
    is_current: bool = Field(description="True for the session of this request.")


class Sessions(BaseModel):
    sessions: list[Session] = Field(description="The last used first.")


@router.get("", response_model=Sessions, responses=documented("not_signed_in", "foreign_origin"))
async def list_sessions(caller: SignedIn) -> Sessions:
    """The sessions of the account."""
    found = await caller.ask(open_sessions(caller.user_id, now=caller.clock()))
    return Sessions(
        sessions=[Session(**each._asdict(), is_current=each.id == caller.key.session_id) for each in found]
    )


@router.delete("", status_code=204, responses=documented("not_signed_in", "foreign_origin"))
async def end_other_sessions(caller: SignedIn) -> Response:
    """End every session but that of this request.

    Apps log in again by themselves: revoke their app passwords, too.
    """
    await caller.change(login.end_other_sessions)
    return Response(status_code=204)


@router.delete("/{id}", status_code=204, responses=documented("not_signed_in", "foreign_origin", "not_found"))
async def end_session(caller: SignedIn, id: str) -> Response:
    """End one session."""
    if not await caller.change(lambda one: login.end_session(one, id)):
        raise ApiError("not_found", "You have no session of this id.")
    return Response(status_code=204)
