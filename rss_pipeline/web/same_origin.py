"""An ASGI layer that refuses what pages of other sites can make a browser send to a server of ours.

A server on loopback without a login trusts whoever reaches it, and every page that a person opens reaches it
through the browser: by forms, images, frames, websockets, and, with a name of its own that it lets point to
127.0.0.1 (DNS rebinding), as if it were of the same origin. A browser says in Host, Origin and Sec-Fetch-Site
where a request comes from; a program on this machine sends no Origin and passes. No login is in here.
https://fetch.spec.whatwg.org/#origin-header, https://www.w3.org/TR/fetch-metadata/
"""

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

from rss_pipeline.web.authority import Authority, headers_named, origins, read_authority, read_origin, shown

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_OWN_SITE = ("same-origin", "none")
"""Sec-Fetch-Site of a page of this server, and of an address that a person typed or opened as a bookmark."""
_POLICY_VIOLATION = 1008


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A status, and a sentence that says what was refused and how to allow it."""

    status: int
    sentence: str
    allow: str | None = None
    """The methods that the path takes, for status 405."""


class SameOrigin:
    """An ASGI application that passes on to `app` what a page of this server, or no page, has sent.

    `own` are the names of this server, `setting` the setting that adds names. Paths in `json_paths` take POST
    with a JSON body only: no form of another page can send that.
    """

    def __init__(
        self, app: App, *, own: Collection[Authority], setting: str, json_paths: Collection[str] = ()
    ) -> None:
        self._app = app
        self._own = own
        self._setting = setting
        self._json_paths = json_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refused = refusal(scope, own=self._own, setting=self._setting, json_paths=self._json_paths)
        if refused is None:
            await self._app(scope, receive, _unframed(send))
        elif scope["type"] == "http":
            await _answer(refused, send, "http.response")
        elif "websocket.http.response" in scope.get("extensions", {}):
            await _answer(refused, send, "websocket.http.response")
        else:
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refused.sentence})


def refusal(
    scope: Scope, *, own: Collection[Authority], setting: str, json_paths: Collection[str] = ()
) -> Refusal | None:
    """The reason not to serve this request or websocket, or None."""
    hosts = headers_named(scope, b"host")
    if len(hosts) != 1 or read_authority(hosts[0]) not in own:
        return Refusal(
            status=421,
            sentence=f"Host: {shown(hosts)} is no name of this server. If it is yours (a reverse proxy, a"
            f" tunnel), add it to {setting} and start this server again.",
        )
    for origin in origins(scope):
        if read_origin(origin) not in own:
            return Refusal(
                status=403,
                sentence=f"Origin: {shown([origin])}: a page of another site sent this request, and only"
                " pages of this server may. If that site is yours (a reverse proxy, a tunnel), add its name"
                f" to {setting} and start this server again.",
            )
    for site in headers_named(scope, b"sec-fetch-site"):
        if site not in _OWN_SITE and not _is_link(scope):
            return Refusal(
                status=403,
                sentence=f"Sec-Fetch-Site: {shown([site])}: a page of another site sent this request, and"
                " only pages of this server may. Open this server's own page, by one of its names.",
            )
    if scope["type"] == "http" and scope["path"] in json_paths:
        return _unless_json(scope)
    return None


def _is_link(scope: Scope) -> bool:
    """True for a click on a link of another page, which shows a page of ours in a tab of its own."""
    return (
        scope["type"] == "http"
        and scope["method"] in ("GET", "HEAD")
        and headers_named(scope, b"sec-fetch-mode") == ["navigate"]
        and headers_named(scope, b"sec-fetch-dest") == ["document"]
    )


def _unless_json(scope: Scope) -> Refusal | None:
    path = scope["path"]
    if scope["method"] != "POST":
        return Refusal(
            status=405,
            sentence=f"{path} takes POST only, with a JSON body and Content-Type: application/json.",
            allow="POST",
        )
    types = headers_named(scope, b"content-type")
    if len(types) != 1 or types[0].partition(";")[0].strip().lower() != "application/json":
        return Refusal(
            status=415,
            sentence=f"{path} takes Content-Type: application/json only, not {shown(types)}.",
        )
    return None


def _unframed(send: Send) -> Send:
    """`send`, with the header that keeps pages of other sites from framing ours to steal clicks."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"x-frame-options", b"SAMEORIGIN")]
        await send(message)

    return wrapped


async def _answer(refused: Refusal, send: Send, kind: str) -> None:
    body = f"{refused.sentence}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    ]
    if refused.allow is not None:
        headers.append((b"allow", refused.allow.encode()))
    await send({"type": f"{kind}.start", "status": refused.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})
