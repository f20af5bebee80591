"""The page of sessions: where the account is logged in, an end to it, and another password."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn, note_refusal
from rss_pipeline.api.pages.forms import form_fields, sentence
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.errors import HashingBusy, PasswordRefused
from rss_pipeline.reader.accounts.login import change_own_password, end_other_sessions, end_session
from rss_pipeline.reader.accounts.passwords import LEAST_CHARACTERS, MOST_CHARACTERS
from rss_pipeline.reader.accounts.users import open_sessions, user_name
from rss_pipeline.reader.query import together

router = APIRouter(prefix="/settings", include_in_schema=False)

PATH = "/settings/sessions"
_DONE = {
    "ended": "The session has ended.",
    "others": "All other sessions have ended.",
    "password": "The password is changed, and all other sessions have ended.",
}
_BUSY_SECONDS = 2


@router.get("/sessions")
async def show(request: Request, caller: SignedIn, done: str = "") -> Response:
    """The sessions that have not ended, the last used first."""
    return await _page(request, caller, done=_DONE.get(done))


@router.post("/sessions/{id}/end")
async def end(caller: SignedIn, id: str) -> Response:
    """End one session; the one of this browser, too."""
    if not await caller.change(lambda own: end_session(own, id)):
        raise ApiError("not_found", "You have no such session, or no longer.")
    return see_other("/login" if id == caller.key.session_id else f"{PATH}?done=ended")


@router.post("/sessions/end-others")
async def end_others(caller: SignedIn) -> Response:
    """End every session but that of this browser."""
    await caller.change(end_other_sessions)
    return see_other(f"{PATH}?done=others")


@router.post("/password")
async def change_password(request: Request, caller: SignedIn) -> Response:
    """Give the account another password."""
    fields = await form_fields(request)
    current, new = fields.get("current", ""), fields.get("new", "")
    if new != fields.get("again", ""):
        return await _page(request, caller, error="The two new passwords are not the same. Type them again.")
    try:
        refused = await caller.change(
            lambda own: change_own_password(
                own,
                current=current,
                new=new,
                revoke_apps="revoke_apps" in fields,
            )
        )
    except PasswordRefused as short:
        return await _page(request, caller, error=sentence(short))
    except HashingBusy as busy:
        raise ApiError("too_busy", sentence(busy), retry_after=_BUSY_SECONDS) from busy
    if refused is None:
        return see_other(f"{PATH}?done=password")
    note_refusal(request.scope)
    error = "The current password is wrong."
    if refused.retry_after is not None:
        error = f"Too many wrong passwords. Try again in {refused.retry_after} seconds."
    return await _page(request, caller, error=error, retry_after=refused.retry_after)


async def _page(
    request: Request,
    caller: AsyncCaller,
    *,
    done: str | None = None,
    error: str | None = None,
    retry_after: int | None = None,
) -> Response:
    frame, (listed, name) = await read_frame(
        caller, together(open_sessions(caller.user_id, now=caller.clock()), user_name(caller.user_id))
    )
    found = [
        {
            **each._asdict(),
            "device": device(each.client),
            "is_current": each.id == caller.key.session_id,
            "created_at": from_instant(each.created_at),
            "last_used_at": from_instant(each.last_used_at),
        }
        for each in listed
    ]
    return page(
        request,
        "sessions.html",
        frame=frame,
        title="Sessions and password",
        status=422 if error else 200,
        retry_after=retry_after,
        sessions=found,
        user_name=name,
        done=done,
        error=error,
        least=LEAST_CHARACTERS,
        most=MOST_CHARACTERS,
    )


_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Vivaldi", "Vivaldi"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""The first that a User-Agent has: browsers name those that they are like as well."""
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def device(client: str) -> str:
    """A User-Agent in two words ("Firefox on Linux"), if they can be found in it; else its beginning."""
    browser = next((name for mark, name in _BROWSERS if mark in client), None)
    system = next((name for mark, name in _SYSTEMS if mark in client), None)
    if browser is None:
        return client.partition(" ")[0][:60] or "an unknown program"
    return browser if system is None else f"{browser} on {system}"
