"""Logging in and out, by the account's own password."""

import logging
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import (
    check_page,
    clear_cookie,
    device_cookie,
    new_device,
    session_cookie,
    session_key,
    set_cookie,
    set_device_cookie,
)
from rss_pipeline.api.document import PUBLIC
from rss_pipeline.api.fields import Line
from rss_pipeline.api.hosts import client_address, is_of_foreign_page
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.login import LoggedIn, LoginRefused, log_in, log_out, renew
from rss_pipeline.reader.accounts.passwords import MOST_CHARACTERS

router = api_router("login", "/auth")

_logger = logging.getLogger(__name__)


class Login(BaseModel):
    """A name and a password."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Line, Field(max_length=200, description="The user's name.")]
    password: Annotated[SecretStr, Field(max_length=MOST_CHARACTERS)]
    cookie: bool = Field(
        default=False,
        strict=True,
        description="For pages of this server: the session is set as a cookie that no script can read, and"
        " no token is in the answer.",
    )


class Token(BaseModel):
    """A session's token, for the header `Authorization: Bearer ...`."""

    token: str | None = Field(description="A JWT; null with `cookie`.")
    expires_at: str | None = Field(description="When the token expires: half an hour from now.")
    renewal: str | None = Field(
        description="For `POST /api/auth/renew`, while the session lives: 30 days after its last use."
    )


class Renewal(BaseModel):
    """The `renewal` of a login's answer."""

    model_config = ConfigDict(extra="forbid")

    renewal: Annotated[SecretStr, Field(max_length=200)]


@router.post(
    "/login",
    response_model=Token,
    openapi_extra=PUBLIC,
    responses=documented("malformed_request", "login_refused", "foreign_origin", "too_many_requests"),
)
async def login(request: Request, response: Response, given: Login) -> Token:
    """Begin a session.

    A wrong name and a wrong password are answered alike. After several failures the answer is 429, with the
    seconds to wait in Retry-After.
    """
    scope, state = request.scope, request.app.state
    if is_of_foreign_page(scope):
        # It would log its reader in as somebody of its choice.
        raise ApiError("foreign_origin", "A page of another site sent this login.")
    address = client_address(scope)
    # A program without cookies is known by its address alone.
    device = device_cookie(scope) or (new_device() if given.cookie else None)
    found = await run_in_threadpool(
        log_in,
        state.stores.database,
        state.stores.secret,
        name=given.name,
        password=given.password.get_secret_value(),
        address=address,
        client=request.headers.get("user-agent", ""),
        clock=state.clock,
        device=device,
    )
    if isinstance(found, LoginRefused):
        # For fail2ban and its like. The name is left out: people type their password into its field.
        _logger.warning("login refused: %s", address)
        if found.retry_after is None:
            raise ApiError("login_refused", "The name or the password is wrong.")
        raise ApiError("too_many_requests", "Too many logins have failed.", retry_after=found.retry_after)
    _logger.info("login: %s from %s", found.user_id, address)
    if given.cookie and found.renewal is not None and device is not None:
        set_cookie(response, scope, found.renewal)
        set_device_cookie(response, scope, device)
        return Token(token=None, expires_at=None, renewal=None)
    return _token(found)


@router.post(
    "/renew",
    response_model=Token,
    openapi_extra=PUBLIC,
    responses=documented("malformed_request", "not_signed_in"),
)
async def renew_token(request: Request, given: Renewal) -> Token:
    """A new token for a session that is alive, without the password."""
    state = request.app.state
    return _token(
        await run_in_threadpool(
            renew,
            state.stores.database,
            state.stores.secret,
            renewal=given.renewal.get_secret_value(),
            clock=state.clock,
        )
    )


@router.post("/logout", status_code=204, responses=documented("not_signed_in", "foreign_origin"))
async def logout(request: Request) -> Response:
    """End the session of this request: its token, its renewal and its cookie open nothing from now on."""
    scope, state = request.scope, request.app.state
    has_cookie = session_cookie(scope) is not None
    response = Response(status_code=204)
    try:
        key = session_key(scope, state.stores.secret, now=state.clock())
    except NoSession:
        if not has_cookie:
            raise
        # Nothing opens with it, and the browser should forget it.
        check_page(scope)
    else:
        await run_in_threadpool(log_out, state.stores.database, key.session_id)
    if has_cookie:
        clear_cookie(response, scope)
    return response


def _token(found: LoggedIn) -> Token:
    return Token(token=found.token, expires_at=instant(found.expires_at), renewal=found.renewal)
