"""The page to log in, and the way out."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import device_cookie, log_in, log_out, set_cookies
from rss_pipeline.api.pages.addresses import local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.reader.accounts.devices import Device
from rss_pipeline.reader.accounts.login import LoginRefused
from rss_pipeline.reader.accounts.passwords import MOST_CHARACTERS
from rss_pipeline.reader.first_user import has_users

router = APIRouter(include_in_schema=False)

_MOST_NAME_CHARACTERS = 200


@router.get("/login")
async def form(request: Request, next: str = "") -> Response:
    """The form; while there is no user, the way to make one."""
    if not await run_in_threadpool(has_users, request.app.state.stores.database):
        return see_other("/first-user")
    return _form(request, next=next)


@router.post("/login")
async def login(request: Request) -> Response:
    """Begin a session that the browser keeps as a cookie."""
    fields = await form_fields(request)
    name, password, next = (fields.get(each, "") for each in ("name", "password", "next"))
    if not next.isascii():
        # Ours are escaped.
        raise ApiError("invalid_request", "The address to go to is not ASCII.")
    if not name or not password or len(name) > _MOST_NAME_CHARACTERS or len(password) > MOST_CHARACTERS:
        return _form(request, next=next, name=name, error="Type your name and your password.", status=422)
    answer = see_other(local(next))
    refused = await begin_session(request, answer, name=name, password=password)
    if refused is None:
        return answer
    if refused.retry_after is None:
        error = "The name or the password is wrong."
        return _form(request, next=next, name=name, error=error, status=401)
    error = f"Too many logins have failed. Try again in {refused.retry_after} seconds."
    return _form(request, next=next, name=name, error=error, retry_after=refused.retry_after)


@router.post("/logout")
async def logout(request: Request) -> Response:
    """End the session of this browser. One that has ended already is forgotten all the same."""
    answer = see_other("/login")
    await log_out(request, answer)
    return answer


async def begin_session(
    request: Request, answer: Response, *, name: str, password: str
) -> LoginRefused | None:
    """Log in, and give the browser the session's cookie with this answer; None if that was done."""
    device = device_cookie(request.scope) or Device.new()
    found = await log_in(request, name=name, password=password, device=device)
    if isinstance(found, LoginRefused):
        return found
    set_cookies(answer, request.scope, found)
    return None


def _form(
    request: Request,
    *,
    next: str,
    name: str = "",
    error: str | None = None,
    status: int = 200,
    retry_after: int | None = None,
) -> Response:
    shown = name[:_MOST_NAME_CHARACTERS]
    return page(
        request,
        "login.html",
        title="Log in",
        status=status,
        next=local(next),
        user_name=shown,
        error=error,
        retry_after=retry_after,
    )
