"""The user's account: preferences; logging in and out; sessions; app passwords, one for each app."""

from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import (
    SignedIn,
    confirm_password,
    device_cookie,
    log_in,
    log_out,
    set_cookies,
)
from rss_pipeline.api.conditional import json_answer
from rss_pipeline.api.openapi import PUBLIC
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import Line
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import AppPasswordRefused, NoSession
from rss_pipeline.reader.accounts import app_passwords
from rss_pipeline.reader.accounts import login as logins
from rss_pipeline.reader.accounts.devices import Device
from rss_pipeline.reader.accounts.login import LoggedIn, LoginRefused, renew
from rss_pipeline.reader.accounts.passwords import MOST_CHARACTERS
from rss_pipeline.reader.accounts.preferences import (
    Preferences,
    SomePreferences,
    change_preferences,
    own_preferences,
)
from rss_pipeline.reader.accounts.users import open_sessions

_preferences = api_router("preferences", "/user/preferences")

_READS = documented("not_signed_in", "foreign_origin")
_NAMED = documented("not_signed_in", "foreign_origin", "not_found")
_WRITES = documented("malformed_request", "not_signed_in", "foreign_origin")


@_preferences.get("", response_model=Preferences, responses=_READS)
async def preferences(request: Request, caller: SignedIn) -> Response:
    """Every preference, with its default where the user has set none."""
    found = await caller.ask(own_preferences(caller.user_id))
    return json_answer(request, found.model_dump(mode="json"))


@_preferences.put("", response_model=Preferences, responses=_WRITES)
async def put_preferences(caller: SignedIn, given: SomePreferences) -> Preferences:
    """As PATCH: a program that knows some preferences must not reset the others."""
    return await caller.change(lambda one: change_preferences(one, given))


@_preferences.patch("", response_model=Preferences, responses=_WRITES)
async def patch_preferences(caller: SignedIn, given: SomePreferences) -> Preferences:
    """Set the preferences that are given; the others stay as they are."""
    return await caller.change(lambda one: change_preferences(one, given))


_login = api_router("login", "/auth")


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


@_login.post(
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
    device = device_cookie(request.scope) or (Device.new() if given.cookie else None)
    found = await log_in(request, name=given.name, password=given.password.get_secret_value(), device=device)
    if isinstance(found, LoginRefused):
        if found.retry_after is None:
            raise ApiError("login_refused", "The name or the password is wrong.")
        raise ApiError("too_many_requests", "Too many logins have failed.", retry_after=found.retry_after)
    if given.cookie:
        set_cookies(response, request.scope, found)
        return Token(token=None, expires_at=None, renewal=None)
    return _token(found)


@_login.post(
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


@_login.post("/logout", status_code=204, responses=_READS)
async def logout(request: Request) -> Response:
    """End the session of this request: its token, its renewal and its cookie open nothing from now on."""
    response = Response(status_code=204)
    if not await log_out(request, response):
        raise NoSession
    return response


def _token(found: LoggedIn) -> Token:
    return Token(token=found.token, expires_at=instant(found.expires_at), renewal=found.renewal)


_sessions = api_router("sessions", "/user/sessions")


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


@_sessions.get("", response_model=Sessions, responses=_READS)
async def list_sessions(caller: SignedIn) -> Sessions:
    """The sessions of the account."""
    found = await caller.ask(open_sessions(caller.user_id, now=caller.clock()))
    return Sessions(
        sessions=[Session(**each._asdict(), is_current=each.id == caller.key.session_id) for each in found]
    )


@_sessions.delete("", status_code=204, responses=_READS)
async def end_other_sessions(caller: SignedIn) -> Response:
    """End every session but that of this request.

    Apps log in again by themselves: revoke their app passwords, too.
    """
    await caller.change(logins.end_other_sessions)
    return Response(status_code=204)


@_sessions.delete("/{id}", status_code=204, responses=_NAMED)
async def end_session(caller: SignedIn, id: str) -> Response:
    """End one session."""
    if not await caller.change(lambda one: logins.end_session(one, id)):
        raise ApiError("not_found", "You have no session of this id.")
    return Response(status_code=204)


_app_passwords = api_router("app passwords", "/user/app-passwords")


class AppPassword(BaseModel):
    """An app password, without its secret."""

    id: str
    name: str
    created_at: str
    last_used_at: str | None


class AppPasswords(BaseModel):
    app_passwords: list[AppPassword] = Field(description="By name.")


class NewName(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[Line, Field(min_length=1, max_length=64, description="For people: the app, the phone.")]
    password: Annotated[
        SecretStr,
        Field(max_length=MOST_CHARACTERS, description="The user's own, again."),
    ]


class NewAppPassword(BaseModel):
    """An app password with its secret."""

    id: str
    name: str
    password: str = Field(description="To type into the app. It is shown this once and stored nowhere.")


@_app_passwords.get("", response_model=AppPasswords, responses=_READS)
async def list_app_passwords(caller: SignedIn) -> AppPasswords:
    """The user's app passwords, each with its last use."""
    return AppPasswords(
        app_passwords=[
            AppPassword(
                id=each.id,
                name=each.name,
                created_at=instant(each.created_at),
                last_used_at=None if each.last_used_at is None else instant(each.last_used_at),
            )
            for each in await caller.ask(app_passwords.listed(caller.user_id))
        ]
    )


@_app_passwords.post(
    "",
    status_code=201,
    response_model=NewAppPassword,
    responses=documented(
        "malformed_request",
        "not_signed_in",
        "foreign_origin",
        "login_refused",
        "conflict",
        "too_many_requests",
    ),
)
async def add_app_password(request: Request, caller: SignedIn, given: NewName) -> NewAppPassword:
    """Add an app password. It opens the Google Reader API only. Wrong passwords count as at a login."""
    refused = await confirm_password(request, caller, given.password.get_secret_value())
    if refused is not None:
        if refused.retry_after is None:
            raise ApiError("login_refused", "The password is wrong.")
        raise ApiError("too_many_requests", "Too many passwords were wrong.", retry_after=refused.retry_after)
    try:
        new = await caller.change(lambda one: app_passwords.create(one, given.name))
    except AppPasswordRefused as error:
        raise ApiError("conflict", f"This app password cannot be added: {error}.") from error
    return NewAppPassword(id=new.id, name=new.name, password=new.secret)


@_app_passwords.delete("/{id}", status_code=204, responses=_NAMED)
async def revoke_app_password(caller: SignedIn, id: str) -> Response:
    """Revoke an app password: the app that has it is logged out at once."""
    if not await caller.change(lambda one: app_passwords.revoke(one, id)):
        raise ApiError("not_found", "You have no app password of this id.")
    return Response(status_code=204)


ROUTERS: tuple[APIRouter, ...] = (_preferences, _login, _sessions, _app_passwords)
