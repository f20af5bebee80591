"""The HTTP client: one GET, its head, and its body in chunks, on a new connection or on a kept one.

Not here: the addresses that are allowed (`address_policy.py`, `guarded_transport.py`), the turns of hosts
(`fetch/pacing.py`), the meaning of a status (`status_errors.py`) and redirects (`redirects.py`).
It uses httpcore, the transport of httpx, and not httpx's client, so it has no cookies, no netrc, no proxy
from the environment, and follows no redirect by itself.
"""

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpcore

from rss_pipeline.collector.http.address_policy import AddressPolicy, OwnMachine, PrivateHosts
from rss_pipeline.collector.http.addresses import AddressRange
from rss_pipeline.collector.http.fetch_error import FetchError, NotSent
from rss_pipeline.collector.http.guarded_transport import Network, Transport, exact_url, guarded_transport
from rss_pipeline.collector.http.headers import Head, extra_headers
from rss_pipeline.collector.http.metered_stream import meter_body
from rss_pipeline.collector.http.network_errors import body_error, request_error
from rss_pipeline.collector.http.request_url import RequestUrl
from rss_pipeline.collector.models.feed import USUAL_BYTES, Access
from rss_pipeline.collector.models.network import network_of
from rss_pipeline.tls import tls_context

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json;q=0.9, application/rdf+xml;q=0.8, "
    "application/xml;q=0.7, text/xml;q=0.7, */*;q=0.1"
)
MOST_KEPT = 100
"""Origins with idle connections, at most: open files are limited, usually to 1,024 a process."""
KEPT_SECONDS = 5.0
"""An idle connection is reused for so long; many servers close theirs about then."""

_DRAINED_BYTES = 16_384
_DRAIN_SECONDS = 1.0

_CONNECTION_CLOSED = (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """The limits of a fetch round: rates, time-outs, sizes and allowed addresses. Times are in seconds."""

    user_agent: str
    """The name of the project and a contact."""
    accept: str = ACCEPT
    concurrency: int = 5
    """Requests at the same time, to all hosts together."""
    connections_per_host: int = 1
    host_delay: float = 1.0
    """From the end of one request to a host to the start of the next on that connection."""
    keep_alive: bool = False
    """Reuse a connection for the next request to its host. Not for conditional requests: some servers send
    a 304 with a body, which the next request on that connection would read as its answer."""
    connect_timeout: float = 10.0
    deadline: float = 30.0
    """For all requests of one visit together; waiting for a host's turn does not count."""
    round_seconds: float | None = 120.0
    """Visits that have not begun by then are released; None is no limit."""
    max_wire_bytes: int = 10_000_000
    max_body_bytes: int = USUAL_BYTES
    max_redirects: int = 5
    proxy: str | None = field(default=None, repr=False)
    """URL of an outbound proxy; may hold its password. Names are resolved there and not checked here."""
    allow_networks: tuple[AddressRange, ...] = ()
    """Ranges that are allowed although they are not public."""
    allow_ports: frozenset[int] = frozenset()
    """Ports that are allowed besides 80 and 443."""
    network: Network = field(default_factory=Network, repr=False)
    """The name resolver and the dialer."""
    machine: OwnMachine = field(default_factory=OwnMachine, repr=False)
    """This machine's addresses, and the servers of this installation, which are never requested."""
    ca_file: Path | None = None
    """PEM file of certificate authorities to trust besides the usual ones: a company's own, or a test's."""

    def of_size(self, most: int | None) -> "FetchPolicy":
        """The same for bodies of at most `most` bytes, as sent and decompressed; None changes nothing.

        A body that is larger than usual may take as much longer.
        """
        if most is None:
            return self
        seconds = self.deadline * max(1.0, most / self.max_body_bytes)
        return replace(self, max_wire_bytes=most, max_body_bytes=most, deadline=seconds)


class HttpResponse:
    """A response: its head has been read, its body has not."""

    def __init__(self, response: httpcore.Response, host: str, *, is_direct: bool = True) -> None:
        self.status = response.status
        self.head = Head(response.headers)
        self._response = response
        self._host = host
        stream = response.extensions.get("network_stream")
        # Asked now: a closed connection does not know it any more.
        where = stream.get_extra_info("server_addr") if is_direct and stream is not None else None
        self.address = str(where[0]) if where else None
        """The address that answered; None behind an outbound proxy."""

    def network(self) -> str | None:
        """The network of the address that answered; None behind an outbound proxy."""
        return None if self.address is None else network_of(self.address)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes of the body as they arrive, content-coded. Raises `FetchError` if they end early."""
        pieces = self._response.aiter_stream()
        while True:
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
            # The library parses bytes of any server: every error it raises on them is that server's.
            except Exception as error:
                raise body_error(error, self._host) from error
            yield piece

    async def drain(self) -> None:
        """Read a short body to its end, so that the connection can be reused. Raises nothing."""
        length = self.head.first("content-length") or ""
        if not length.isdecimal() or len(length) > 5 or int(length) > _DRAINED_BYTES:
            return
        with suppress(FetchError, TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self.chunks():
                    pass


class Client:
    """Sends requests to one URL at a time. Made for one round, inside its event loop."""

    def __init__(self, policy: FetchPolicy) -> None:
        # At DEBUG it logs every header, passwords included.
        logger = logging.getLogger("httpcore")
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
        self,
        url: RequestUrl,
        extra: list[tuple[bytes, bytes]],
        *,
        stay: bool = False,
        most: int | None = None,
        private: PrivateHosts,
        is_wanted: Callable[[], bool] = lambda: True,
        on_accepted: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[HttpResponse]:
        """Send a GET to `url`; the connection is closed at the end of the block, read to its end or not.

        At most `most` bytes of its body are read, or else as many as the policy allows.
        `private` has the hosts that may be requested although they are private. If the policy keeps
        connections alive, `stay` leaves one open that was read to its end, for the next request to the same
        origin. Name and connection take their time: `on_accepted` is called when a host has accepted a new
        one, and `is_wanted` after both, right before the request is sent. Raises `FetchError` if no answer
        comes, `NotSent` if it was no longer wanted.
        """
        stay = stay and self._policy.keep_alive
        line, response = await self._send(
            url, extra, _Trace(is_wanted, on_accepted), stay=stay, private=private
        )
        answer = HttpResponse(response, url.host, is_direct=self._policy.proxy is None)
        connection = meter_body(
            response.extensions.get("network_stream"),
            answer.status,
            answer.head,
            most=most or self._policy.max_wire_bytes,
        )
        try:
            yield answer
        finally:
            # A connection that fails while it is closed does not make the response wrong.
            with suppress(httpcore.NetworkError, httpcore.ProtocolError, OSError):
                # Bytes after the end of the response would be read as the next one.
                if stay and connection is not None and not connection.is_read_out:
                    await connection.aclose()
                await response.aclose()
            await self._give_back(line, stay=stay)

    async def _send(
        self,
        url: RequestUrl,
        extra: list[tuple[bytes, bytes]],
        trace: "_Trace",
        *,
        stay: bool,
        private: PrivateHosts,
    ) -> "tuple[_PooledTransport, httpcore.Response]":
        line = self._borrow(url, private)
        try:
            request = self._request(url, extra, trace, stay=stay)
            try:
                return line, await line.transport.handle_async_request(request)
            except _CONNECTION_CLOSED:
                if not self._policy.keep_alive or trace.connected:
                    raise
            # The server closed the kept connection while the request was being sent (RFC 9112 9.3.1).
            await self._give_back(line, stay=False)
            line = self._borrow(url, private, anew=True)
            return line, await line.transport.handle_async_request(request)
        except BaseException as error:
            await self._give_back(line, stay=False)
            # As in `HttpResponse.chunks`: h11, anyio and httpcore parse bytes of any server.
            if isinstance(error, Exception) and not isinstance(error, NotSent):
                raise request_error(
                    error, url.host, connect_timeout=self._policy.connect_timeout, proxy=self._policy.proxy
                ) from error
            raise

    def _request(
        self, url: RequestUrl, extra: list[tuple[bytes, bytes]], trace: "_Trace", *, stay: bool
    ) -> httpcore.Request:
        given = {name.lower() for name, _ in extra}
        headers = [
            (b"Host", url.address.netloc),
            *((name, value) for name, value in self._defaults if name.lower() not in given),
            (b"Accept-Encoding", b"gzip"),
            (b"Connection", b"keep-alive" if stay else b"close"),
            *extra,
        ]
        extensions: dict[str, Any] = {"timeout": self._timeout, "trace": trace}
        return httpcore.Request("GET", exact_url(url), headers=headers, extensions=extensions)

    def _borrow(self, url: RequestUrl, private: PrivateHosts, *, anew: bool = False) -> "_PooledTransport":
        """A transport for `url`: one for each origin if connections are kept, else one for each scheme.

        A feed never gets one of a feed that may request other addresses.
        """
        opened = AddressPolicy(
            allow_private=private.opens(url.host),
            is_own_host=private.is_own(url.host),
            named=private.networks,
            networks=self._policy.allow_networks,
            ports=self._policy.allow_ports,
            machine=self._policy.machine,
        )
        key = (url.origin if self._policy.keep_alive else url.scheme, opened)
        line = self._lines.pop(key, None)
        if line is None or anew:
            line = _PooledTransport(key, self._transport(url.scheme, opened))
        # Last in the dict: the first entries are those that have been idle longest.
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

    def _transport(self, scheme: str, opened: AddressPolicy) -> Transport:
        """A new transport: the one place where connections are made.

        The certificate authorities are read when first needed: that takes some 20 ms, and a round of http
        feeds needs none.
        """
        policy = self._policy
        if scheme not in self._trust:
            # For http, a cheap context that trusts no authority: httpcore requires one even without TLS.
            is_tls = scheme == "https"
            trust = tls_context(policy.ca_file) if is_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._trust[scheme] = trust
        return guarded_transport(
            opened,
            policy.network,
            trust=self._trust[scheme],
            kept=policy.connections_per_host if policy.keep_alive else 0,
            keepalive_expiry=KEPT_SECONDS,
            proxy=policy.proxy,
        )


@dataclass(slots=True, eq=False)
class _PooledTransport:
    """A transport, and the number of requests that run over it."""

    key: object
    transport: Transport
    users: int = 0


class _Trace:
    """The steps of a request as httpcore takes them: records a new connection, and may stop the sending."""

    def __init__(self, is_wanted: Callable[[], bool], on_accepted: Callable[[], None]) -> None:
        self.connected = False
        self._is_wanted = is_wanted
        self._on_accepted = on_accepted

    async def __call__(self, event: str, _: Mapping[str, object]) -> None:
        if event == "connection.connect_tcp.started":
            self.connected = True
        elif event == "connection.connect_tcp.complete":
            self._on_accepted()
        elif event == "http11.send_request_headers.started" and not self._is_wanted():
            raise NotSent


def access_headers(access: Access) -> list[tuple[bytes, bytes]]:
    """A feed's extra headers and its password (RFC 7617), for the registered origin only."""
    headers = extra_headers(access.headers)
    if access.username is not None and all(name.lower() != b"authorization" for name, _ in headers):
        pair = f"{access.username}:{access.password or ''}".encode()
        headers.append((b"Authorization", b"Basic " + base64.b64encode(pair)))
    return headers
