"""A fast HTTP/1.1 server on loopback, in a process of its own: every feed on a 127.x.y.z address of its own.

It answers conditional requests and keeps a record of all, which is asked for on 127.0.0.1 at the same port.
What it serves is in documents.py.
"""

import asyncio
import gc
import json
import multiprocessing
import resource
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from benchmarks.documents import Document

_ADDRESSES_A_NET = 250
_BUILD_SECONDS = 120.0
_CONTROL_SECONDS = 30.0
_SPARE_FILES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A served document, without its body."""

    url: str
    name: str
    bytes: int
    etag: str
    last_modified: str
    items: int | None
    images: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request and its answer. The validators are what the request carried."""

    url: str
    status: int
    etag: str | None
    last_modified: str | None

    @property
    def is_conditional(self) -> bool:
        return self.etag is not None or self.last_modified is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Requests since the record was last begun anew, by answer and by kind."""

    ok: int
    not_modified: int
    other: int
    conditional: int
    unconditional: int


class Running:
    """A server that runs, seen from another process."""

    def __init__(self, port: int, feeds: Sequence[Feed]) -> None:
        self.port = port
        self.feeds = tuple(feeds)
        # A proxy of the environment has no business on loopback.
        self._opener = build_opener(ProxyHandler({}))

    def counts(self) -> Counts:
        return Counts(**self._control("counts"))

    def asked(self) -> list[Asked]:
        """Every request since the record was begun anew, oldest first."""
        return [Asked(**entry) for entry in self._control("asked")]

    def forget(self) -> None:
        """Begin the record anew."""
        self._control("forget")

    def _control(self, what: str) -> Any:
        request = Request(f"http://127.0.0.1:{self.port}/{what}")
        with self._opener.open(request, timeout=_CONTROL_SECONDS) as answer:
            return json.load(answer)


@contextmanager
def serving(build: Callable[[], Sequence[Document]], *, port: int = 0) -> Iterator[Running]:
    """Serve what `build` gives until the block ends. Port 0 takes one that is free.

    `build` is called in the server's process, so that the documents stay out of this one.

    Raises:
        OSError: the port is taken, or this system has no addresses 127.x.y.z beyond the first (macOS).
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(build, port, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_BUILD_SECONDS):
            raise TimeoutError(f"the server said nothing for {_BUILD_SECONDS:g} s")
        try:
            answer = ours.recv()
        except EOFError:
            raise OSError("the server's process ended before it listened; see its message above") from None
        if isinstance(answer, OSError):
            raise answer
        yield Running(*answer)
    finally:
        process.terminate()
        process.join()


def _run(build: Callable[[], Sequence[Document]], port: int, connection: Connection) -> None:
    # Ctrl-C goes to the whole group; who started us ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    documents = build()
    # The documents live as long as the process: a collection would walk them in the middle of a measurement.
    gc.freeze()
    asyncio.run(_serve(documents, port, connection))


async def _serve(documents: Sequence[Document], port: int, connection: Connection) -> None:
    try:
        _allow_files(len(documents) + _SPARE_FILES)
        control = _listen("127.0.0.1", port)
        port = control.getsockname()[1]
        sockets = [_listen(_address(number), port) for number in range(len(documents))]
    except OSError as error:
        connection.send(error)
        return
    asked: list[Asked] = []
    feeds = [_feed(document, number, port) for number, document in enumerate(documents)]
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(partial(_control, asked), sock=control)]
    for feed, document, listener in zip(feeds, documents, sockets, strict=True):
        site = _Site(feed, document, asked)
        servers.append(await loop.create_server(partial(_Protocol, site), sock=listener))
    connection.send((port, feeds))
    # The other end closes with the process that started us, however that one ends: no server outlives it.
    left_alone = asyncio.Event()
    loop.add_reader(connection.fileno(), left_alone.set)
    await left_alone.wait()


def _allow_files(count: int) -> None:
    """A socket an address: more than the 1,024 files that most systems allow unless asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard) if hard > 0 else count, hard))


def _address(number: int) -> str:
    """127.1.0.1 and on, 250 a net: 127.0.0.x is left to others."""
    net, host = divmod(number, _ADDRESSES_A_NET)
    return f"127.{1 + net // 256}.{net % 256}.{1 + host}"


def _listen(address: str, port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"{address} port {port}: {error.strerror}") from None
    return listener


def _feed(document: Document, number: int, port: int) -> Feed:
    return Feed(
        url=f"http://{_address(number)}:{port}/{quote(document.name)}",
        name=document.name,
        bytes=len(document.body),
        etag=document.etag,
        last_modified=document.last_modified,
        items=document.items,
        images=document.images,
    )


class _Protocol(asyncio.Protocol):
    """One connection: as many requests as come, one after the other. Bodies of requests are not read."""

    def __init__(self, answer: "Callable[[bytes, Mapping[bytes, bytes]], bytes]") -> None:
        self._answer = answer
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            line, *fields = head.split(b"\r\n")
            headers = {}
            for field in fields:
                name, _, value = field.partition(b":")
                headers[name.lower()] = value.strip()
            self._transport.write(self._answer(line, headers))
            if headers.get(b"connection", b"").lower() == b"close":
                self._transport.close()
                return


class _Site:
    """Answers for one address, which has one document."""

    def __init__(self, feed: Feed, document: Document, asked: list[Asked]) -> None:
        validators = f"ETag: {document.etag}\r\nLast-Modified: {document.last_modified}\r\n"
        self._feed = feed
        self._asked = asked
        self._line = f"GET /{quote(document.name)} ".encode()
        self._etag = document.etag.encode()
        self._last_modified = document.last_modified.encode()
        self._ok = _response(
            "200 OK", f"Content-Type: {document.content_type}\r\n{validators}", document.body
        )
        self._not_modified = f"HTTP/1.1 304 Not Modified\r\n{validators}\r\n".encode()
        self._not_found = _response("404 Not Found", "", b"")

    def __call__(self, line: bytes, headers: Mapping[bytes, bytes]) -> bytes:
        etag, since = headers.get(b"if-none-match"), headers.get(b"if-modified-since")
        if not line.startswith(self._line):
            status, answer = 404, self._not_found
        # If-None-Match rules where both are there (RFC 9110 13.2.2).
        elif self._etag in etag if etag is not None else since == self._last_modified:
            status, answer = 304, self._not_modified
        else:
            status, answer = 200, self._ok
        self._asked.append(
            Asked(url=self._feed.url, status=status, etag=_text(etag), last_modified=_text(since))
        )
        return answer


def _control(asked: list[Asked]) -> _Protocol:
    def answer(line: bytes, _headers: Mapping[bytes, bytes]) -> bytes:
        result: object
        match line.split(b" ")[1:2]:
            case [b"/counts"]:
                result = _counts(asked)
            case [b"/asked"]:
                result = [asdict(request) for request in asked]
            case [b"/forget"]:
                asked.clear()
                result = None
            case _:
                return _response("404 Not Found", "", b"")
        return _response("200 OK", "Content-Type: application/json\r\n", json.dumps(result).encode())

    return _Protocol(answer)


def _counts(asked: Sequence[Asked]) -> dict[str, int]:
    statuses = Counter(request.status for request in asked)
    conditional = sum(request.is_conditional for request in asked)
    return {
        "ok": statuses[200],
        "not_modified": statuses[304],
        "other": len(asked) - statuses[200] - statuses[304],
        "conditional": conditional,
        "unconditional": len(asked) - conditional,
    }


def _response(status: str, headers: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
