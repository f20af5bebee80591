"""Logging in and out, by the account's own password."""

from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import device_cookie, log_in, log_out, new_device, set_cookies
from rss_pipeline.api.openapi import PUBLIC
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import Line
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.login import LoggedIn, LoginRefused, renew
from rss_pipeline.reader.accounts.passwords import MOST_CHARACTERS

router = api_router("login", "/auth")


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
    # A program without cookies is known by its address alone.
    device = device_cookie(request.scope) or (new_device() if given.cookie else None)
    found = await log_in(request, name=given.name, password=given.password.get_secret_value(), device=device)
    if isinstance(found, LoginRefused):
        if found.retry_after is None:
            raise ApiError("login_refused", "The name or the password is wrong.")
        raise ApiError("too_many_requests", "Too many logins have failed.", retry_after=found.retry_after)
    if given.cookie and device is not None:
        set_cookies(response, request.scope, found, device)
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
    response = Response(status_code=204)
    if not await log_out(request, response):
        raise NoSession
    return response


def _token(found: LoggedIn) -> Token:
    return Token(token=found.token, expires_at=instant(found.expires_at), renewal=found.renewal)
