"""The polite client: one GET, its head, its body in pieces, on a connection of its own or on a kept one.

Not here: which addresses may be connected to (`reach.py`, `guard.py`), whose turn it is (`pacing.py`),
what a status means and where a redirect leads (`statuses.py`, `hops.py`), how policies differ for images
(`image_fetch.py`).
It speaks to httpx's transport and not to its client, so there are no cookies, no netrc, no redirects
followed unasked and no proxy from the environment.
"""

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.addresses import AddressRange
from rss_pipeline.collector.http.errors import FetchError, body_error, request_error
from rss_pipeline.collector.http.guarded_transport import Network, guarded_transport
from rss_pipeline.collector.http.headers import Head, extra_headers
from rss_pipeline.collector.http.metered_stream import meter_body
from rss_pipeline.collector.http.request_url import RequestUrl
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.tls import tls_context

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json;q=0.9, application/rdf+xml;q=0.8, "
    "application/xml;q=0.7, text/xml;q=0.7, */*;q=0.1"
)
MOST_KEPT = 100
"""Origins with idle connections, at most: files are limited, usually to 1,024 a process."""
KEPT_SECONDS = 5.0
"""How long an idle connection is used again; many servers close theirs about then."""

_DRAINED_BYTES = 16_384
_DRAIN_SECONDS = 1.0

_HUNG_UP = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """How polite and how patient a round is. Times in seconds."""

    user_agent: str
    """Names the project and a contact."""
    accept: str = ACCEPT
    concurrency: int = 5
    """Requests at once, to all hosts together."""
    connections_per_host: int = 1
    host_delay: float = 1.0
    """From the end of one request to a host to the start of the next on that connection."""
    keep_alive: bool = False
    """Ask a host again on the same connection. Not for conditional requests: a 304 with a body, which some
    servers send, spoils a kept connection for whoever comes next."""
    connect_timeout: float = 10.0
    deadline: float = 30.0
    """For all requests of one visit together; waiting for a host's turn does not count."""
    round_seconds: float | None = 120.0
    """What has not begun by then is given back; None is no limit."""
    max_wire_bytes: int = 10_000_000
    max_body_bytes: int = 20_000_000
    max_redirects: int = 5
    proxy: str | None = field(default=None, repr=False)
    """URL of an outbound proxy; may hold its password. Names are resolved there and not checked here."""
    allow_networks: tuple[AddressRange, ...] = ()
    """Ranges that may be connected to although they are not public."""
    allow_ports: frozenset[int] = frozenset()
    """Besides 80 and 443."""
    network: Network = field(default_factory=Network, repr=False)
    """What names and connections come from."""
    ca_file: Path | None = None
    """PEM bundle of authorities to trust besides the usual ones: a company's own, or a test's."""


class HttpResponse:
    """A response whose head has come and whose body has not been read."""

    def __init__(self, response: httpx.Response, host: str) -> None:
        self.status = response.status_code
        self.head = Head(response.headers.raw)
        self._response = response
        self._host = host

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, still content-coded. Raises `FetchError` where they end early."""
        pieces = self._response.aiter_raw()
        while True:
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
            # The library reads what a stranger sends; whatever it trips over is that stranger's trouble.
            except Exception as error:
                raise body_error(error, self._host) from error
            yield piece

    async def drain(self) -> None:
        """Read a short body to its end, so that the connection can be used again. Raises nothing."""
        length = self.head.first("content-length") or ""
        if not length.isdecimal() or len(length) > 5 or int(length) > _DRAINED_BYTES:
            return
        with suppress(FetchError, TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self.chunks():
                    pass


class Client:
    """Asks one hop at a time. Made for one round, inside its event loop."""

    def __init__(self, policy: FetchPolicy) -> None:
        # At DEBUG both libraries log every header, passwords included.
        for name in ("httpx", "httpcore"):
            logger = logging.getLogger(name)
            if logger.level < logging.WARNING:
                logger.setLevel(logging.WARNING)
        self._policy = policy
        self._trust: dict[str, ssl.SSLContext] = {}
        self._lines: dict[object, _PooledTransport] = {}
        self._defaults = [
            (b"User-Agent", policy.user_agent.encode()),
            (b"Accept", policy.accept.encode()),
        ]
        self._timeout = {"connect": policy.connect_timeout, "read": None, "write": None, "pool": None}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for line in self._lines.values():
            await line.transport.aclose()

    @asynccontextmanager
    async def get(
        self, hop: RequestUrl, extra: list[tuple[bytes, bytes]], *, stay: bool = False, allow_private: bool
    ) -> AsyncIterator[HttpResponse]:
        """Ask `hop`; at the end of the block the connection is closed, read out or not.

        `allow_private` lets it be on this machine or the local network. Where the policy keeps connections
        alive, one that was read out stays open if `stay` says so: for a next request to the same origin that
        is known of. Raises `FetchError` where no answer comes.
        """
        stay = stay and self._policy.keep_alive
        line, response = await self._send(hop, extra, stay=stay, allow_private=allow_private)
        connection = meter_body(response, most=self._policy.max_wire_bytes)
        try:
            yield HttpResponse(response, hop.host)
        finally:
            # A connection that breaks while it is closed says nothing about what was read.
            with suppress(httpx.HTTPError, OSError):
                # What came behind the answer would be taken for the next one.
                if stay and connection is not None and not connection.is_read_out:
                    await connection.aclose()
                await response.aclose()
            await self._give_back(line, stay=stay)

    async def _send(
        self, hop: RequestUrl, extra: list[tuple[bytes, bytes]], *, stay: bool, allow_private: bool
    ) -> "tuple[_PooledTransport, httpx.Response]":
        line = self._borrow(hop, allow_private=allow_private)
        watch = _ConnectTrace()
        try:
            request = self._request(hop, extra, watch, stay=stay)
            try:
                return line, await line.transport.handle_async_request(request)
            except _HUNG_UP:
                if not self._policy.keep_alive or watch.connected:
                    raise
            # The server closed the kept connection while our request was on its way (RFC 9112 9.3.1).
            await self._give_back(line, stay=False)
            line = self._borrow(hop, allow_private=allow_private, anew=True)
            return line, await line.transport.handle_async_request(request)
        except BaseException as error:
            await self._give_back(line, stay=False)
            # As in `HttpResponse.chunks`: h11, anyio and httpcore read what a stranger sends.
            if isinstance(error, Exception):
                raise request_error(error, hop.host, connect_timeout=self._policy.connect_timeout) from error
            raise

    def _request(
        self, hop: RequestUrl, extra: list[tuple[bytes, bytes]], watch: "_ConnectTrace", *, stay: bool
    ) -> httpx.Request:
        given = {name.lower() for name, _ in extra}
        headers = [(name, value) for name, value in self._defaults if name.lower() not in given]
        headers.append((b"Accept-Encoding", b"gzip"))
        headers.append((b"Connection", b"keep-alive" if stay else b"close"))
        extensions: dict[str, Any] = {"timeout": self._timeout}
        if self._policy.keep_alive:
            extensions["trace"] = watch
        request = httpx.Request("GET", hop.address, headers=[*headers, *extra], extensions=extensions)
        request.url = _ExactURL(hop)
        return request

    def _borrow(self, hop: RequestUrl, *, allow_private: bool, anew: bool = False) -> "_PooledTransport":
        """Kept connections are one origin's; those that close after each request may be anybody's.

        None that a feed with `allow_private` was given may serve one without.
        """
        key = (hop.origin if self._policy.keep_alive else hop.scheme, allow_private)
        line = self._lines.pop(key, None)
        if line is None or anew:
            line = _PooledTransport(key, self._transport(hop.scheme, allow_private=allow_private))
        # Behind the others: the first ones are those that have been idle longest.
        self._lines[key] = line
        line.users += 1
        return line

    async def _give_back(self, line: "_PooledTransport", *, stay: bool) -> None:
        line.users -= 1
        if not self._policy.keep_alive:
            return
        if not line.users and (not stay or self._lines.get(line.key) is not line):
            await self._close(line)
        if len(self._lines) > MOST_KEPT and (
            idle := [line for line in self._lines.values() if not line.users]
        ):
            await self._close(idle[0])

    async def _close(self, line: "_PooledTransport") -> None:
        if self._lines.get(line.key) is line:
            del self._lines[line.key]
        await line.transport.aclose()

    def _transport(self, scheme: str, *, allow_private: bool) -> httpx.AsyncHTTPTransport:
        """The one place where connections are made. The authorities are read when first needed: it costs
        some 20 ms, and a round of http feeds needs none."""
        policy = self._policy
        if scheme not in self._trust:
            # Else it trusts nobody, and is cheap: httpcore wants a context even where no TLS will be spoken.
            is_tls = scheme == "https"
            trust = tls_context(policy.ca_file) if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._trust[scheme] = trust
        kept = policy.connections_per_host if policy.keep_alive else 0
        return guarded_transport(
            AddressPolicy(
                allow_private=allow_private, networks=policy.allow_networks, ports=policy.allow_ports
            ),
            policy.network,
            trust=self._trust[scheme],
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=kept, keepalive_expiry=KEPT_SECONDS
            ),
            proxy=policy.proxy,
        )


@dataclass(slots=True, eq=False)
class _PooledTransport:
    """A transport, and how many requests run over it."""

    key: object
    transport: httpx.AsyncHTTPTransport
    users: int = 0


class _ConnectTrace:
    """Sees whether a request was given a new connection."""

    def __init__(self) -> None:
        self.connected = False

    async def __call__(self, event: str, _: Mapping[str, object]) -> None:
        if event == "connection.connect_tcp.started":
            self.connected = True


class _ExactURL(httpx.URL):
    """Gives path and query as registered, where httpx would normalise dot segments and percent signs.

    httpcore's "target" extension does the same, and would also rewrite the CONNECT to a proxy.
    """

    def __init__(self, hop: RequestUrl) -> None:
        super().__init__(hop.address)
        self._target = hop.target

    @property
    def raw_path(self) -> bytes:
        return self._target


def access_headers(access: Access) -> list[tuple[bytes, bytes]]:
    """A feed's extra headers and its password (RFC 7617), for the registered origin and no other."""
    headers = extra_headers(access.headers)
    if access.username is not None and all(name.lower() != b"authorization" for name, _ in headers):
        pair = f"{access.username}:{access.password or ''}".encode()
        headers.append((b"Authorization", b"Basic " + base64.b64encode(pair)))
    return headers
