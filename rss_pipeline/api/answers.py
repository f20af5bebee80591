"""An ASGI layer around all answers: headers for safety, gzip, HEAD, and a problem for what was not caught."""

import logging
import re
import zlib
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from rss_pipeline.api.asgi import ASGIApp, Message, Receive, Scope, Send
from rss_pipeline.api.conditional import gzip_tag
from rss_pipeline.api.hosts import is_https
from rss_pipeline.api.problems import ApiError
from rss_pipeline.web.authority import headers_named

GZIP_FROM_BYTES = 1_000
_IN_THREAD_FROM_BYTES = 100_000
_KEPT_LEVEL, _LEVEL = 5, 1
"""Levels of zlib. 1 takes half the time of 5 for a third more bytes: right for what is sent once."""
_COMPRESSIBLE = re.compile(rb"application/([a-z.-]+\+)?(json|xml)|text/")

_DEFAULTS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
    (b"vary", b"Authorization, Cookie, Accept-Encoding"),
)
"""Headers of every answer that does not set them itself."""
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
"""Over https, each answer tells browsers to use nothing else for this name and those below it, for a year
(RFC 6797)."""

_logger = logging.getLogger(__name__)


class BrokenOff(Exception):
    """Ends an answer that has begun and cannot be completed: the connection is closed without the end of the
    body, so that no client takes it for whole."""


class Answers:
    """An ASGI application that finishes the answers of `app`; `failed` makes one where `app` raised."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        failed: Callable[[Scope, ApiError], ASGIApp] = lambda _, error: error.response(),
    ) -> None:
        self._app = app
        self._failed = failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD"
        if is_head:
            # Every address that can be read takes HEAD (RFC 9110 9.1).
            scope = {**scope, "method": "GET"}
        finished = _Finished(send, scope, is_head=is_head)
        try:
            await self._app(scope, receive, finished)
        except BrokenOff as reason:
            # The server closes the connection where an application returns before the end of its answer.
            _logger.error("%s %s was broken off: %s", scope["method"], scope["path"], reason)
        except Exception:
            # Of a library or of ours: the client gets a problem, the log gets the rest, without the query.
            _logger.exception("%s %s failed", scope["method"], scope["path"])
            if finished.has_started:
                raise
            error = ApiError("internal_error", "The reader failed at this request.")
            await self._failed(scope, error)(scope, receive, finished)


class _Finished:
    """The `send` of one request. The head waits for the body: both change by gzip."""

    def __init__(self, send: Send, scope: Scope, *, is_head: bool) -> None:
        self._send = send
        self._scope = scope
        self._is_head = is_head
        self.has_started = False
        self._head: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        if self._head is not None:
            head, self._head = self._head, None
            headers: list[tuple[bytes, bytes]] = [*head.get("headers", ())]
            present = {name for name, _ in headers}
            headers += [each for each in _DEFAULTS if each[0] not in present]
            body = message.get("body", b"")
            is_whole = not message.get("more_body", False)
            can_shrink = is_whole and len(body) >= GZIP_FROM_BYTES and _can_shrink(headers)
            if can_shrink and takes_gzip(self._scope):
                body = await _gzip(body)
                headers = _with_gzip(headers, len(body))
                message = {**message, "body": body}
            # A layer behind this one has written the scheme into the scope by now.
            if is_https(self._scope):
                headers.append(_STRICT_TRANSPORT)
            self.has_started = True
            await self._send({**head, "headers": headers})
        if self._is_head:
            message = {**message, "body": b""}
        await self._send(message)


def takes_gzip(scope: Scope) -> bool:
    """True if Accept-Encoding names gzip, with no weight of zero (RFC 9110 12.5.3)."""
    for value in headers_named(scope, b"accept-encoding"):
        for part in value.lower().split(","):
            coding, _, weight = part.partition(";")
            if coding.strip() in ("gzip", "x-gzip"):
                return re.fullmatch(r"\A\s*q\s*=\s*0(\.0*)?\s*", weight) is None
    return False


def _can_shrink(headers: list[tuple[bytes, bytes]]) -> bool:
    types = [value for name, value in headers if name == b"content-type"]
    return (
        not any(name == b"content-encoding" for name, _ in headers)
        and len(types) == 1
        and _COMPRESSIBLE.match(types[0]) is not None
    )


def _with_gzip(headers: list[tuple[bytes, bytes]], size: int) -> list[tuple[bytes, bytes]]:
    changed: dict[bytes, Callable[[bytes], bytes]] = {
        b"content-length": lambda _: str(size).encode(),
        b"etag": gzip_tag,
    }
    return [
        *((name, changed[name](value) if name in changed else value) for name, value in headers),
        (b"content-encoding", b"gzip"),
    ]


async def _gzip(body: bytes) -> bytes:
    if len(body) < _IN_THREAD_FROM_BYTES:
        return gzipped(body)
    return await run_in_threadpool(gzipped, body)


def gzipped(body: bytes, *, is_kept: bool = False) -> bytes:
    """The body as gzip; one that is kept is made smaller."""
    level = _KEPT_LEVEL if is_kept else _LEVEL
    compressor = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()
