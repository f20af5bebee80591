"""The network that an address is in, and the registered domain of a name: who shares a fate, and a limit.

No I/O. An outage of one provider takes all hosts of a network with it, so that several of them prove as much
as one (schedule/our_outage.py); the names of a domain may share a limit of requests (fetch/pacing.py).
"""

from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address, ip_network

_CATEGORIES = frozenset(
    [
        "ac",
        "ad",
        "co",
        "com",
        "ed",
        "edu",
        "firm",
        "gen",
        "go",
        "gob",
        "gouv",
        "gov",
        "gr",
        "gv",
        "id",
        "in",
        "info",
        "ltd",
        "mil",
        "ne",
        "net",
        "nhs",
        "nom",
        "or",
        "org",
        "plc",
        "sch",
    ]
)
"""Second-level labels under which countries register names (co.uk, com.au, ne.jp)."""

_NAT64 = ip_network("64:ff9b::/96")


# Each visit needs that of its host several times.
@lru_cache(maxsize=1_000)
def network_of(address: str) -> str | None:
    """The /24 of an IPv4 address, also of one within an IPv6 address, the /48 of another IPv6 one: what one
    provider announces at least; None if it is no address."""
    with suppress(ValueError):
        found = ip_address(address.strip("[]").partition("%")[0])
        # A machine without IPv4 reaches all of it within one network (RFC 6052).
        if found.version == 6 and (found.ipv4_mapped or found in _NAT64):
            found = ip_address(found.packed[-4:])
        return str(ip_network((found.packed, 24 if found.version == 4 else 48), strict=False))
    return None


def registered_domain(host: str) -> str:
    """The domain under which somebody registered this name (`example.co.uk` of `feeds.example.co.uk`), or the
    network of an address.

    A rule in place of the Public Suffix List, which would be a megabyte to keep up to date: where it is wrong
    (`tokyo.jp`), it takes several domains for one, which counts as less proof of an outage.
    """
    if (network := network_of(host)) is not None:
        return network
    labels = host.rstrip(".").lower().split(".")
    has_category = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _CATEGORIES
    return ".".join(labels[-3 if has_category else -2 :])
