"""Where a visit may connect to, and the sentence that says why it may not.

Which range an address belongs to is `addresses.py`'s; names are resolved in `guard.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from rss_pipeline.collector.http.addresses import (
    Address,
    AddressRange,
    AddressRefusal,
    literal_address,
    refusal,
    single_address,
)
from rss_pipeline.collector.http.errors import FetchError

PORTS = frozenset({80, 443})


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Where one visit may connect to."""

    allow_private: bool = False
    """Of the feed, or of the feed whose image it is."""
    networks: tuple[AddressRange, ...] = ()
    """Ranges that ALLOW_NETWORKS opens, to every feed and image."""
    ports: frozenset[int] = frozenset()
    """Ports that ALLOW_PORTS opens besides 80 and 443. `allow_private` opens all: what runs at home runs
    on odd ports."""

    def check(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raises `FetchError` of kind blocked_address unless all of `addresses` may be connected to.

        One public address does not excuse a private one beside it: which is taken would be left to chance.
        """
        found = [
            (bar.opened_by != "nothing", number, address, bar)
            for number, address in enumerate(addresses)
            if (bar := refusal(address, allow_private=self.allow_private, networks=self.networks))
        ]
        if found:
            # That which nothing opens comes first: opening the other would not help.
            _, _, address, bar = min(found, key=lambda each: each[:2])
            raise _blocked(host, address, bar)
        if port not in PORTS | self.ports and not self.allow_private:
            raise FetchError(
                "blocked_address",
                f"Port {port} of {host} is not asked: only 80, 443 and those in ALLOW_PORTS are.",
                advice=f"If that is where the feed is, set ALLOW_PORTS={port} in the environment.",
            )

    def check_unresolved(self, host: str, port: int) -> None:
        """Likewise for a host that somebody else resolves, an outbound proxy: of a name, only those are
        known here that always mean the resolving machine itself (RFC 6761 6.3)."""
        address = literal_address(host)
        if address is None and host.rstrip(".").rpartition(".")[2] == "localhost":
            address = IPv4Address("127.0.0.1")
        self.check(host, port, [] if address is None else [address])


def _blocked(host: str, address: Address, bar: AddressRefusal) -> FetchError:
    what = f"{host} is {bar.what}" if host == str(address) else f"{host} resolves to {address}, {bar.what}"
    match bar.opened_by:
        case "nothing":
            opens, advice = "that is never asked", "Check the URL in feeds.yaml."
        case "networks":
            opens = "that is asked only where ALLOW_NETWORKS opens it"
            advice = f"If you trust it, set ALLOW_NETWORKS={bar.range} in the environment."
        case "allow_private":
            opens = (
                "that is asked only for a feed with `allow_private: true`, or where ALLOW_NETWORKS opens it"
            )
            advice = (
                "If you trust it, write `allow_private: true` for this feed in feeds.yaml, or set "
                f"ALLOW_NETWORKS={single_address(address)} in the environment."
            )
    return FetchError("blocked_address", f"{what}; {opens}.", advice=advice)
