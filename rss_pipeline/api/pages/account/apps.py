"""The page of app passwords: one for each app, and how the app is set up."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn, confirm_password
from rss_pipeline.api.hosts import is_https, places
from rss_pipeline.api.pages.forms import form_fields, sentence
from rss_pipeline.api.pages.frame import read_frame
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.errors import AppPasswordRefused
from rss_pipeline.reader.accounts.app_passwords import NewAppPassword, create, listed, revoke
from rss_pipeline.reader.accounts.users import user_name
from rss_pipeline.reader.query import together
from rss_pipeline.web.authority import own_authorities, read_authority

router = APIRouter(prefix="/settings/apps", include_in_schema=False)

PATH = "/settings/apps"
_NAME_CHARACTERS = 64


@router.get("")
async def show(request: Request, caller: SignedIn, done: str = "") -> Response:
    """The app passwords, and the steps for apps."""
    return await _page(request, caller, is_revoked=done == "revoked")


@router.post("")
async def add(request: Request, caller: SignedIn) -> Response:
    """Add an app password and show it. It is in this answer and nowhere else: no redirect follows."""
    fields = await form_fields(request)
    name, password = fields.get("name", ""), fields.get("password", "")
    wrong = await confirm_password(request, caller, password)
    if wrong is not None:
        error = "The password of your account is wrong."
        if wrong.retry_after is not None:
            error = f"Too many wrong passwords. Try again in {wrong.retry_after} seconds."
        return await _page(request, caller, error=error, name=name, retry_after=wrong.retry_after)
    try:
        new = await caller.change(lambda own: create(own, name))
    except AppPasswordRefused as refused:
        return await _page(request, caller, error=sentence(refused), name=name)
    answer = await _page(request, caller, new=new)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.post("/{id}/revoke")
async def end(caller: SignedIn, id: str) -> Response:
    """Revoke an app password: the app that has it is logged out at once."""
    if not await caller.change(lambda own: revoke(own, id)):
        raise ApiError("not_found", "You have no such app password, or no longer.")
    return see_other(f"{PATH}?done=revoked")


async def _page(
    request: Request,
    caller: AsyncCaller,
    *,
    new: NewAppPassword | None = None,
    is_revoked: bool = False,
    error: str | None = None,
    name: str = "",
    retry_after: int | None = None,
) -> Response:
    frame, (own, name_of_user) = await read_frame(
        caller, together(listed(caller.user_id), user_name(caller.user_id))
    )
    addresses = servers(request)
    return page(
        request,
        "apps.html",
        frame=frame,
        title="Apps",
        status=422 if error else 200,
        retry_after=retry_after,
        app_passwords=own,
        new=new,
        is_revoked=is_revoked,
        error=error,
        app_name=name[:_NAME_CHARACTERS],
        user_name=name_of_user,
        addresses=addresses,
        is_loopback=_is_loopback(request),
        clients=CLIENTS,
        newsboat=newsboat_lines(addresses[0], name_of_user, None if new is None else new.secret),
    )


def servers(request: Request) -> list[str]:
    """The addresses to type into apps: the one at which this page was opened, which has just answered, then
    the others that the settings name."""
    scheme = "https" if is_https(request.scope) else "http"
    here = f"{scheme}://{request.headers['host']}"
    others = places(request.app.state.stores.settings)
    if not request.app.state.stores.settings.reader_hosts:
        others = []
    return [f"{place}/greader" for place in dict.fromkeys([here, *others])]


def _is_loopback(request: Request) -> bool:
    port = request.app.state.stores.settings.reader_port
    return read_authority(request.headers["host"]) in own_authorities(port, ())


# Apps that read by the Google Reader API, and what to type into each. docs/reader.md has the same table.


@dataclass(frozen=True, slots=True)
class ReaderApp:
    """An app: the kind of account to choose in it. `is_tried`: it was used with the reader, or its source
    code was read."""

    name: str
    account: str
    address: str = "with `/greader`"
    is_tried: bool = True


CLIENTS: Sequence[ReaderApp] = (
    ReaderApp("newsboat 2.21 (Debian 12) to 2.23", '`urls-source "feedhq"`'),
    ReaderApp("newsboat from 2.24", '`urls-source "freshrss"`'),
    ReaderApp("Liferea 1.14", "New Source, Google Reader API"),
    ReaderApp("NetNewsWire", "FreshRSS"),
    ReaderApp("Read You", "FreshRSS, or Google Reader"),
    ReaderApp("Capy Reader", "FreshRSS"),
    ReaderApp("Readrops", "FreshRSS", "with `/greader`; if that fails without it"),
    ReaderApp("RSS Guard 4.0", "FreshRSS, in the group of Google Reader"),
    ReaderApp("Fluent Reader", "Google Reader API"),
    ReaderApp("FeedMe", "FreshRSS", is_tried=False),
    ReaderApp("Reeder", "FreshRSS", is_tried=False),
)


def newsboat_lines(server: str, user_name: str, password: str | None) -> str:
    """The lines for the configuration file of newsboat from 2.24 on."""
    return "\n".join(
        (
            'urls-source "freshrss"',
            f'freshrss-url "{server}"',
            f'freshrss-login "{user_name}"',
            f'freshrss-password "{password or "the app password"}"',
            'freshrss-flag-star "s"',
            "freshrss-min-items 100",
        )
    )
