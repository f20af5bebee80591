"""The sender of a request: the token of a program, or the cookie of a browser.

A browser sends a cookie with every request, whoever's page made it; so with a cookie, a write must come from
a page of ours. The Google Reader API takes neither: its own tokens only (google_reader/).
"""

import secrets
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import cookie_parser
from starlette.responses import Response

from rss_pipeline.api.asgi import Scope
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.hosts import is_https, is_of_foreign_page, is_of_own_page
from rss_pipeline.api.problems import ApiError
from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.callers import SessionKey
from rss_pipeline.reader.accounts.tokens import read_jwt, read_opaque
from rss_pipeline.storage.accounts.login_failures import KNOWN_FOR
from rss_pipeline.storage.accounts.sessions import LIFETIME
from rss_pipeline.web.authority import headers_named

COOKIE = "rss_session"
HOST_COOKIE = "__Host-rss_session"
"""On https: browsers take this name only with Secure and Path=/ and without Domain, so that no other host of
the same site can set it."""

DEVICE_COOKIE = "rss_device"
HOST_DEVICE_COOKIE = "__Host-rss_device"
"""A secret by which a browser is known at its next login; it opens nothing by itself."""
_DEVICE_BYTES = 24

_READS = ("GET", "HEAD")


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


def device_cookie(scope: Scope) -> str | None:
    """The secret by which this browser may be known, or None."""
    return _cookie(scope, HOST_DEVICE_COOKIE if is_https(scope) else DEVICE_COOKIE)


def new_device() -> str:
    """A secret for a browser that has none."""
    return secrets.token_urlsafe(_DEVICE_BYTES)


def set_device_cookie(response: Response, scope: Scope, device: str) -> None:
    """Let the browser keep its secret for as long as it is known by it."""
    response.set_cookie(
        HOST_DEVICE_COOKIE if is_https(scope) else DEVICE_COOKIE,
        device,
        max_age=int(KNOWN_FOR.total_seconds()),
        path="/",
        secure=is_https(scope),
        httponly=True,
        samesite="lax",
    )


def _cookie(scope: Scope, name: str) -> str | None:
    found = [
        cookies[name] for cookies in map(cookie_parser, headers_named(scope, b"cookie")) if cookies.get(name)
    ]
    return found[0] if found else None


def cookie_name(scope: Scope) -> str:
    return HOST_COOKIE if is_https(scope) else COOKIE


def set_cookie(response: Response, scope: Scope, token: str) -> None:
    """Give the browser the opaque token of its session, for as long as a session lives unused."""
    response.set_cookie(
        cookie_name(scope),
        token,
        max_age=int(LIFETIME.total_seconds()),
        path="/",
        secure=is_https(scope),
        httponly=True,
        samesite="lax",
    )


def clear_cookie(response: Response, scope: Scope) -> None:
    response.delete_cookie(
        cookie_name(scope), path="/", secure=is_https(scope), httponly=True, samesite="lax"
    )
