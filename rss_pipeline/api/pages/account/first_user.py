"""The page on which the first user is made: while there is none, from this machine only."""

from ipaddress import ip_address

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.asgi import Scope, header
from rss_pipeline.api.hosts import client_address, is_of_own_page
from rss_pipeline.api.pages.account.login import begin_session
from rss_pipeline.api.pages.forms import form_fields
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.pages.sentences import sentence
from rss_pipeline.api.problems import ApiError
from rss_pipeline.errors import HashingBusy, PasswordRefused, UserRefused
from rss_pipeline.pipeline.accounts.passwords import LEAST_CHARACTERS, MOST_CHARACTERS, check_new
from rss_pipeline.pipeline.reading.first_user import add_first_user, has_users
from rss_pipeline.pipeline.reading.listed_feeds import left_out
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS
from rss_pipeline.web.authority import own_authorities, read_authority

router = APIRouter(include_in_schema=False)

_FORWARDED = (b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"true-client-ip", b"cf-connecting-ip")
_MOST_NAME_CHARACTERS = 64
_BUSY_SECONDS = 2


@router.get("/first-user")
async def form(request: Request) -> Response:
    """The form, or what to do where no user may be made here."""
    if await run_in_threadpool(has_users, request.app.state.stores.database):
        return see_other("/login")
    if not is_of_this_machine(request.scope, port=request.app.state.stores.settings.reader_port):
        return page(request, "first_user_elsewhere.html", title="There is no user yet", status=403)
    return await _form(request)


@router.post("/first-user")
async def make(request: Request) -> Response:
    """Make the user, subscribe to the feeds of feeds.yaml if that is wanted, and log in."""
    scope, state = request.scope, request.app.state
    # Without a cookie there is nothing that a page of another site would use; but it could choose the user.
    if not is_of_own_page(scope):
        raise ApiError("foreign_origin", "A page of another site sent this.")
    if not is_of_this_machine(scope, port=state.stores.settings.reader_port):
        return page(request, "first_user_elsewhere.html", title="There is no user yet", status=403)
    fields = await form_fields(request)
    name, password, again = (fields.get(each, "") for each in ("name", "password", "again"))
    subscribe = "subscribe" in fields
    try:
        check_new(password)
        if password != again:
            raise PasswordRefused("the two passwords are not the same; type them again")
        stored = await run_in_threadpool(
            add_first_user,
            state.stores.database,
            name=name,
            password=password,
            with_listed=subscribe,
            clock=state.clock,
            settings=state.stores.settings,
        )
    except UserRefused as refused:
        return await _form(request, name=name, subscribe=subscribe, name_error=sentence(refused))
    except PasswordRefused as refused:
        return await _form(request, name=name, subscribe=subscribe, password_error=sentence(refused))
    except HashingBusy as busy:
        raise ApiError("too_busy", sentence(busy), retry_after=_BUSY_SECONDS) from busy
    if stored is None:
        return see_other("/login")
    answer = see_other("/")
    # Refused by the throttle: somebody has tried this name before. The user is there all the same.
    await begin_session(request, answer, name=stored, password=password)
    return answer


def is_of_this_machine(scope: Scope, *, port: int) -> bool:
    """True for a request that a program on this machine has made to us directly.

    A reverse proxy on this machine has a loopback address, too, and passes on what comes from everywhere. It
    shows by the headers that it adds, by a name of its own as Host, or by HTTP/1.0, which nginx speaks unless
    it is configured otherwise and no browser does.
    """
    try:
        is_loopback = ip_address(client_address(scope)).is_loopback
    except ValueError:
        return False
    if not is_loopback or scope["http_version"] == "1.0":
        return False
    if any(name.startswith(b"x-forwarded-") or name in _FORWARDED for name, _ in scope["headers"]):
        return False
    return read_authority(header(scope, b"host") or "") in own_authorities(port, ())


async def _form(
    request: Request,
    *,
    name: str = "",
    subscribe: bool = True,
    name_error: str | None = None,
    password_error: str | None = None,
) -> Response:
    return page(
        request,
        "first_user.html",
        title="Make the first user",
        status=200 if name_error is None and password_error is None else 422,
        user_name=name[:_MOST_NAME_CHARACTERS],
        subscribe=subscribe,
        left_out=await run_in_threadpool(left_out, request.app.state.stores.database),
        most_subscriptions=MAX_SUBSCRIPTIONS,
        name_error=name_error,
        password_error=password_error,
        least=LEAST_CHARACTERS,
        most=MOST_CHARACTERS,
    )
