"""The private hosts that one feed opens with `allow_private`, for itself and its images.

What an opened host allows is decided in `address_policy.py`; feeds.yaml is read in `collector.registry`.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_network

from rss_pipeline.collector.http.addresses import AddressRange, literal_address
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url


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
