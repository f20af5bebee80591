"""The address ranges that are blocked, and the setting that opens each of them.

No I/O: names are resolved and connections made in `guarded_transport.py`; the message of a refusal is in
`address_policy.py`. The ranges follow IANA's registries of special-purpose addresses. IPv6 is blocked by
default: only 2000::/3 has ever been allocated. `ipaddress.is_global` alone would allow multicast, and 6to4
and NAT64 forms of private addresses, and differs from one Python to the next (CVE-2024-4032).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal

Address = IPv4Address | IPv6Address
AddressRange = IPv4Network | IPv6Network
OpenedBy = Literal["allow_private", "networks", "nothing"]
"""The setting that opens a range: a feed's own flag or ALLOW_NETWORKS, ALLOW_NETWORKS alone, or none."""

_Row = tuple[AddressRange, str, OpenedBy]


def _rows(opener: OpenedBy, ranges: dict[str, str]) -> list[_Row]:
    return [(ip_network(text), what, opener) for text, what in ranges.items()]


_NEVER = _rows(
    "nothing",
    {
        "0.0.0.0/8": "an address of no host",
        "255.255.255.255/32": "the broadcast address",
        "224.0.0.0/4": "a multicast address",
        "169.254.169.254/32": "the address of cloud credentials for this machine",
        "169.254.0.0/16": "a link-local address",
        # The metadata services of Azure, Alibaba, Oracle, AWS and Google that are not link-local.
        "168.63.129.16/32": "the address of cloud credentials for this machine",
        "100.100.100.200/32": "the address of cloud credentials for this machine",
        "192.0.0.192/32": "the address of cloud credentials for this machine",
        "fd00:ec2::/32": "the address of cloud credentials for this machine",
        "fd20:ce::254/128": "the address of cloud credentials for this machine",
        "::/128": "an address of no host",
        "fe80::/10": "a link-local address",
        "ff00::/8": "a multicast address",
    },
)
_PRIVATE = _rows(
    "allow_private",
    {
        "127.0.0.0/8": "this machine itself",
        "10.0.0.0/8": "an address of a local network",
        "172.16.0.0/12": "an address of a local network",
        "192.168.0.0/16": "an address of a local network",
        "::1/128": "this machine itself",
        "fc00::/7": "an address of a local network",
    },
)
_SPECIAL = _rows(
    "networks",
    {
        "100.64.0.0/10": "an address inside a provider's or VPN's network",
        "192.0.0.0/24": "an address for protocols, not for hosts",
        "192.0.2.0/24": "an address for documentation",
        "192.88.99.0/24": "an address for 6to4 relays",
        "198.18.0.0/15": "an address for measurements, which some proxies invent for every name",
        "198.51.100.0/24": "an address for documentation",
        "203.0.113.0/24": "an address for documentation",
        "240.0.0.0/4": "a reserved address",
        "::ffff:0:0/96": "an IPv4 address written as an IPv6 one",
        "::ffff:0:0:0/96": "an IPv4 address written as an IPv6 one",
        "::/96": "an IPv4 address written as an IPv6 one",
        "64:ff9b:1::/48": "an IPv4 address behind a local NAT64",
        "100::/64": "an address that leads nowhere",
        "2001::/32": "an IPv4 address behind Teredo",
        "2001::/23": "an address for protocols, not for hosts",
        "2001:db8::/32": "an address for documentation",
        "2002::/16": "an IPv4 address behind 6to4",
        "3fff::/20": "an address for documentation",
        "fec0::/10": "a site-local address",
    },
)
_TABLE: dict[int, list[_Row]] = {
    version: [row for row in [*_NEVER, *_PRIVATE, *_SPECIAL] if row[0].version == version]
    for version in (4, 6)
}
_ALLOCATED = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: how networks without IPv4 reach all of IPv4, so public addresses behind it are public."""
_IPV4_IN_LAST_BITS = tuple(
    map(IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96"))
)
_THIS_HOST = IPv4Network("0.0.0.0/8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interfaces:
    """The addresses of this machine's network interfaces, and the networks that they are in."""

    addresses: frozenset[Address] = frozenset()
    """Without zones."""
    networks: tuple[AddressRange, ...] = ()
    """On-link prefixes: hosts there are neighbours, also where their addresses are global."""

    def has(self, address: Address) -> bool:
        """True if a connection to `address` (as `plain_address` gives it) ends at this machine."""
        return (
            address.is_loopback
            or address.is_unspecified
            or address in _THIS_HOST
            or address in self.addresses
        )


_NO_INTERFACES = Interfaces()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRefusal:
    """The reason why an address is blocked."""

    what: str
    """A description of the address, as the end of a sentence."""
    opened_by: OpenedBy
    range: AddressRange
    """The range to name in ALLOW_NETWORKS; wide enough for the next address of its kind."""


def refusal(
    address: Address,
    *,
    allow_private: bool,
    networks: Sequence[AddressRange] = (),
    interfaces: Interfaces = _NO_INTERFACES,
) -> AddressRefusal | None:
    """The reason why `address` is blocked; None if it is allowed.

    `allow_private` opens loopback, RFC 1918 and unique local addresses, and the global ones of this machine
    and of its neighbours (`interfaces`). `networks` opens the ranges it names. Neither opens link-local,
    metadata, multicast, broadcast and unspecified addresses, nor any form of IPv6 that carries such an IPv4
    address.
    """
    found = _ranked(address) or _neighbour(address, interfaces)
    inner = _embedded(address)
    if inner is not None:
        within = _ranked(inner)
        if within is not None and within.opened_by == "nothing":
            return AddressRefusal(
                what=f"{inner} in another form, {within.what}",
                opened_by="nothing",
                range=single_address(address),
            )
        if address in _NAT64:
            # Opened by the IPv4 address's own range too, but not by allow_private: no home is behind NAT64.
            inside = refusal(inner, allow_private=False, networks=networks, interfaces=interfaces)
            found = inside and AddressRefusal(
                what=f"{inner} behind NAT64, {inside.what}",
                opened_by="networks",
                range=single_address(address),
            )
    if found is None or found.opened_by == "nothing":
        return found
    if found.opened_by == "allow_private" and allow_private:
        return None
    return None if any(address in network for network in networks) else found


def is_never_opened(network: AddressRange) -> bool:
    """True if `network` stays blocked even if ALLOW_NETWORKS names it."""
    return any(_holds(never, network) for never, _, _ in _NEVER)


def _ranked(address: Address) -> AddressRefusal | None:
    for network, what, opener in _TABLE[address.version]:
        if address in network:
            return AddressRefusal(what=what, opened_by=opener, range=network)
    # For IPv4, `is_global` knows ranges that are newer than the table above.
    if address in _ALLOCATED if isinstance(address, IPv6Address) else address.is_global:
        return None
    return AddressRefusal(what="not a public address", opened_by="networks", range=single_address(address))


def _embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address at which packets to this IPv6 address may arrive."""
    if isinstance(address, IPv4Address) or address.packed[:15] == bytes(15):
        return None
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _IPV4_IN_LAST_BITS):
        return IPv4Address(address.packed[12:])
    return None


def plain_address(address: Address) -> Address:
    """The address at which packets to `address` arrive: IPv4 out of IPv6, and without a zone. For comparisons
    only; whether such a form may be requested at all is `refusal`'s."""
    if isinstance(address, IPv4Address):
        return address
    return _embedded(address) or IPv6Address(int(address))


def _neighbour(address: Address, interfaces: Interfaces) -> AddressRefusal | None:
    if interfaces.has(address):
        return AddressRefusal(
            what="this machine itself", opened_by="allow_private", range=single_address(address)
        )
    for network in interfaces.networks:
        if address in network:
            return AddressRefusal(
                what="an address of this machine's own network", opened_by="allow_private", range=network
            )
    return None


def single_address(address: Address) -> AddressRange:
    """The range that holds this address alone."""
    return ip_network(address.packed)


def _holds(outer: AddressRange, inner: AddressRange) -> bool:
    if isinstance(outer, IPv4Network):
        return isinstance(inner, IPv4Network) and inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and inner.subnet_of(outer)


def literal_address(host: str) -> Address | None:
    """`host` as an address; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
