"""`GET /healthz`: whether all processes of `up` are running, by a request that starts none and keeps none.

The process from which all others are forked notes what is missing, in memory that they share. It answers for
a server at rest (orchestration/serving/front.py), and a server that runs answers here, before any login.
"""

import json
import mmap
import struct
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

PATH = "/healthz"
STALE_SECONDS = 15.0
"""A process that notes nothing for so long is stopped, or hangs."""
_NOTE = struct.Struct("dd500s")
"""The time of the note, that since which the same is missing, and what that is."""
_NOTED = mmap.mmap(-1, _NOTE.size)
_App = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


def note(missing: Sequence[str], *, now: float | None = None) -> None:
    """Note which processes of `up` are missing now."""
    at, text = time.monotonic() if now is None else now, "\n".join(missing).encode()
    last, since, before = _NOTE.unpack_from(_NOTED)
    is_same = last and bool(text) == bool(before.rstrip(b"\0"))
    _NOTE.pack_into(_NOTED, 0, at, since if is_same else at, text)


def missing(*, now: float | None = None) -> tuple[Sequence[str], float]:
    """The processes of `up` that are missing, and for how many seconds some are; none for a server that is
    not below `up`."""
    at, since, text = _NOTE.unpack_from(_NOTED)
    now = time.monotonic() if now is None else now
    if at and now - at > STALE_SECONDS:
        return ["the process that starts all others"], now - at
    return text.rstrip(b"\0").decode(errors="replace").splitlines(), now - since


def state() -> tuple[int, bytes]:
    """The status and the body of the answer. A server that is not below `up` is all there is."""
    found, _ = missing()
    return (503 if found else 200), json.dumps({"ok": not found, "missing": found}).encode()


def is_asked(head: bytes) -> bool:
    """True for the whole of a request for the state."""
    method, _, rest = head.partition(b" ")
    return method in (b"GET", b"HEAD") and rest.split(b" ")[0] == PATH.encode() and head.endswith(b"\r\n\r\n")


def answer(head: bytes) -> bytes:
    """The whole answer to such a request."""
    status, body = state()
    fields = b"".join(b"%b: %b\r\n" % each for each in _fields(body))
    reason = b"OK" if status == 200 else b"Service Unavailable"
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, reason, fields, b"" if head[:4] == b"HEAD" else body)


def _fields(body: bytes) -> list[tuple[bytes, bytes]]:
    length = (b"content-length", str(len(body)).encode())
    return [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), length, _CLOSE]


_CLOSE = (b"connection", b"close")
"""A connection that stays open would keep its server."""


class Healthz:
    """An ASGI application that answers such requests, and passes all others on."""

    def __init__(self, app: _App) -> None:
        self._app = app
        self.answered = 0
        """Requests for the state, which are no use of the server."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        self.answered += 1
        status, body = state()
        await send({"type": "http.response.start", "status": status, "headers": _fields(body)})
        await send({"type": "http.response.body", "body": body})
