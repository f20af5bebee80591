"""The keys under which failed logins are counted, so that passwords cannot be tried one after the other.

An account's owner is known at the addresses of earlier logins, and on the devices: a browser keeps a secret
that stands for an address of its own. There, only what fails there counts: whatever others try elsewhere, or
of other accounts from the same address, the owner gets in. Everywhere else an attempt counts for the account
and for the address. The counts are in storage/accounts/login_failures.py.
"""

import hashlib
from ipaddress import IPv6Address, ip_address, ip_network

from rss_pipeline.storage.accounts.login_failures import Key

_FREE_OF_ACCOUNT = 5
_FREE_OF_ADDRESS = 20
"""More than one user may be behind one address."""


def client_address(text: str) -> str:
    """An address as logins are counted: of IPv6 its /64, which one subscriber has whole."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        # A socket of the file system, a test's client.
        return "unknown"
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((address, 64), strict=False))
    return str(address)


def device_address(secret: str) -> str:
    """The text that stands for the address of a device with this secret."""
    return f"device:{hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()[:32]}"


def keys_of_login(name: str, address: str) -> tuple[Key, ...]:
    """The keys of a login with the account's own password."""
    return (
        Key(account_key(name), _FREE_OF_ACCOUNT, of_known=False),
        Key(f"address:{address}", _FREE_OF_ADDRESS, of_known=False),
        Key(owner_key(name, address), _FREE_OF_ACCOUNT, of_known=True),
    )


def keys_of_app(address: str) -> tuple[Key, ...]:
    """The keys of a login with an app password, known or not. They lock only what is wrong: 160 random
    bits are not guessed, and a phone with a password that was revoked must not lock out the household."""
    return tuple(Key(f"apps:{address}", _FREE_OF_ADDRESS, of_known=known) for known in (False, True))


def owner_key(name: str, address: str) -> str:
    """The key that a right password clears: the owner is there."""
    return f"owner:{name}@{address}"


def account_key(name: str) -> str:
    """The key that a new password clears."""
    return f"account:{name}"
