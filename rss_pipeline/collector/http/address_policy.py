"""The rules for which addresses and ports a visit may connect to, and the message of a refusal (SSRF).

The ranges themselves are in `addresses.py`; names are resolved in `guarded_transport.py`.
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
    """The addresses and ports that one visit may connect to."""

    allow_private: bool = False
    """The flag of the feed, or of the feed that the image belongs to."""
    networks: tuple[AddressRange, ...] = ()
    """Ranges that ALLOW_NETWORKS opens, to every feed and image."""
    ports: frozenset[int] = frozenset()
    """Ports that ALLOW_PORTS opens besides 80 and 443. `allow_private` opens every port: servers at home
    often use odd ones."""

    def check(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise `FetchError` (blocked_address) unless the port and all of `addresses` are allowed.

        One private address blocks the host even if its other addresses are public: the connection could go
        to any of them.
        """
        found = [
            (refused.opened_by != "nothing", number, address, refused)
            for number, address in enumerate(addresses)
            if (refused := refusal(address, allow_private=self.allow_private, networks=self.networks))
        ]
        if found:
            # An address that no setting opens is reported first: opening the others would not help.
            _, _, address, refused = min(found, key=lambda each: each[:2])
            raise _blocked(host, address, refused)
        if port not in PORTS | self.ports and not self.allow_private:
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
        address = literal_address(host)
        if address is None and host.rstrip(".").rpartition(".")[2] == "localhost":
            address = IPv4Address("127.0.0.1")
        self.check(host, port, [] if address is None else [address])


def _blocked(host: str, address: Address, refused: AddressRefusal) -> FetchError:
    subject = f"{host} is" if host == str(address) else f"{host} resolves to {address},"
    match refused.opened_by:
        case "nothing":
            rule, advice = "requests to it are never allowed", "Check the URL in feeds.yaml."
        case "networks":
            rule = "requests to it are allowed only if ALLOW_NETWORKS names it"
            advice = f"If you trust it, set ALLOW_NETWORKS={refused.range} in the environment."
        case "allow_private":
            rule = (
                "requests to it are allowed only for a feed with `allow_private: true`, or if ALLOW_NETWORKS "
                "names it"
            )
            advice = (
                "If you trust it, write `allow_private: true` for this feed in feeds.yaml, or set "
                f"ALLOW_NETWORKS={single_address(address)} in the environment."
            )
    return FetchError("blocked_address", f"{subject} {refused.what}; {rule}.", advice=advice)
