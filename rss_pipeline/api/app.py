"""The reader as one ASGI application: its layers, its routers, its answers to errors.

What a route does is in routers/, google_reader/ and pages/; what the server itself limits in server.py.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from rss_pipeline.api import openapi, problems
from rss_pipeline.api.answers import Answers
from rss_pipeline.api.asgi import ASGIApp, Message, Receive, Scope, Send, header
from rss_pipeline.api.auth import AsyncCaller, session_key
from rss_pipeline.api.direct import is_passed_on
from rss_pipeline.api.google_reader import routes as google_reader
from rss_pipeline.api.google_reader.call import session_of
from rss_pipeline.api.hosts import ForwardedProto, OwnHosts, own_hosts
from rss_pipeline.api.pages import render
from rss_pipeline.api.pages.account import apps, first_user, login, sessions
from rss_pipeline.api.pages.account import settings as preferences
from rss_pipeline.api.pages.error_pages import PageErrors, failed
from rss_pipeline.api.pages.feeds import feed_edit, task_pages
from rss_pipeline.api.pages.reading import item_page, lists
from rss_pipeline.api.pages.reading import marks as mark_forms
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.request_values import has_controls
from rss_pipeline.api.routers import account, collecting, feeds, items, marks, subscribing, tasks
from rss_pipeline.api.routers.items import MOST_BODIES_BYTES, ItemPages
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.errors import NoSession
from rss_pipeline.features import FEATURES
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.reader.query import NOTHING
from rss_pipeline.reader.stores import Stores
from rss_pipeline.web.authority import headers_named

ROUTERS: tuple[APIRouter, ...] = (
    feeds.router,
    items.router,
    marks.router,
    items.images_router,
    subscribing.router,
    tasks.router,
    collecting.router,
    *account.ROUTERS,
    openapi.router,
    *(part.load() for feature in FEATURES for part in feature.reader_routers),
)
"""Routers below /api. They are looked through in this order: what clients request often comes first."""
PAGES: tuple[APIRouter, ...] = (
    render.router,
    login.router,
    first_user.router,
    preferences.router,
    sessions.router,
    apps.router,
    task_pages.router,
    feed_edit.router,
    # Its POST has a fixed word where the one of marks has a variable.
    item_page.router,
    mark_forms.router,
    lists.router,
    *(part.load() for feature in FEATURES for part in feature.reader_pages),
)
"""Routers of the reader's pages."""
LARGER_BODIES: dict[str, int] = {
    **google_reader.LARGER_BODIES,
    **{path: size for feature in FEATURES for path, size in feature.reader_larger_bodies.items()},
}
"""Bytes of a body by path, for addresses that take more than `limits.BODY_BYTES`."""

_VERSION = version("rss_pipeline")
_API_VERSION = "1"

DESCRIPTION = """\
Feeds, items, read states and stars of one user. Log in by `POST /api/auth/login`, then send the token with
every request as `Authorization: Bearer ...`. Errors are problem details (RFC 9457) with a `kind` for
programs. Answers with an `ETag` can be requested again with `If-None-Match`.
"""


def create_app(
    stores: Stores, *, clock: Clock = utc_now, is_passed_on: Callable[[Scope], bool] = is_passed_on
) -> FastAPI:
    """The application on these stores. `is_passed_on` looks at the sender of a request from this machine."""
    settings = stores.settings
    proxies = [str(each) for each in settings.reader_proxies]
    app = FastAPI(
        title="rss_pipeline reader",
        # Of the API, which strangers may see: the version of the program is for those who are logged in.
        version=_API_VERSION,
        description=DESCRIPTION,
        openapi_url=None,
        redirect_slashes=False,
        # Nothing is measured or sent, whatever other packages have set up in this process.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        middleware=[
            Middleware(Answers, failed=failed),
            Middleware(PageErrors),
            *(
                [Middleware(ForwardedProto), Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)]
                if proxies
                else []
            ),
            Middleware(OwnHosts, own=own_hosts(settings)),
            Middleware(Limits, larger_bodies=LARGER_BODIES, sender=partial(_sender, stores, clock)),
        ],
    )
    app.state.stores = stores
    app.state.version = _VERSION
    app.state.clock = clock
    app.state.is_passed_on = is_passed_on
    app.state.bodies = Bodies(stores.objects, seconds=time.monotonic, most_bytes=MOST_BODIES_BYTES)
    app.state.item_pages = ItemPages(app.state.bodies, seconds=time.monotonic)
    problems.install(app)
    app.state.google_reader = google_reader.service_on(stores, clock=clock)
    app.router.routes.extend(google_reader.routes(app.state.google_reader))
    # As they are: a router that is included looks through its routes twice in each request.
    for router in (*ROUTERS, *PAGES):
        app.router.routes.extend(router.routes)
    openapi.complete(app)
    return app


async def _sender(stores: Stores, clock: Clock, scope: Scope) -> str | None:
    """The id of the user who has sent a request, by the session that its headers name; None for nobody."""
    try:
        key = session_of(header(scope, b"authorization")) or session_key(scope, stores.secret, now=clock())
        await AsyncCaller(stores, key, clock).ask(NOTHING)
    except NoSession:
        return None
    return key.user_id


# An ASGI layer with limits: the address, the size and the time of a body, the requests at work. A body is
# read whole before anything else is done, so that a slow one holds no place. The limits of a connection (its
# head, its idle time, the number of connections) are in server.py.

BODY_BYTES = 64_000
BODY_SECONDS = 30.0
ALL_BODIES_BYTES = 64_000_000
"""Size of all larger bodies that are held at one time: a thousand large ones would be a gigabyte."""
_SHARES = 4
"""One user has a part of that at most."""
ADDRESS_BYTES = 8_000
LONGER_ADDRESSES = {
    path: size for feature in FEATURES for path, size in feature.reader_longer_addresses.items()
}
"""Bytes by path."""
AT_WORK = 64
"""Requests that the application works on at one time; more wait."""
WAIT_SECONDS = 10.0
_BUSY_SECONDS = 2
_PLAIN = re.compile(rb"[!-$&-~]*")
"""Visible ASCII without escapes."""


@dataclass(slots=True)
class _Held:
    """The bytes that a request holds, and the user who has sent it, once that is known."""

    sender: str | None = None
    size: int = 0


class Limits:
    """An ASGI application that passes on to `app` what keeps the limits.

    `larger_bodies` has, by path, the bytes of bodies that may be larger than `BODY_BYTES`, and `sender` is
    the id of the user who has sent a request, by a login that is alive: nobody else sends larger ones.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        larger_bodies: Mapping[str, int],
        sender: Callable[[Scope], Awaitable[str | None]],
        body_seconds: float = BODY_SECONDS,
        all_bodies_bytes: int = ALL_BODIES_BYTES,
        at_work: int = AT_WORK,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._app = app
        self._larger_bodies = larger_bodies
        self._body_seconds = body_seconds
        self._all_bodies_bytes = all_bodies_bytes
        self._sender = sender
        self._held_bytes = Counter[str]()
        self._at_work = asyncio.Semaphore(at_work)
        self._wait_seconds = wait_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held = _Held()
        try:
            check_address(scope)
            limit = self._larger_bodies.get(scope["path"], BODY_BYTES)
            if has_body(scope, limit=limit):
                body = await self._body(scope, receive, limit, held)
                if body is None:
                    return
                receive = _again(body, receive)
            await self._take_place()
        except ApiError as error:
            self._release(held)
            await error.response()(scope, receive, send)
            return
        except BaseException:
            self._release(held)
            raise
        try:
            await self._app(scope, receive, send)
        finally:
            self._release(held)
            self._at_work.release()

    async def _body(self, scope: Scope, receive: Receive, limit: int, held: "_Held") -> bytes | None:
        """The whole body; None if the client has gone. A large one is read for users only."""
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._body_seconds):
                if int(header(scope, b"content-length") or 0) > BODY_BYTES:
                    await self._admit(scope, held)
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        self._release(held)
                        return None
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(limit)
                    if size > BODY_BYTES:
                        await self._admit(scope, held)
                        self._hold(held, size)
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return b"".join(chunks)
        except TimeoutError as error:
            seconds = f"{self._body_seconds:g} s"
            raise ApiError("request_too_slow", f"The body did not arrive within {seconds}.") from error

    async def _admit(self, scope: Scope, held: "_Held") -> None:
        """Raise ApiError unless a user has sent this: what strangers send is small, and bounded by the number
        of connections, so that it never keeps a login out."""
        if held.sender is None:
            held.sender = await self._sender(scope)
        if held.sender is None:
            raise ApiError("not_signed_in", f"A body of more than {BODY_BYTES:,} bytes needs a login.")

    def _hold(self, held: "_Held", size: int) -> None:
        assert held.sender is not None
        self._held_bytes[held.sender] += size - held.size
        held.size = size
        share = self._all_bodies_bytes // _SHARES
        if self._held_bytes[held.sender] > share or self._held_bytes.total() > self._all_bodies_bytes:
            raise ApiError("too_busy", "Too many large requests at once.", retry_after=_BUSY_SECONDS)

    def _release(self, held: "_Held") -> None:
        if held.sender is not None and held.size:
            self._held_bytes[held.sender] -= held.size
            held.size = 0
            if not self._held_bytes[held.sender]:
                del self._held_bytes[held.sender]

    async def _take_place(self) -> None:
        if not self._at_work.locked():
            # At once: a limit of time costs more than many a request.
            await self._at_work.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._at_work.acquire()
        except TimeoutError as error:
            raise ApiError("too_busy", "Too many requests at once.", retry_after=_BUSY_SECONDS) from error


def check_address(scope: Scope) -> None:
    """Raise ApiError for an address that is too long, or that is no UTF-8 text without control characters."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope["query_string"]
    most = LONGER_ADDRESSES.get(scope["path"], ADDRESS_BYTES)
    if len(path) + len(query) > most:
        raise ApiError("address_too_long", f"The address has more than {most:,} bytes.")
    if _PLAIN.fullmatch(path) and _PLAIN.fullmatch(query):
        return
    try:
        text = unquote_to_bytes(path).decode()
        unquote_to_bytes(query.replace(b"+", b" ")).decode()
    except UnicodeDecodeError as error:
        raise ApiError("malformed_request", "The address is not UTF-8 text.") from error
    if has_controls(text):
        raise ApiError("malformed_request", "The address has control characters.")


def has_body(scope: Scope, *, limit: int) -> bool:
    """True for a request that brings a body; ApiError for one that is announced too large or compressed."""
    if not all(coding.lower() in ("", "identity") for coding in headers_named(scope, b"content-encoding")):
        raise ApiError("unsupported_media_type", "The body is compressed.")
    length = header(scope, b"content-length")
    if length is None:
        return bool(headers_named(scope, b"transfer-encoding"))
    # The server has checked that it is a number.
    if int(length) > limit:
        raise _too_large(limit)
    return int(length) > 0


def _too_large(limit: int) -> ApiError:
    return ApiError("body_too_large", f"The body has more than the {limit:,} bytes that this address takes.")


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives this body in one message, then what the server says."""
    is_given = False

    async def wrapped() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return wrapped
