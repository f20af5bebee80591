"""Publishers of many feeds on few hosts, in a process of their own: they answer as slowly as real ones, and
keep a log that shows how politely they were asked.

Each host is an address of its own. A feed's document has 30 items; after `publish` each feed has another one,
with other items. No document names an image, so that nothing beyond these hosts is ever asked.
"""

import asyncio
import gc
import math
import multiprocessing
import random
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.documents import made_up_feeds
from benchmarks.server import _allow_files, _listen

_TEMPLATES = 20
_LONGEST = 9.0
"""Seconds of a response: none is a time-out."""
_START_SECONDS = 60.0
_SITE = b"site-0.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is published, and how slowly."""

    feeds: int
    hosts: int
    response: float = 0.35
    """The median of a response in seconds; 0 for at once."""
    sigma: float = 1.0
    """Of its logarithm: the mean is then 1.65 times the median."""
    network: str = "127"
    """The first numbers of all addresses: `127` or `10.198`."""

    def host(self, feed: int) -> str:
        """The address of the host that has this feed."""
        return self.address(feed % self.hosts)

    def address(self, number: int) -> str:
        net, last = divmod(number, 250)
        return f"{self.network}.{net}.{last + 1}" if "." in self.network else f"127.9.{net}.{last + 1}"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request and its answer. Times are of the machine's steady clock, which its processes share."""

    feed: int
    host: str
    by: str
    """The address that asked."""
    version: int
    """Of the document; 0 for 304."""
    began: float
    ended: float


class Publishers:
    """The running server, seen from another process."""

    def __init__(self, plan: Plan, port: int, pid: int, connection: Connection) -> None:
        self.plan = plan
        self.port = port
        self.pid = pid
        self._connection = connection
        self._guids = [_guids(template) for template in _templates()]

    def url(self, feed: int) -> str:
        return f"http://{self.plan.host(feed)}:{self.port}/{feed}.xml"

    def asked(self, since: int = 0) -> list[Asked]:
        """The log from its entry of this number on: answers that are complete, in the order of their ends."""
        found: list[Asked] = self._control("asked", since)
        return found

    def publish(self) -> None:
        """Give each feed another document."""
        self._control("publish", 0)

    def guids(self, feed: int, version: int) -> set[str]:
        """Of the items in a version of a feed's document."""
        return {guid.replace(_SITE, _site(feed, version)).decode() for guid in self._guids[feed % _TEMPLATES]}

    def register(self, file: Path) -> None:
        """Write a feeds.yaml of all feeds."""
        lines = (
            f"  - {{url: '{self.url(feed)}', id: {feed_id(feed)}, allow_private: true, shared: true}}\n"
            for feed in range(self.plan.feeds)
        )
        file.write_text("feeds:\n" + "".join(lines), "utf-8")

    def _control(self, what: str, argument: int) -> Any:
        self._connection.send((what, argument))
        return self._connection.recv()


def feed_id(feed: int) -> str:
    """The id under which a feed is registered."""
    return f"f{feed:06}"


@contextmanager
def publishing(plan: Plan) -> Iterator[Publishers]:
    """Serve until the end of the block.

    Raises:
        OSError: an address is none of this machine.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(plan, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_START_SECONDS):
            raise TimeoutError(f"the publishers said nothing for {_START_SECONDS:g} s")
        port = ours.recv()
        if isinstance(port, OSError):
            raise port
        yield Publishers(plan, port, process.pid or 0, ours)
    finally:
        process.terminate()
        process.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How the publishers were asked."""

    requests: int
    by: tuple[str, ...]
    """The addresses that asked."""
    feeds_at_once: int
    """Requests for a feed before the one before it was answered."""
    hosts_at_once: int
    """The same for a host."""
    shortest_gap: float
    """Seconds between an answer of a host and the next request to it."""


def manners(asked: Sequence[Asked]) -> Manners:
    """How polite these requests were."""
    return Manners(
        requests=len(asked),
        by=tuple(sorted({each.by for each in asked})),
        feeds_at_once=sum(gap < 0 for gap in _gaps(asked, lambda each: each.feed)),
        hosts_at_once=sum(gap < 0 for gap in _gaps(asked, lambda each: each.host)),
        shortest_gap=min(_gaps(asked, lambda each: each.host), default=math.inf),
    )


def _gaps(asked: Iterable[Asked], of: Callable[[Asked], object]) -> Iterator[float]:
    found: dict[object, list[Asked]] = defaultdict(list)
    for each in asked:
        found[of(each)].append(each)
    for requests in found.values():
        requests.sort(key=lambda each: each.began)
        for one, next_one in pairwise(requests):
            yield next_one.began - one.ended


def _templates() -> list[bytes]:
    """Documents with links as guids and without images."""
    found = []
    for number, document in list(enumerate(made_up_feeds(2 * _TEMPLATES)))[1::2]:
        body = document.body.replace(b"site-%d.example" % number, _SITE)
        found.append(re.sub(rb"(<|&lt;)img ", rb"\1b ", body))
    return found


def _guids(template: bytes) -> list[bytes]:
    return re.findall(rb"<guid>([^<]+)</guid>", template)


def _site(feed: int, version: int) -> bytes:
    return b"site-%d-%d.example" % (feed, version)


def _run(plan: Plan, connection: Connection) -> None:
    # Ctrl-C goes to the whole group; who started us ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _allow_files(plan.hosts + 4_000)
    try:
        asyncio.run(_Server(plan, connection).serve())
    except OSError as error:
        connection.send(error)


class _Server:
    def __init__(self, plan: Plan, connection: Connection) -> None:
        self.plan = plan
        self.asked: list[Asked] = []
        self.version = 1
        self.templates = _templates()
        self._dice = random.Random(1)
        self._connection = connection
        self._is_over = asyncio.Event()
        gc.freeze()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        # Kept: a server that nobody refers to ends.
        servers, port = [], 0
        for number in range(min(self.plan.hosts, self.plan.feeds)):
            listener = _listen(self.plan.address(number), port)
            port = listener.getsockname()[1]
            host = self.plan.address(number)
            servers.append(await loop.create_server(partial(_Protocol, self, host), sock=listener))
        self._connection.send(port)
        loop.add_reader(self._connection.fileno(), self._control)
        await self._is_over.wait()

    def _control(self) -> None:
        try:
            what, argument = self._connection.recv()
        except EOFError:
            # Who started us is gone.
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._is_over.set()
            return
        if what == "publish":
            self.version += 1
        self._connection.send(self.asked[argument:] if what == "asked" else None)

    def seconds(self) -> float:
        """Of the next response."""
        if not self.plan.response:
            return 0.0
        return min(self._dice.lognormvariate(math.log(self.plan.response), self.plan.sigma), _LONGEST)

    def document(self, feed: int) -> bytes:
        return self.templates[feed % _TEMPLATES].replace(_SITE, _site(feed, self.version))


class _Protocol(asyncio.Protocol):
    """One connection; a request comes after the answer to the one before."""

    def __init__(self, server: _Server, host: str) -> None:
        self._server = server
        self._host = host
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._by = str(transport.get_extra_info("peername")[0])

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if b"\r\n\r\n" not in self._buffer:
            return
        head, self._buffer = self._buffer.lower(), b""
        began = time.monotonic()
        found = re.match(rb"get /(\d+)\.xml ", head)
        if found is None:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        answer = partial(self._answer, int(found[1]), head, began)
        if seconds := self._server.seconds():
            asyncio.get_running_loop().call_later(seconds, answer)
        else:
            answer()

    def _answer(self, feed: int, head: bytes, began: float) -> None:
        server = self._server
        etag = b'"%d"' % server.version
        version = 0 if etag in head else server.version
        # Before it is written: the next request cannot come earlier.
        server.asked.append(Asked(feed, self._host, self._by, version, began, time.monotonic()))
        if version:
            body = server.document(feed)
            kind = b"Content-Type: application/rss+xml\r\n"
            line = b"HTTP/1.1 200 OK\r\n%sETag: %s\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(line % (kind, etag, len(body)) + body)
        else:
            self._transport.write(b"HTTP/1.1 304 Not Modified\r\nETag: %s\r\n\r\n" % etag)
