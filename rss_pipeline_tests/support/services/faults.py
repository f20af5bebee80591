"""A proxy on loopback between the pipeline and Cloudflare that makes the faults a test wants.

Not a mock: every call goes over sockets to the real Worker and the real S3 endpoint, unless a fault replaces
them in its way.

    with FaultProxy(cloudflare.url) as proxy:
        proxy.fault(Reset(applied=True), at=sql("INSERT INTO leases"))
        D1Database(proxy.url, cloudflare.token)
        ...
        assert proxy.count("d1") == 8

The Host header goes on as it came: S3 requests are signed with it, and the endpoint checks the signature
against the header and not against its own address. `fault`, `calls` and the rest may be used from any
thread while it serves.
"""

import asyncio
import contextlib
import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from rss_pipeline.storage.database import Statement

S3_PATH = "/cdn-cgi/local/r2/s3/"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request as it came."""

    number: int
    """Counts calls of the proxy from 1, those that met a fault included."""
    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def store(self) -> str:
        """`d1` or `r2`."""
        return "r2" if self.target.startswith(S3_PATH) else "d1"

    @property
    def key(self) -> str:
        """The object's, without the bucket; "" for a listing."""
        path = unquote(urlsplit(self.target).path).removeprefix(S3_PATH)
        return path.partition("/")[2]

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The request of a call of the database."""
        if self.store != "d1" or self.method != "POST":
            return ()
        asked: Any = json.loads(self.body)
        asked = asked if isinstance(asked, list) else [asked]
        return tuple(Statement(one["sql"], one["params"]) for one in asked)


Where = Callable[[Call], bool]


def any_call(call: Call) -> bool:
    return True


def number(wanted: int) -> Where:
    """The call of that number."""
    return lambda call: call.number == wanted


def sql(part: str, *, of: str = "") -> Where:
    """A call with a statement of that SQL and, where one is named, that text in its parameters."""
    return lambda call: any(
        part in found.sql and (not of or any(of in str(param) for param in found.params))
        for found in call.statements
    )


def s3(method: str, prefix: str = "") -> Where:
    """A call of the object store by that method, for a key that begins so."""
    return lambda call: call.store == "r2" and call.method == method and call.key.startswith(prefix)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with this status, in the shape that Worker or S3 would; nothing is forwarded."""

    status: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Break the connection: before anything was forwarded, or when all was applied."""

    applied: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep the answer back until the client is gone; the call is applied."""


@dataclass(frozen=True, slots=True)
class Half:
    """Send the first half of the answer, then close, or `hold` the rest back."""

    hold: bool = False


@dataclass(frozen=True, slots=True)
class Drip:
    """Send the answer's body in pieces of so many bytes, so many seconds apart."""

    size: int = 64
    pause: float = 0.02


Fault = Refuse | Reset | Hold | Half | Drip

_D1_ERRORS = {
    401: ("unauthorized", "Authorization must be `Bearer` and the Worker's D1_PROXY_TOKEN", False),
    500: ("internal", "D1_ERROR: internal error", False),
    503: ("overloaded", "D1_ERROR: D1 DB is overloaded. Too many requests queued.", True),
}
_S3_ERRORS = {
    401: ("Unauthorized", "Unauthorized"),
    500: ("InternalError", "We encountered an internal error. Please try again."),
    503: ("ServiceUnavailable", "Please reduce your request rate."),
}


class FaultProxy:
    """See the module. A context manager; `upstream` is the Worker's URL, which is also the S3 endpoint's."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname is not None
        assert parts.port is not None
        self._upstream = (parts.hostname, parts.port)
        self.calls: list[Call] = []
        """In the order of their arrival."""
        self.made: list[tuple[Call, Fault]] = []
        """The faults that were really made."""
        self.seconds = 0.0
        """Added to every call before it is forwarded."""
        self.keep_answers = False
        self.answers: list[tuple[Call, bytes]] = []
        """Bodies of answers, without framing and packing, while `keep_answers` is set."""
        self._faults: list[tuple[Fault, Where, int]] = []
        self._lock = threading.Lock()
        self._handlers: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="fault-proxy", daemon=True)
        self._number = 0

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=256, limit=1 << 24), self._loop
        )
        self._server = starting.result()
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """For D1_PROXY_URL."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def s3_endpoint(self) -> str:
        """For R2_ENDPOINT_URL."""
        return self.url + S3_PATH.rstrip("/")

    def fault(self, fault: Fault, *, at: Where = any_call, times: int = 1) -> None:
        """Make this fault at the next call that `at` knows, or at so many of them."""
        with self._lock:
            self._faults.append((fault, at, times))

    def heal(self) -> None:
        """No faults from now on, and no calls so far; the next call is number 1."""
        with self._lock:
            self._faults.clear()
            self.calls.clear()
            self.answers.clear()
            self.made.clear()
            self._number = 0

    def count(self, store: str) -> int:
        """The number of calls for `d1` or `r2`."""
        return sum(call.store == store for call in self.calls)

    def rows_written(self) -> int:
        """By what D1 said of the calls with answers that were kept."""
        return self._rows("rows_written")

    def rows_read(self) -> int:
        """As `rows_written`."""
        return self._rows("rows_read")

    def _rows(self, figure: str) -> int:
        rows = 0
        for call, answer in self.answers:
            if call.store == "d1":
                results: Any = json.loads(answer)
                results = results if isinstance(results, list) else [results]
                rows += sum(result["meta"][figure] for result in results)
        return rows

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _close(self) -> None:
        self._server.close()
        for handler in list(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()

    def _note(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Call:
        with self._lock:
            self._number += 1
            call = Call(number=self._number, method=method, target=target, headers=headers, body=body)
            self.calls.append(call)
            return call

    def _fault_of(self, call: Call) -> Fault | None:
        with self._lock:
            for place, (fault, at, times) in enumerate(self._faults):
                if at(call):
                    self._faults[place : place + 1] = [(fault, at, times - 1)] if times > 1 else []
                    self.made.append((call, fault))
                    return fault
        return None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        # Small packets each way: Nagle's algorithm would add 40 ms to many a call.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        upstream: list[asyncio.StreamReader | asyncio.StreamWriter] = []
        try:
            while await self._exchange(reader, writer, upstream):
                pass
        # A client that goes away is what many faults lead to.
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            for end in (writer, *upstream[1:]):
                assert isinstance(end, asyncio.StreamWriter)
                end.close()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: list[Any]
    ) -> bool:
        """One call and its answer; whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        (method, target, _), headers = _parsed(head)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        assert "transfer-encoding" not in headers, "neither client of ours sends chunks"
        call = self._note(method, target, headers, body)
        fault = self._fault_of(call)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        match fault:
            case Refuse(status=status):
                writer.write(_refusal(call, status))
                await writer.drain()
                return True
            case Reset(applied=False):
                _reset(writer)
                return False
            case _:
                pass
        answer_head, answer = await self._forward(head + body, method, upstream)
        if self.keep_answers:
            self.answers.append((call, _plain(answer_head, answer)))
        match fault:
            case Reset():
                _reset(writer)
                return False
            case Hold():
                await reader.read()
                return False
            case Half(hold=hold):
                # An answer without a body is cut in its first line: with the status there nothing is lost.
                cut = answer_head + answer[: len(answer) // 2] if answer else answer_head[:10]
                writer.write(cut)
                await writer.drain()
                if hold:
                    await reader.read()
                return False
            case Drip(size=size, pause=pause):
                writer.write(answer_head)
                for start in range(0, len(answer), size):
                    writer.write(answer[start : start + size])
                    await writer.drain()
                    await asyncio.sleep(pause)
            case _:
                writer.write(answer_head + answer)
                await writer.drain()
        return True

    async def _forward(self, request: bytes, method: str, upstream: list[Any]) -> tuple[bytes, bytes]:
        """The upstream's answer, head and body, over the one connection that this client's calls share."""
        if not upstream:
            opened = await asyncio.open_connection(*self._upstream, limit=1 << 24)
            opened[1].get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            upstream += opened
        source, sink = upstream
        sink.write(request)
        await sink.drain()
        head = await source.readuntil(b"\r\n\r\n")
        (_, status, *_), headers = _parsed(head)
        if method == "HEAD" or status in ("204", "304"):
            return head, b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return head, await _chunks(source)
        return head, await source.readexactly(int(headers["content-length"]))


def _parsed(head: bytes) -> tuple[list[str], dict[str, str]]:
    """The words of the first line, and the headers by lower-case name."""
    line, *fields = head.decode("latin-1").split("\r\n")
    headers = {}
    for text in filter(None, fields):
        name, _, value = text.partition(":")
        headers[name.strip().lower()] = value.strip()
    return line.split(" ", 2), headers


def _plain(head: bytes, body: bytes) -> bytes:
    """The body without framing and packing."""
    _, headers = _parsed(head)
    if "transfer-encoding" in headers:
        pieces = []
        while (size := int(body[: (start := body.index(b"\r\n") + 2)], 16)) > 0:
            pieces.append(body[start : start + size])
            body = body[start + size + 2 :]
        body = b"".join(pieces)
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


async def _chunks(source: asyncio.StreamReader) -> bytes:
    """A chunked body as it came, framing included."""
    body = b""
    while True:
        line = await source.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        body += line + await source.readexactly(size + 2)
        if size == 0:
            return body


def _refusal(call: Call, status: int) -> bytes:
    if call.store == "r2":
        code, message = _S3_ERRORS[status]
        kind, body = "application/xml", f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    else:
        error, message, retryable = _D1_ERRORS[status]
        kind = "application/json"
        body = json.dumps({"error": {"kind": error, "message": message, "retryable": retryable}})
    head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + ("" if call.method == "HEAD" else body)).encode()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST and no FIN, as a peer that died does."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
