"""This machine as the address guard has to know it, read from the system and the settings.

The values are collector.http.address_policy's; what they forbid is decided in collector.http.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Address, ip_address, ip_interface
from pathlib import PurePath
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import psutil

from rss_pipeline.collector.http.address_policy import OwnMachine, OwnServer
from rss_pipeline.collector.http.addresses import Address, AddressRange, Interfaces
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.settings import Settings

T = TypeVar("T")

KEPT_SECONDS = 30.0
"""A VPN may come up at any moment, and so may a server; reading costs some milliseconds."""

_LAN_BITS = 64
"""The prefix of a network of IPv6 hosts (RFC 4291 2.5.1), also where an interface has a single address."""
_WIDEST = {4: 8, 6: 32}
"""A wider prefix is no network of neighbours, but the route of a tunnel."""
_PROGRAMS = frozenset(
    {"rss-pipeline", "dagster", "dagster-daemon", "dagster-graphql", "dagster-webserver", "dg"}
)
_MODULES = frozenset(
    {"rss_pipeline", "dagster", "dagster_graphql", "dagster_webserver", "dagster_dg_cli", "dagster_daemon"}
)
_WITH_VALUE = frozenset({"-X", "-W"})


def this_machine(settings: Settings) -> OwnMachine:
    """The machine that this process runs on; what changes is read again after half a minute."""
    return OwnMachine(interfaces=_INTERFACES, servers=tuple(own_servers(settings)), listening=_LISTENING)


class _Kept(Generic[T]):
    """A value that is read when it is first needed, and again when it is older than `KEPT_SECONDS`."""

    def __init__(self, read: Callable[[], T], unknown: T) -> None:
        self._read = read
        self._value = unknown
        self._until = 0.0

    def __call__(self) -> T:
        if time.monotonic() >= self._until:
            # Where the system gives none, the last value stays.
            with suppress(OSError, psutil.Error):
                self._value = self._read()
            self._until = time.monotonic() + KEPT_SECONDS
        return self._value


def own_servers(settings: Settings) -> Iterator[OwnServer]:
    """The servers of this installation that its settings name."""
    yield OwnServer(what="the UI of this installation (RSS_PORT)", host="127.0.0.1", port=settings.port)
    for name in settings.ui_hosts:
        for port in (80, 443) if name.port is None else (name.port,):
            host = name.host.strip("[]")
            yield OwnServer(
                what="the UI of this installation (RSS_UI_HOSTS)", host=host, port=port, by_name=True
            )
    if settings.reader:
        yield OwnServer(
            what="the reader of this installation (RSS_READER_PORT)",
            host="127.0.0.1",
            port=settings.reader_port,
        )
    elsewhere = () if settings.runs_elsewhere is None else settings.runs_elsewhere.servers()
    for needed in (*settings.database.servers(), *settings.objects.servers(), *elsewhere):
        if needed.default_port is None:
            yield from _server(needed.what, needed.url)
        else:
            yield from _server_at(needed.what, needed.url, default_port=needed.default_port)


def _server(what: str, url: str) -> Iterator[OwnServer]:
    with suppress(FetchError):
        parts = request_url(urlsplit(url)._replace(fragment="").geturl())
        yield OwnServer(what=what, host=parts.host, port=parts.port)


def _server_at(what: str, url: str, *, default_port: int) -> Iterator[OwnServer]:
    """The server of a URL that is not one of the web; none for a socket."""
    parts = urlsplit(url)
    if parts.hostname:
        yield OwnServer(what=what, host=parts.hostname, port=parts.port or default_port)


class InterfaceAddress(Protocol):
    """An address as `psutil.net_if_addrs` returns it."""

    @property
    def address(self) -> str: ...
    @property
    def netmask(self) -> str | None: ...
    @property
    def ptp(self) -> str | None: ...


def interfaces_of(table: Mapping[str, Iterable[InterfaceAddress]]) -> Interfaces:
    """The addresses and networks of a table of interfaces, as `psutil.net_if_addrs` returns it."""
    addresses: set[Address] = set()
    networks: set[AddressRange] = set()
    for found in (found for each in table.values() for found in each):
        for text, mask in ((found.address, found.netmask), (found.ptp, None)):
            with suppress(ValueError):
                address = ip_address((text or "").partition("%")[0])
                if text == found.address:
                    addresses.add(address)
                # Others are refused without this.
                if address.is_global:
                    networks.add(_network(address, mask))
    return Interfaces(addresses=frozenset(addresses), networks=tuple(sorted(networks, key=str)))


def _network(address: Address, mask: str | None) -> AddressRange:
    most = _LAN_BITS if isinstance(address, IPv6Address) else address.max_prefixlen
    bits = _bits(mask)
    bits = most if bits is None or bits < _WIDEST[address.version] else min(bits, most)
    return ip_interface((address, bits)).network


def _bits(mask: str | None) -> int | None:
    """The length of a prefix from its mask, which `ipaddress` reads for IPv4 only."""
    if not mask:
        return None
    address = ip_address(mask)
    if isinstance(address, IPv6Address):
        return f"{int(address):0128b}".find("0") % 129
    return IPv4Network(f"0.0.0.0/{mask}").prefixlen


def listening_ports() -> frozenset[int]:
    """The TCP ports at which processes of Dagster and of this project listen, and all that those started.

    Also those that were started by hand, at other ports than the settings name, and those of another home.
    """
    processes = list(psutil.process_iter(["cmdline", "ppid"]))
    ours = {process.pid for process in processes if is_ours(process.info["cmdline"] or ())}
    before = 0
    while len(ours) > before:
        before = len(ours)
        ours |= {process.pid for process in processes if process.info["ppid"] in ours}
    ports: set[int] = set()
    for process in processes:
        if process.pid in ours:
            with suppress(psutil.Error, OSError):
                ports |= {
                    connection.laddr.port
                    for connection in process.net_connections("tcp")
                    if connection.status == psutil.CONN_LISTEN
                }
    return frozenset(ports)


def is_ours(command: Sequence[str]) -> bool:
    """True for the command line of a program of Dagster or of this project."""
    if not command:
        return False
    if PurePath(command[0]).name in _PROGRAMS:
        return True
    if not PurePath(command[0]).name.lower().startswith("python"):
        return False
    arguments = iter(command[1:])
    for argument in arguments:
        if argument == "-m":
            return next(arguments, "").partition(".")[0] in _MODULES
        if argument in _WITH_VALUE:
            next(arguments, None)
        elif not argument.startswith("-"):
            return PurePath(argument).name in _PROGRAMS
        elif argument == "-c":
            return False
    return False


# One of each a process: reading the ports looks at every process of the machine.
_INTERFACES = _Kept(lambda: interfaces_of(psutil.net_if_addrs()), Interfaces())
_LISTENING = _Kept[frozenset[int]](listening_ports, frozenset())
