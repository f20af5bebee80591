"""The sender of a request: the token of a program, or the cookie of a browser.

A browser sends a cookie with every request, whoever's page made it; so with a cookie, a write must come from
a page of ours. The Google Reader API takes neither: its own tokens only (google_reader/).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Annotated, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import cookie_parser
from starlette.responses import Response

from rss_pipeline.api.asgi import Scope
from rss_pipeline.api.hosts import client_address, is_https, is_of_foreign_page, is_of_own_page
from rss_pipeline.api.problems import ApiError
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, NoSession
from rss_pipeline.reader.accounts import devices, login
from rss_pipeline.reader.accounts.callers import Caller, SessionKey
from rss_pipeline.reader.accounts.devices import Device
from rss_pipeline.reader.accounts.login import LoggedIn, LoginRefused
from rss_pipeline.reader.accounts.tokens import read_jwt, read_opaque
from rss_pipeline.reader.collecting import Hindrance, PollTrouble
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.stores import REQUEST_SECONDS, Stores
from rss_pipeline.web.authority import headers_named

# The caller of a request for code on the event loop: which statements run on it, and which in a thread.
#
# An embedded database answers a short read in less time than a thread takes to begin. Whatever may wait, for
# the lock of a writer or for the network, is done in a thread.

T = TypeVar("T")

_BESIDE_SECONDS = 0.5
"""The time that a page gives what it writes by the way. It takes milliseconds."""


class AsyncCaller:
    """The user of one request, as `Caller`; each method raises what that one raises."""

    def __init__(self, stores: Stores, key: SessionKey, clock: Clock) -> None:
        self.stores = stores
        self.key = key
        self.clock = clock

    @property
    def user_id(self) -> str:
        """The user to bind statements to. Only the methods below make sure that it is the caller."""
        return self.key.user_id

    def _caller(self) -> Caller:
        return Caller(self.key, self.stores.database, self.clock, self.stores.kept)

    async def hindrances(self, trouble: PollTrouble | None) -> Sequence[Hindrance]:
        """The hindrances of now, that of the last poll among them."""
        collecting = self.stores.collecting
        if collecting.is_stale:
            return await run_in_threadpool(collecting.hindrances, trouble)
        return collecting.hindrances(trouble)

    async def ask(self, query: Query[T]) -> T:
        """The value of a query that reads for a millisecond at most."""
        if self.stores.is_remote:
            return await self.ask_long(query)
        caller = self._caller()
        value = caller.ask(query)
        await self._touch_soon(caller)
        return value

    async def ask_long(self, query: Query[T]) -> T:
        """The value of a query that may read for longer: counts, many items."""
        return await self.run(lambda caller: caller.ask(query))

    async def run(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that reads, and may take its time."""
        caller = self._caller()
        result = await run_in_threadpool(work, caller)
        await self._touch_soon(caller)
        return result

    async def change(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that writes. Few do at one time: those that wait for the lock of another
        process leave threads for all that only read.

        Raises DatabaseUnavailable, besides: others have waited in vain for as long as a request may.
        """
        writing = self.stores.writing
        try:
            # A limit of time costs as much as some statements.
            async with asyncio.timeout(REQUEST_SECONDS) if writing.locked() else nullcontext():
                await writing.acquire()
        except TimeoutError:
            raise DatabaseUnavailable(
                f"other requests have waited to write for {REQUEST_SECONDS:g} s; see what holds the lock"
            ) from None
        try:
            return await run_in_threadpool(work, self._caller())
        finally:
            writing.release()

    async def change_beside(self, work: Callable[[Caller], object], *, what: str) -> asyncio.Task[None]:
        """Do what a page writes by the way: it is shown at once also while another process holds the lock,
        and without it if that takes too long. `what` is for the log."""

        async def done() -> None:
            try:
                await self.change(work)
            except (InfrastructureError, NoSession) as error:
                _logger.warning("%s: %s", what, error)

        task = asyncio.create_task(done())
        # The loop alone does not keep it.
        self.stores.unfinished.add(task)
        task.add_done_callback(self.stores.unfinished.discard)
        await asyncio.wait([task], timeout=_BESIDE_SECONDS)
        return task

    async def make(self, work: Callable[[Caller], T]) -> T:
        """The result of a function that makes bodies of items. Few do at one time, so that a request for what
        is kept waits neither for a thread nor for many who compute; those that wait hold no thread."""
        async with self.stores.making:
            return await self.run(work)

    async def _touch_soon(self, caller: Caller) -> None:
        touched = self.stores.touched
        if caller.touch_is_due and self.key.session_id not in touched:
            touched.add(self.key.session_id)
            task = await self.change_beside(Caller.touch, what="the last use of a session was not written")
            task.add_done_callback(lambda _: touched.discard(self.key.session_id))


COOKIE = "rss_session"
HOST_COOKIE = "__Host-rss_session"
"""On https: browsers take this name only with Secure and Path=/ and without Domain, so that no other host of
the same site can set it."""

DEVICE_COOKIE = "rss_device"
HOST_DEVICE_COOKIE = "__Host-rss_device"
"""A text by which a browser is known at its next login; it opens nothing by itself."""

_READS = ("GET", "HEAD")

_logger = logging.getLogger(__name__)


async def signed_in(request: Request) -> AsyncCaller:
    """The caller of a request; ApiError without a session. The first read sees whether it is alive."""
    stores, clock = request.app.state.stores, request.app.state.clock
    return AsyncCaller(stores, session_key(request.scope, stores.secret, now=clock()), clock)


SignedIn = Annotated[AsyncCaller, Depends(signed_in)]
"""The parameter of a route that needs a login."""


def session_key(scope: Scope, secret: bytes, *, now: datetime) -> SessionKey:
    """The session that a request names.

    Raises:
        NoSession: it names none of ours, or its token has expired.
        ApiError: it came with a cookie, and not from a page of ours.
    """
    credentials = headers_named(scope, b"authorization")
    bearers = [value.partition(" ") for value in credentials if value[:7].lower() == "bearer "]
    if bearers:
        if len(credentials) > 1:
            raise NoSession
        return read_jwt(secret, bearers[0][2].strip(), now=now)
    # Another scheme is that of a proxy in front of us, which passes its own password on.
    cookie = session_cookie(scope)
    if cookie is None:
        raise NoSession
    check_page(scope)
    return read_opaque(cookie, "login")


def check_page(scope: Scope) -> None:
    """Raise ApiError for a request with a cookie that a page of another site may have sent."""
    if scope["method"] in _READS:
        if is_of_foreign_page(scope) and headers_named(scope, b"sec-fetch-mode") != ["navigate"]:
            raise ApiError("foreign_origin", "A page of another site reads with this browser's cookie.")
    elif not is_of_own_page(scope):
        raise ApiError(
            "foreign_origin",
            "With a cookie, a request that changes something must come from a page of this server, and the"
            " headers Origin and Sec-Fetch-Site do not say so.",
        )


def session_cookie(scope: Scope) -> str | None:
    """The value of our cookie, or None."""
    return _cookie(scope, cookie_name(scope))


def device_cookie(scope: Scope) -> Device | None:
    """The browser of this request, if it keeps a cookie by which it may be known."""
    text = _cookie(scope, _device_name(scope))
    return None if text is None else Device.read(text)


def _device_name(scope: Scope) -> str:
    return HOST_DEVICE_COOKIE if is_https(scope) else DEVICE_COOKIE


def _cookie(scope: Scope, name: str) -> str | None:
    found = [
        cookies[name] for cookies in map(cookie_parser, headers_named(scope, b"cookie")) if cookies.get(name)
    ]
    return found[0] if found else None


def cookie_name(scope: Scope) -> str:
    return HOST_COOKIE if is_https(scope) else COOKIE


def set_cookies(response: Response, scope: Scope, found: LoggedIn) -> None:
    """Let the browser keep the opaque token of its session, and what it is known by at the next login."""
    assert found.renewal is not None
    assert found.device is not None
    _set_cookie(response, scope, cookie_name(scope), found.renewal, found.lives)
    _set_cookie(response, scope, _device_name(scope), found.device, devices.LIFETIME)


def _set_cookie(response: Response, scope: Scope, name: str, value: str, lives: timedelta) -> None:
    response.set_cookie(
        name,
        value,
        max_age=int(lives.total_seconds()),
        path="/",
        secure=is_https(scope),
        httponly=True,
        samesite="lax",
    )


def clear_cookie(response: Response, scope: Scope) -> None:
    response.delete_cookie(
        cookie_name(scope), path="/", secure=is_https(scope), httponly=True, samesite="lax"
    )


# What both doors of people with a password do: log in and out, and type the password again.


async def log_in(
    request: Request, *, name: str, password: str, device: Device | None
) -> LoggedIn | LoginRefused:
    """Try a login from where a request comes from."""
    scope, state = request.scope, request.app.state
    if is_of_foreign_page(scope):
        # It would log its reader in as somebody of its choice.
        raise ApiError("foreign_origin", "A page of another site sent this login.")
    address = client_address(scope)
    found = await run_in_threadpool(
        login.log_in,
        state.stores.database,
        state.stores.secret,
        name=name,
        password=password,
        address=address,
        client=request.headers.get("user-agent", ""),
        clock=state.clock,
        device=device,
    )
    if isinstance(found, LoginRefused):
        note_refusal(scope)
    else:
        _logger.info("login: %s from %s", found.user_id, address)
    return found


async def log_out(request: Request, answer: Response) -> bool:
    """End the session of a request, and let the browser forget its cookie, also of one that has ended; False
    where it has neither."""
    scope, state = request.scope, request.app.state
    has_cookie = session_cookie(scope) is not None
    try:
        key = session_key(scope, state.stores.secret, now=state.clock())
    except NoSession:
        if not has_cookie:
            return False
        # Nothing opens with it, and the browser should forget it.
        check_page(scope)
    else:
        await run_in_threadpool(login.log_out, state.stores.database, key.session_id)
    if has_cookie:
        clear_cookie(answer, scope)
    return True


async def confirm_password(request: Request, caller: AsyncCaller, password: str) -> LoginRefused | None:
    """Try the caller's own password again; None if it is right. Wrong ones count as at a login."""
    refused = await caller.run(lambda own: login.confirm_password(own, password=password))
    if refused is not None:
        note_refusal(request.scope)
    return refused


def note_refusal(scope: Scope) -> None:
    """Log that a password was refused, for fail2ban and its like. The name is left out: people type their
    password into its field."""
    _logger.warning("login refused: %s", client_address(scope))
