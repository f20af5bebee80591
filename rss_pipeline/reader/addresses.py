"""The address of a feed as a user names it: checked without a request, and the known feed that it is.

Pure functions. What follows from the answer is subscribe.py's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS
from rss_pipeline.collector.registry.feed_url import (
    completed,
    literal,
    read_url,
    reason,
    same_as,
)
from rss_pipeline.pipeline.session.fetch_policy import feed_policy
from rss_pipeline.reader.failures import PRIVATE
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRefused:
    """An address that is not requested; the sentence says why."""

    kind: Literal["bad_url", "blocked_address"]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An address without userinfo and fragment."""

    url: str
    host: str
    same_as: str
    refusal: AddressRefused | None = None
    """The reason not to request it for a user. A feed that feeds.yaml shares may have such an address."""


def address_policy(settings: Settings) -> AddressPolicy:
    """The rules for addresses that users name: no private one but in networks that ALLOW_NETWORKS opens."""
    policy = feed_policy(settings)
    return AddressPolicy(
        networks=policy.allow_networks, ports=frozenset(policy.allow_ports), machine=policy.machine
    )


def read_address(text: str, policy: AddressPolicy) -> Address | AddressRefused:
    """The address that a person typed or a program sent; a scheme is added where it is missing.

    Names are not resolved: a name that leads into a private network is refused when it is requested.
    """
    if len(text) > MAX_URL_CHARACTERS:
        message = f"The address is longer than {MAX_URL_CHARACTERS:,} characters."
        return AddressRefused(kind="bad_url", message=message)
    try:
        read = read_url(literal(completed(text)), {})
    except ValueError as error:
        return AddressRefused(kind="bad_url", message=f"This is no address of a feed: {reason(error)}.")
    if read.username is not None or read.password is not None:
        message = "The address has a name or a password in it. Remove them."
        return AddressRefused(kind="bad_url", message=message)
    refusal = None
    try:
        request = request_url(read.url)
        policy.check_unresolved(request.host, request.port)
    except FetchError as error:
        if error.kind != "blocked_address":
            return AddressRefused(kind="bad_url", message=error.message)
        refusal = AddressRefused(kind="blocked_address", message=PRIVATE)
    return Address(url=read.url, host=read.host, same_as=read.same_as, refusal=refusal)


def known_feeds(rows: Iterable[Row]) -> dict[str, Row]:
    """By `same_as`, the rows of `named_feeds` that users may subscribe to, the first of each address."""
    found: dict[str, Row] = {}
    for row in rows:
        address = _stored_same_as(row["url"])
        if row["open"] and address is not None:
            found.setdefault(address, row)
    return found


def _stored_same_as(url: str) -> str | None:
    """`same_as` of a stored URL; None for one that is stored with its feed's id, as another feed has it."""
    try:
        return None if "#" in url else same_as(url)
    except ValueError:
        return None
