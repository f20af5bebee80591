"""A real HTTP server on loopback that answers as it is set and remembers the requests.

Not a mock: it speaks HTTP over sockets, well or badly as a test wants it.

    with FeedServer() as server:
        server.route("127.0.0.2", "/feed", Answer(body=RSS, etag='"1"'))
        url = server.url("127.0.0.2", "/feed")          # http://127.0.0.2:PORT/feed
        ...
        assert server.requests[0].headers["user-agent"] == "..."

Every 127.x.y.z is a host of its own: all listen on one port, each from its first `route` (or `listen`)
on; a host never named refuses connections. Several answers for one route are given one after the other,
the last one for ever; a function of the request makes answers on the spot. A path without a route is 404.
`FeedServer(tls=context)` speaks TLS on all of its hosts. `route`, `requests` and the rest may be used from
any thread while it serves.
"""

import asyncio
import contextlib
import gzip
import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it arrived."""

    host: str
    """The loopback address it came to."""
    method: str
    target: str
    """As it stood in the request line."""
    headers: Mapping[str, str]
    """Lower-case names; several fields of one name joined by ", "."""
    client: tuple[str, int]
    connection: int
    """Counts connections of the server from 1: two requests on one connection share it."""
    arrived: float
    """time.monotonic() when its head was complete."""
    head: bytes = field(repr=False)
    """Request line and headers, byte for byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer. Nothing is added but Content-Length and Connection: close."""

    status: int = 200
    headers: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    """Values go out as Latin-1."""
    body: bytes = b""
    etag: str | None = None
    """Sent as ETag; a request with exactly this If-None-Match gets a 304 without body."""
    last_modified: str | None = None
    """Sent as Last-Modified; likewise with If-Modified-Since, where there is no If-None-Match."""
    gzip: bool = False
    """Pack the body and say so."""
    chunked: bool = False
    """Send chunks of 1,000 bytes instead of a Content-Length."""
    cut_after: int | None = None
    """Close the connection after that many bytes of the body as sent, length or end chunk unkept."""
    drip: tuple[int, float] | None = None
    """Send the body in pieces of so many bytes, so many seconds apart."""
    delay: float = 0.0
    """Seconds before the head."""
    wait_for: threading.Event | None = None
    """Send the head only when this is set."""
    keep_alive: bool = False
    """Leave the connection open for the next request."""
    raw: bytes | None = None
    """Send exactly these bytes and close, whatever the other fields but `drip` and `endless` say."""
    endless: bytes = b""
    """After `raw`, send this again and again for as long as anybody listens."""


Route = Answer | Callable[[Request], Answer]


class FeedServer:
    """See the module. A context manager; port 0 is chosen by the system."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        """In the order of their arrival."""
        self.open: dict[str, int] = {}
        """Connections open now, by host."""
        self.most_open: dict[str, int] = {}
        """The most connections a host ever had open at once; "" counts all hosts together."""
        self.bytes_sent = 0
        """The bytes of bodies, and of all that is `raw`; what is in the system's buffers counts as sent."""
        self._tls = tls
        self._routes: dict[tuple[str, str], list[Route]] = {}
        self._listening: dict[str, asyncio.Server] = {}
        self._handlers: set[asyncio.Task[None]] = set()
        self._connections = 0
        # One port for all hosts: no other process is given it, on whichever address, while this is open.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("0.0.0.0", 0))
        self._port = self._reserved.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="feed-server", daemon=True)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._thread.start()
        self.listen("127.0.0.1")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._reserved.close()

    @property
    def port(self) -> int:
        return self._port

    def url(self, host: str, path: str) -> str:
        return f"{'http' if self._tls is None else 'https'}://{host}:{self._port}{path}"

    def route(self, host: str, path: str, *answers: Route) -> str:
        """Answer `path` (with its query, as it is requested) on `host`, from now on; gives its URL."""
        self.listen(host)
        with self._lock:
            self._routes[host, path] = list(answers)
        return self.url(host, path)

    def listen(self, host: str) -> None:
        """Accept connections on `host` (127.x.y.z)."""
        with self._lock:
            if host not in self._listening:
                starting = asyncio.run_coroutine_threadsafe(self._listen(host), self._loop)
                self._listening[host] = starting.result()

    def asked(self, host: str, path: str | None = None) -> list[Request]:
        """The requests that came to a host, or to one path of it."""
        return [r for r in self.requests if r.host == host and path in (None, r.target)]

    def forget(self) -> None:
        """Empty the log."""
        self.requests.clear()
        self.most_open.clear()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self, host: str) -> asyncio.Server:
        return await asyncio.start_server(
            lambda reader, writer: self._connected(host, reader, writer),
            host,
            self._port,
            family=socket.AF_INET,
            ssl=self._tls,
            backlog=1024,
        )

    async def _close(self) -> None:
        # A connection that was accepted just now has no transport yet, and would never be closed: asyncio
        # makes none for a server that is closed. Some turns do; a TLS handshake may never end.
        for _ in range(100):
            if asyncio.all_tasks() <= {asyncio.current_task(), *self._handlers}:
                break
            await asyncio.sleep(0)
        for server in self._listening.values():
            server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for handler in list(self._handlers):
                handler.cancel()
            await asyncio.wait(others, timeout=0.01)
        for server in self._listening.values():
            await server.wait_closed()
        # What was aborted is closed in the loop's next turn.
        await asyncio.sleep(0)

    async def _connected(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self._connections += 1
        number = self._connections
        self._count(host, 1)
        try:
            while await self._exchange(host, number, reader, writer):
                pass
        # A client that goes away is what many tests are about.
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._count(host, -1)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            # Cancelled while a client left the answer unread.
            writer.transport.abort()
            self._handlers.discard(task)

    def _count(self, host: str, change: int) -> None:
        for key in (host, ""):
            self.open[key] = self.open.get(key, 0) + change
            self.most_open[key] = max(self.most_open.get(key, 0), self.open[key])

    async def _exchange(
        self, host: str, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """One request and its answer; whether the connection stays open."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        request = _parse(head, host, number, writer.get_extra_info("peername")[:2])
        self.requests.append(request)
        answer = self._answer(request)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.wait_for is not None:
            await asyncio.to_thread(answer.wait_for.wait, 30)
        if answer.raw is not None:
            await self._send(writer, answer.raw, answer.drip)
            while answer.endless:
                await self._send(writer, answer.endless, answer.drip)
            return False
        head_out, body = _render(answer, request)
        whole = answer.cut_after is None
        body = body[: answer.cut_after]
        if answer.drip is None:
            # One write: the head alone would cost a packet, and a round trip with Nagle's algorithm.
            await self._send(writer, head_out + body, None)
            self.bytes_sent -= len(head_out)
        else:
            writer.write(head_out)
            await self._send(writer, body, answer.drip)
        return answer.keep_alive and whole

    async def _send(self, writer: asyncio.StreamWriter, data: bytes, drip: tuple[int, float] | None) -> None:
        size, pause = drip or (max(len(data), 1), 0.0)
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await writer.drain()
            self.bytes_sent += len(data[start : start + size])
            if drip is not None:
                await asyncio.sleep(pause)

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            routes = self._routes.get((request.host, request.target))
            if routes is None:
                return Answer(status=404)
            route = routes.pop(0) if len(routes) > 1 else routes[0]
        return route if isinstance(route, Answer) else route(request)


def _parse(head: bytes, host: str, number: int, client: tuple[str, int]) -> Request:
    line, *fields = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    for text in filter(None, fields):
        name, _, value = text.partition(":")
        name = name.strip().lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return Request(
        host=host,
        method=method,
        target=target,
        headers=headers,
        client=client,
        connection=number,
        arrived=time.monotonic(),
        head=head,
    )


def _render(answer: Answer, request: Request) -> tuple[bytes, bytes]:
    """Head and body as they go over the wire."""
    given = answer.headers.items() if isinstance(answer.headers, Mapping) else answer.headers
    fields = list(given)
    status, body = answer.status, answer.body
    if answer.etag is not None:
        fields.append(("ETag", answer.etag))
    if answer.last_modified is not None:
        fields.append(("Last-Modified", answer.last_modified))
    if _is_current(answer, request):
        status, body = 304, b""
    elif answer.gzip:
        body = gzip.compress(body, mtime=0)
        fields.append(("Content-Encoding", "gzip"))
    names = {name.lower() for name, _ in fields}
    if answer.chunked and status != 304:
        fields.append(("Transfer-Encoding", "chunked"))
        pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    elif "content-length" not in names and status not in {204, 304}:
        fields.append(("Content-Length", str(len(body))))
    if not answer.keep_alive and "connection" not in names:
        fields.append(("Connection", "close"))
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Whatever"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), body


def _is_current(answer: Answer, request: Request) -> bool:
    """RFC 9110 13.2.2, with exact comparison: a validator that was touched on its way does not match."""
    if answer.status != 200:
        return False
    if "if-none-match" in request.headers:
        return answer.etag is not None and request.headers["if-none-match"] == answer.etag
    since = request.headers.get("if-modified-since")
    return since is not None and since == answer.last_modified


def etag_of(body: bytes) -> str:
    """A strong entity tag for these bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'
