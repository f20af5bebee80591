"""The polite client: one GET, its head, its body in pieces, on a connection of its own.

Not here: whose turn it is (`pacing.py`), what a status means and where a redirect leads (`fetch_one.py`).
It speaks to httpx's transport and not to its client, so there are no cookies, no netrc, no redirects
followed unasked and no proxy from the environment.
"""

import base64
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from rss_pipeline.collector.headers import Head, own_headers
from rss_pipeline.collector.hops import Hop
from rss_pipeline.collector.models import Access
from rss_pipeline.collector.trouble import body_trouble, request_trouble

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json;q=0.9, application/rdf+xml;q=0.8, "
    "application/xml;q=0.7, text/xml;q=0.7, */*;q=0.1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """How polite and how patient a round is. Times in seconds."""

    user_agent: str
    """Names the project and a contact."""
    concurrency: int = 5
    """Hosts asked at once, one connection each."""
    host_delay: float = 1.0
    """From the end of one request to a host to the start of the next."""
    connect_timeout: float = 10.0
    deadline: float = 30.0
    """For all requests of one visit together; waiting for a host's turn does not count."""
    round_seconds: float | None = 120.0
    """What has not begun by then is given back; None is no limit."""
    max_wire_bytes: int = 10_000_000
    max_body_bytes: int = 20_000_000
    max_redirects: int = 5
    proxy: str | None = field(default=None, repr=False)
    """URL of an outbound proxy; may hold its password."""
    ca_file: Path | None = None
    """PEM bundle of authorities to trust besides the usual ones: a company's own, or a test's."""


class Answer:
    """A response whose head has come and whose body has not been read."""

    def __init__(self, response: httpx.Response, host: str) -> None:
        self.status = response.status_code
        self.head = Head(response.headers.raw)
        self._response = response
        self._host = host

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, still content-coded. Raises `Trouble` where they end early."""
        pieces = self._response.aiter_raw()
        while True:
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
            # The library reads what a stranger sends; whatever it trips over is that stranger's trouble.
            except Exception as error:
                raise body_trouble(self._host) from error
            yield piece


class Client:
    """Asks one hop at a time. Made for one round, inside its event loop."""

    def __init__(self, policy: FetchPolicy) -> None:
        # At DEBUG both libraries log every header, passwords included.
        for name in ("httpx", "httpcore"):
            logger = logging.getLogger(name)
            if logger.level < logging.WARNING:
                logger.setLevel(logging.WARNING)
        self._policy = policy
        self._transports: dict[str, httpx.AsyncHTTPTransport] = {}
        self._defaults = [
            (b"User-Agent", policy.user_agent.encode()),
            (b"Accept", ACCEPT.encode()),
        ]
        self._always = [(b"Accept-Encoding", b"gzip"), (b"Connection", b"close")]
        self._timeout = {"connect": policy.connect_timeout, "read": None, "write": None, "pool": None}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    @asynccontextmanager
    async def get(self, hop: Hop, extra: list[tuple[bytes, bytes]]) -> AsyncIterator[Answer]:
        """Ask `hop`; the connection is closed at the end of the block, read out or not.

        Raises `Trouble` where no answer comes.
        """
        try:
            response = await self._transport(hop.scheme).handle_async_request(self._request(hop, extra))
        # As in `Answer.chunks`: h11, anyio and httpcore read what a stranger sends.
        except Exception as error:
            raise request_trouble(error, hop.host, connect_timeout=self._policy.connect_timeout) from error
        try:
            yield Answer(response, hop.host)
        finally:
            # A connection that breaks while it is closed says nothing about what was read.
            with suppress(httpx.HTTPError, OSError):
                await response.aclose()

    def _request(self, hop: Hop, extra: list[tuple[bytes, bytes]]) -> httpx.Request:
        given = {name.lower() for name, _ in extra}
        defaults = [(name, value) for name, value in self._defaults if name.lower() not in given]
        request = httpx.Request(
            "GET",
            hop.address,
            headers=[*defaults, *self._always, *extra],
            extensions={"timeout": self._timeout},
        )
        request.url = _ExactURL(hop)
        return request

    def _transport(self, scheme: str) -> httpx.AsyncHTTPTransport:
        """The one place where connections are made. Built when first needed: reading the authorities
        costs some 20 ms, and a round of http feeds needs none."""
        if scheme not in self._transports:
            if scheme == "https":
                trust = httpx.create_ssl_context(trust_env=False)
                if self._policy.ca_file is not None:
                    trust.load_verify_locations(self._policy.ca_file)
            else:
                # Trusts nobody, and is cheap: httpx wants a context even where no TLS will be spoken.
                trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._transports[scheme] = httpx.AsyncHTTPTransport(
                verify=trust,
                trust_env=False,
                # A 304 with a body spoils a kept connection for whoever comes next.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
                proxy=self._policy.proxy,
            )
        return self._transports[scheme]


class _ExactURL(httpx.URL):
    """Gives path and query as registered, where httpx would normalise dot segments and percent signs.

    httpcore's "target" extension does the same, and would also rewrite the CONNECT to a proxy.
    """

    def __init__(self, hop: Hop) -> None:
        super().__init__(hop.address)
        self._target = hop.target

    @property
    def raw_path(self) -> bytes:
        return self._target


def access_headers(access: Access) -> list[tuple[bytes, bytes]]:
    """A feed's extra headers and its password (RFC 7617), for the registered origin and no other."""
    headers = own_headers(access.headers)
    if access.username is not None and all(name.lower() != b"authorization" for name, _ in headers):
        pair = f"{access.username}:{access.password or ''}".encode()
        headers.append((b"Authorization", b"Basic " + base64.b64encode(pair)))
    return headers
