"""App passwords: one for each app that speaks the Google Reader API."""

from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn, confirm_password
from rss_pipeline.api.problems import ApiError, documented
from rss_pipeline.api.request_values import Line
from rss_pipeline.api.routing import api_router
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import AppPasswordRefused
from rss_pipeline.reader.accounts import app_passwords
from rss_pipeline.reader.accounts.passwords import MOST_CHARACTERS

router = api_router("app passwords", "/user/app-passwords")


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


@router.get("", response_model=AppPasswords, responses=documented("not_signed_in", "foreign_origin"))
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


@router.post(
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


@router.delete("/{id}", status_code=204, responses=documented("not_signed_in", "foreign_origin", "not_found"))
async def revoke_app_password(caller: SignedIn, id: str) -> Response:
    """Revoke an app password: the app that has it is logged out at once."""
    if not await caller.change(lambda one: app_passwords.revoke(one, id)):
        raise ApiError("not_found", "You have no app password of this id.")
    return Response(status_code=204)
