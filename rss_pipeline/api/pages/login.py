"""The page to log in."""

import logging

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import set_cookie
from rss_pipeline.api.hosts import client_address, is_of_foreign_page
from rss_pipeline.api.pages.addresses import local
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.pipeline.accounts.login import LoginRefused, log_in
from rss_pipeline.pipeline.accounts.passwords import MOST_CHARACTERS

router = APIRouter(include_in_schema=False)

_MOST_NAME_CHARACTERS = 200

_logger = logging.getLogger(__name__)


@router.get("/login")
async def form(request: Request, next: str = "") -> Response:
    """The form."""
    return _form(request, next=next)


@router.post("/login")
async def login(request: Request) -> Response:
    """Begin a session that the browser keeps as a cookie."""
    scope, state = request.scope, request.app.state
    if is_of_foreign_page(scope):
        # It would log its reader in as somebody of its choice.
        raise ApiError("foreign_origin", "A page of another site sent this login.")
    fields = await form_fields(request)
    name, password, next = (fields.get(each, "") for each in ("name", "password", "next"))
    if not name or not password or len(name) > _MOST_NAME_CHARACTERS or len(password) > MOST_CHARACTERS:
        return _form(request, next=next, name=name, error="Type your name and your password.", status=422)
    address = client_address(scope)
    found = await run_in_threadpool(
        log_in,
        state.stores.database,
        state.stores.secret,
        name=name,
        password=password,
        address=address,
        client=request.headers.get("user-agent", ""),
        clock=state.clock,
    )
    if isinstance(found, LoginRefused):
        # For fail2ban and its like. The name is left out: people type their password into its field.
        _logger.warning("login refused: %s", address)
        if found.retry_after is None:
            error = "The name or the password is wrong."
            return _form(request, next=next, name=name, error=error, status=401)
        error = f"Too many logins have failed. Try again in {found.retry_after} seconds."
        refused = _form(request, next=next, name=name, error=error, status=429)
        refused.headers["Retry-After"] = str(found.retry_after)
        return refused
    answer = see_other(local(next))
    assert found.renewal is not None
    set_cookie(answer, scope, found.renewal)
    return answer


def _form(
    request: Request, *, next: str, name: str = "", error: str | None = None, status: int = 200
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
    )
