"""The rules for which addresses and ports a visit may connect to, and the message of a refusal (SSRF).

The ranges themselves are in `addresses.py`; names are resolved in `guarded_transport.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_network

from rss_pipeline.collector.http.addresses import (
    Address,
    AddressRange,
    AddressRefusal,
    Interfaces,
    literal_address,
    refusal,
    single_address,
)
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url

# This machine as the address guard knows it: its interfaces, and the servers of this installation.
# `pipeline.session.this_machine` reads them from the system and the settings.


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """A server of this installation that a setting names."""

    what: str
    host: str
    """A name or an address, as `RequestUrl.host`."""
    port: int
    by_name: bool = False
    """It is behind a reverse proxy, so other sites are at its address, and only its name is its own."""


def _no_ports() -> frozenset[int]:
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMachine:
    """The functions are called for each connection, so they remember what they read."""

    interfaces: Callable[[], Interfaces] = Interfaces
    servers: tuple[OwnServer, ...] = ()
    listening: Callable[[], frozenset[int]] = _no_ports
    """TCP ports at which processes of Dagster and of this project listen now."""


PORTS = frozenset({80, 443})


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """The addresses and ports that a feed, or an image of it, may connect to at one host."""

    allow_private: bool = False
    """The feed opens this host: its own one, or one that its `allow_private` names. Every port is open there:
    servers at home often use odd ones."""
    is_own_host: bool = True
    """It is the host of the feed's registered URL. Decides what the message proposes to write."""
    named: tuple[AddressRange, ...] = ()
    """Ranges that the feed's `allow_private` names, at any port."""
    networks: tuple[AddressRange, ...] = ()
    """Ranges that ALLOW_NETWORKS opens, to every feed and image."""
    ports: frozenset[int] = frozenset()
    """Ports that ALLOW_PORTS opens besides 80 and 443, to every feed and image."""
    machine: OwnMachine = field(default_factory=OwnMachine)

    def check(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise `FetchError` (blocked_address) unless the port and all of `addresses` are allowed.

        One private address blocks the host even if its other addresses are public: the connection could go
        to any of them.
        """
        interfaces = self.machine.interfaces()
        found = [
            (refused.opened_by != "nothing", number, address, refused)
            for number, address in enumerate(addresses)
            if (
                refused := refusal(
                    address,
                    allow_private=self.allow_private,
                    networks=(*self.networks, *self.named),
                    interfaces=interfaces,
                )
            )
        ]
        if found:
            # An address that no setting opens is reported first: opening the others would not help.
            _, _, address, refused = min(found, key=lambda each: each[:2])
            raise _blocked(host, address, refused, is_own_host=self.is_own_host)
        is_named = bool(addresses) and all(
            any(address in network for network in self.named) for address in addresses
        )
        if port not in PORTS | self.ports and not self.allow_private and not is_named:
            raise FetchError(
                "blocked_address",
                f"Port {port} of {host} is blocked: only 80, 443 and the ports in ALLOW_PORTS are allowed.",
                advice=f"If the feed is served at this port, set ALLOW_PORTS={port} in the environment.",
            )

    def check_unresolved(self, host: str, port: int) -> None:
        """Do the same for a host that an outbound proxy resolves.

        Of names, only `localhost` and its subdomains are checked: they always mean the machine that resolves
        them (RFC 6761 6.3).
        """
        self.check(host, port, written_addresses(host))


def written_addresses(host: str) -> list[Address]:
    """The addresses of a host that are known without a name server: of an address, and of `localhost`."""
    address = literal_address(host)
    if address is None and host.rstrip(".").rpartition(".")[2] == "localhost":
        address = IPv4Address("127.0.0.1")
    return [] if address is None else [address]


def own_server_refused(host: str, port: int, what: str) -> FetchError:
    """The error for a server of this installation."""
    return FetchError(
        "blocked_address",
        f"{host} at port {port} is {what}; requests to it are never allowed.",
        advice="Check the URL.",
    )


def _blocked(host: str, address: Address, refused: AddressRefusal, *, is_own_host: bool) -> FetchError:
    subject = f"{host} is" if host == str(address) else f"{host} resolves to {address},"
    match refused.opened_by:
        case "nothing":
            rule, advice = "requests to it are never allowed", "Check the URL."
        case "networks":
            rule = "requests to it are allowed only if ALLOW_NETWORKS names it"
            advice = f"If you trust it, set ALLOW_NETWORKS={refused.range} in the environment."
        case "allow_private":
            entry = "allow_private: true" if is_own_host else f"allow_private: [{host.removesuffix('.')}]"
            rule = f"requests to it are allowed only for a feed with `{entry}`, or if ALLOW_NETWORKS names it"
            advice = (
                f"If you trust it, write `{entry}` for this feed in feeds.yaml, or set "
                f"ALLOW_NETWORKS={single_address(address)} in the environment."
            )
    return FetchError("blocked_address", f"{subject} {refused.what}; {rule}.", advice=advice)


# The private hosts that one feed opens with `allow_private`, for itself and its images.
# feeds.yaml is read in `collector.registry`.


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateHosts:
    """The hosts and networks of one feed."""

    own: str = ""
    """The host of the feed's registered URL, opened or not. A redirect does not change it, permanent or not:
    whoever moves a feed could otherwise choose what it opens."""
    hosts: frozenset[str] = frozenset()
    """Names and addresses that are opened, without a dot at their end."""
    networks: tuple[AddressRange, ...] = ()
    """Ranges that are opened, under any name."""

    def opens(self, host: str) -> bool:
        """True if `host` (of a `RequestUrl`) may be private."""
        return host.removesuffix(".") in self.hosts

    def includes(self, hosts: Iterable[str]) -> bool:
        """True if all of these hosts may be private: by name, or as an address."""
        return all(
            self.opens(host)
            or (
                (address := literal_address(host)) is not None
                and any(address in each for each in self.networks)
            )
            for host in hosts
        )

    def covers(self, others: "PrivateHosts") -> bool:
        """True if everything is open here that is open there."""
        return self.includes(others.hosts) and all(
            any(network.version == mine.version and network.subnet_of(mine) for mine in self.networks)  # type: ignore[arg-type]
            for network in others.networks
        )

    def is_own(self, host: str) -> bool:
        """True if `host` is that of the feed's registered URL."""
        return host.removesuffix(".") == self.own


def private_hosts(url: str, *, allow_private: bool, named: Iterable[str] = ()) -> PrivateHosts:
    """The private hosts of the feed at `url`; `named` are hosts, addresses and networks as feeds.yaml lists
    them. A feed without `allow_private` opens none."""
    own = ""
    with suppress(FetchError):
        own = request_url(url).host.removesuffix(".")
    if not allow_private:
        return PrivateHosts(own=own)
    hosts, networks = {own} - {""}, []
    for name in named:
        try:
            networks.append(ip_network(name))
        except ValueError:
            hosts.add(name)
    return PrivateHosts(own=own, hosts=frozenset(hosts), networks=tuple(networks))
