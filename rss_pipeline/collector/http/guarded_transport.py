"""A transport that resolves a name, checks each of its addresses, and connects to a checked address.

The allowed addresses are defined in `addresses.py` and `address_policy.py`. TLS is checked against the name:
httpcore requests a connection by name and speaks TLS over it. No name is resolved a second time, so an
answer that changes between check and connection (DNS rebinding) has no effect.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Protocol

import httpcore
import idna

from rss_pipeline.collector.http.address_policy import (
    PORTS,
    AddressPolicy,
    OwnMachine,
    own_server_refused,
    written_addresses,
)
from rss_pipeline.collector.http.addresses import Address, literal_address, plain_address, refusal
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.metered_stream import MeteredBackend
from rss_pipeline.collector.http.request_url import RequestUrl
from rss_pipeline.httpx_without_cli import httpx

LOOKUP_SECONDS = 5.0
"""getaddrinfo has no time-out of its own. It runs in threads of the round."""
ATTEMPT_DELAY = 0.25
"""Seconds before the next address of a name is tried as well, if the last has not answered (RFC 8305 5)."""
MAX_ADDRESSES = 6
"""Addresses of a name that are tried: a hostile one may have thousands."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a host, as text, best first. Raises socket.gaierror."""


async def look_up(host: str, port: int) -> list[str]:
    """The system's answer, /etc/hosts included; numeric forms such as 0x7f.1 are resolved like names."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@dataclass(frozen=True, slots=True)
class Network:
    """The name resolver and the dialer. Tests replace them: a false name server, listeners at any address."""

    resolve: Resolve = look_up
    dial: httpcore.AsyncNetworkBackend = field(default_factory=httpcore.AnyIOBackend)
    """Gets addresses only, never names."""


class NamesOfRound:
    """A resolver for a round, which needs the address of a host before it has a turn. The connection that
    follows takes over what was found for it, and the next one is looked up anew."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._found: dict[str, asyncio.Task[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses, for a connection."""
        task = self._found.pop(host, None)
        return await (self._resolve(host, port) if task is None else asyncio.shield(task))

    def _begun(self, host: str, port: int) -> asyncio.Task[Sequence[str]]:
        if (task := self._found.get(host)) is None:
            task = self._found[host] = asyncio.create_task(self._look_up(host, port))
            # The one that waits for it may have given up.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        return await self._resolve(host, port)

    async def only_address(self, host: str, port: int = 443) -> str | None:
        """The address that all requests to a host reach, in its plain form; None for a host that has several
        of a kind, none, or an address as its name.

        A name with several addresses is a CDN's or a large service's, which share them with others.
        """
        if literal_address(host) is not None:
            return None
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                texts = await asyncio.shield(self._begun(host, port))
        except (OSError, ValueError, TimeoutError):
            return None
        found = {plain_address(each) for text in texts if (each := literal_address(text)) is not None}
        of_kind = [{each for each in found if each.version == version} for version in (4, 6)]
        if max(map(len, of_kind)) != 1:
            return None
        return str(next(iter(of_kind[0] or of_kind[1])))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the policy allows."""

    def __init__(self, policy: AddressPolicy, network: Network) -> None:
        self._policy = policy
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to one of the host's addresses, within `timeout` seconds after they are resolved.

        Raises `FetchError`: dns, or blocked_address before anything is sent to any of them.
        """
        addresses = await _resolved(self._network, host, port, timeout)
        await _refuse_own_servers(self._policy.machine, self._network, host, port, addresses)
        self._policy.check(host, port, addresses)
        options = None if socket_options is None else list(socket_options)

        def dial(address: Address) -> Awaitable[httpcore.AsyncNetworkStream]:
            return self._network.dial.connect_tcp(
                str(address), port, timeout=timeout, local_address=local_address, socket_options=options
            )

        if len(addresses) == 1:
            return await dial(addresses[0])
        try:
            async with asyncio.timeout(timeout):
                return await _first(dial, _alternating(addresses)[:MAX_ADDRESSES])
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error


async def _resolved(network: Network, host: str, port: int, timeout: float | None) -> list[Address]:
    address = literal_address(host)
    if address is not None:
        return [address]
    seconds = LOOKUP_SECONDS if timeout is None else min(LOOKUP_SECONDS, timeout)
    try:
        async with asyncio.timeout(seconds):
            found = await network.resolve(host, port)
    except TimeoutError:
        raise FetchError(
            "dns",
            f"The name server gave no answer for {host} within {seconds:g} s; if this continues, check "
            "this machine's DNS.",
        ) from None
    addresses = [address for text in dict.fromkeys(found) if (address := literal_address(text)) is not None]
    if not addresses:
        raise socket.gaierror(socket.EAI_NONAME, "no address")
    return addresses


async def _refuse_own_servers(
    machine: OwnMachine, network: Network, host: str, port: int, addresses: Sequence[Address]
) -> None:
    """Raise `FetchError` (blocked_address) for a server of this installation, at whatever address it is
    reached: an item could otherwise make us start runs, or send requests with our rights."""
    interfaces = machine.interfaces()
    plain = {plain_address(address) for address in addresses}
    is_here = any(map(interfaces.has, plain))
    for server in machine.servers:
        if server.port != port:
            continue
        if server.host.removesuffix(".") == host.removesuffix("."):
            raise own_server_refused(host, port, server.what)
        if server.by_name:
            continue
        known = [address] if (address := literal_address(server.host)) else []
        # Of a public server the name alone counts: thousands of sites share the addresses of a CDN.
        if not known and any(
            refusal(address, allow_private=False, interfaces=interfaces) for address in addresses
        ):
            with suppress(OSError, FetchError):
                known = await _resolved(network, server.host, port, None)
        there = {plain_address(address) for address in known}
        if there & plain or (is_here and any(map(interfaces.has, there))):
            raise own_server_refused(host, port, server.what)
    if is_here and port in machine.listening():
        raise own_server_refused(host, port, "a server of Dagster or rss-pipeline on this machine")


def guarded_transport(
    policy: AddressPolicy,
    network: Network,
    *,
    trust: ssl.SSLContext,
    kept: int = 0,
    keepalive_expiry: float | None = None,
    proxy: str | None = None,
) -> "Transport":
    """A transport that connects to addresses that `policy` allows, and keeps at most `kept` idle connections
    for `keepalive_expiry` seconds.

    An outbound `proxy` resolves names itself, so only literal addresses, `localhost` and ports can be checked
    here; a name at an odd port is resolved here too, so that it leads to no server of this installation. The
    address of the proxy is the operator's choice and is not checked.
    """
    if proxy is not None:
        return _Proxied(
            policy, network, trust=trust, kept=kept, keepalive_expiry=keepalive_expiry, proxy=proxy
        )
    backend = MeteredBackend(GuardedBackend(policy, network))
    if not kept:
        return _Unpooled(backend, trust=trust)
    return httpcore.AsyncConnectionPool(
        ssl_context=trust,
        max_connections=None,
        max_keepalive_connections=kept,
        keepalive_expiry=keepalive_expiry,
        network_backend=backend,
    )


def exact_url(url: RequestUrl) -> httpcore.URL:
    """The URL of a request for a transport, path and query as given: httpx would normalise dot segments and
    percent signs. Raises ValueError for a host in Punycode that no name has."""
    if url.host.startswith("xn--"):
        idna.decode(url.host)
    return httpcore.URL(scheme=url.scheme, host=url.host, port=url.address.port, target=url.target)


class Transport(Protocol):
    """Sends requests of httpcore, and raises its exceptions."""

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        """Send one; whoever gets the response closes it."""
        ...

    async def aclose(self) -> None:
        """Close the idle connections."""
        ...


class _Unpooled:
    """A connection for each request, closed with its response: a pool goes through all of its connections
    several times a request, which takes a tenth of its time."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend, *, trust: ssl.SSLContext) -> None:
        self._backend = backend
        self._trust = trust

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        assert (b"Connection", b"close") in request.headers, "a kept connection would never be closed"
        connection = httpcore.AsyncHTTPConnection(
            request.url.origin, ssl_context=self._trust, network_backend=self._backend
        )
        return await connection.handle_async_request(request)

    async def aclose(self) -> None:
        """There is none that is idle."""


class _Proxied:
    def __init__(
        self,
        policy: AddressPolicy,
        network: Network,
        *,
        trust: ssl.SSLContext,
        kept: int,
        keepalive_expiry: float | None,
        proxy: str,
    ) -> None:
        where = httpx.Proxy(url=proxy)
        # As httpx makes it, but with a network backend.
        self._pool = httpcore.AsyncHTTPProxy(
            proxy_url=httpcore.URL(
                scheme=where.url.raw_scheme,
                host=where.url.raw_host,
                port=where.url.port,
                target=where.url.raw_path,
            ),
            proxy_auth=where.raw_auth,
            ssl_context=trust,
            max_connections=None,
            max_keepalive_connections=kept,
            keepalive_expiry=keepalive_expiry,
            network_backend=MeteredBackend(httpcore.AnyIOBackend()),
        )
        self._policy = policy
        self._network = network

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        origin = request.url.origin
        port, host = origin.port, origin.host.decode("ascii")
        addresses = written_addresses(host)
        if not addresses and port not in PORTS:
            with suppress(OSError, FetchError):
                addresses = await _resolved(self._network, host, port, None)
        await _refuse_own_servers(self._policy.machine, self._network, host, port, addresses)
        self._policy.check_unresolved(host, port)
        return await self._pool.handle_async_request(request)

    async def aclose(self) -> None:
        await self._pool.aclose()


def _alternating(addresses: Sequence[Address]) -> list[Address]:
    """IPv6 and IPv4 in turn, the family of the first address first (RFC 8305 4): often only one works."""
    first = addresses[0].version
    same = [address for address in addresses if address.version == first]
    other = [address for address in addresses if address.version != first]
    return [address for address in chain(*zip_longest(same, other)) if address is not None]


async def _first(
    dial: Callable[[Address], Awaitable[httpcore.AsyncNetworkStream]], addresses: Sequence[Address]
) -> httpcore.AsyncNetworkStream:
    """The first connection that is made. If all attempts fail, raises the exception of the last."""

    async def attempt(address: Address) -> httpcore.AsyncNetworkStream:
        return await dial(address)

    waiting = list(addresses)
    running: set[asyncio.Task[httpcore.AsyncNetworkStream]] = set()
    failed: BaseException | None = None
    try:
        while True:
            if waiting:
                running.add(asyncio.create_task(attempt(waiting.pop(0))))
            done, _ = await asyncio.wait(
                running, timeout=ATTEMPT_DELAY if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                running.discard(task)
                failed = task.exception()
                if failed is None:
                    # If two are made at the same moment, the other one is closed.
                    running |= done - {task}
                    return task.result()
            if failed is not None and not running and not waiting:
                raise failed
    finally:
        await _abandon(running)


async def _abandon(running: set[asyncio.Task[httpcore.AsyncNetworkStream]]) -> None:
    """Cancel the other attempts, and close connections that were made nevertheless."""
    for task in running:
        task.cancel()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(outcome, httpcore.AsyncNetworkStream):
            with suppress(OSError, httpcore.NetworkError):
                await outcome.aclose()
