"""Another address for a feed, by a user: its items, stars, folders and titles stay.

A feed of feeds.yaml is changed there. Any other belongs to those who subscribe to it: who is the only one may
change it, and the owner of the installation. Nothing is requested here: the feed is due, and a visit is
requested for it, as when it is refreshed by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rss_pipeline.collector.registry.feed_url import other_form, same_as
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.addresses import (
    AddressRefused,
    address_policy,
    known_feeds,
    read_address,
)
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.refresh import (
    NotSubscribed,
    RefreshAnswer,
    answer_to,
    new_request,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Result, Row, Statement, one
from rss_pipeline.storage.refresh.refresh_requests import request_statements
from rss_pipeline.storage.subscriptions import address as stored
from rss_pipeline.storage.subscriptions.listing import named_feeds


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressKept:
    """The feed has this address already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressChanged:
    """The feed has the new address. `visit`: the visit that was requested, or why there is none yet."""

    visit: RefreshAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTheirs:
    """The user may not change the address; the sentences say why, and what to do instead."""

    message: str
    what_to_do: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFeed:
    """Another feed has the address."""

    feed_id: str
    is_subscribed: bool

    @property
    def message(self) -> str:
        return (
            "You subscribe to this address already, as another feed."
            if self.is_subscribed
            else "This is the address of another feed."
        )

    @property
    def what_to_do(self) -> str:
        return (
            "Unsubscribe from one of them; if that is the other one, this one can have its address then."
            if self.is_subscribed
            else "Subscribe to that address, and unsubscribe from this feed."
        )


ChangeAnswer = AddressKept | AddressChanged | NotTheirs | OtherFeed | AddressRefused | NotSubscribed

_OF_OPERATOR = NotTheirs(
    message="The address of this feed is the operator's.",
    what_to_do="Write to the operator of this server, or subscribe to the other address.",
)
_OF_OTHERS = NotTheirs(
    message="Others subscribe to this feed as well: only the owner of this server can change its address.",
    what_to_do="Subscribe to the other address, and unsubscribe from this one.",
)
_CHANGED_MEANWHILE = NotTheirs(
    message="The feed was changed at the same moment.", what_to_do="Look at it again, then try again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRights:
    """The rights of a user to the address of a feed."""

    fixed: NotTheirs | None
    """The reason why it stays; None for who may change it."""
    is_owner: bool
    """The user is the owner of the installation."""


def address_rights(user_id: str, feed_id: str) -> Query[AddressRights]:
    """The rights of a user; none for one who does not subscribe to the feed."""

    def read(found: Result) -> AddressRights:
        feed = one(found)
        if feed is None:
            return AddressRights(fixed=_OF_OPERATOR, is_owner=False)
        return AddressRights(fixed=fixed_address(feed, feed_id), is_owner=bool(feed["is_owner"]))

    return Query.of(stored.look_at_address(user_id, feed_id), read)


def fixed_address(feed: Row, feed_id: str) -> NotTheirs | None:
    """The reason why the user of this row of `look_at_address` may not change the address; None for one who
    may."""
    if feed["listed"]:
        if not feed["is_owner"]:
            return _OF_OPERATOR
        return NotTheirs(
            message="This feed is in feeds.yaml, and so is its address.",
            what_to_do=f"Write the new address there, with `id: {feed_id}`: then it stays this feed.",
        )
    return _OF_OTHERS if feed["has_others"] and not feed["is_owner"] else None


def change_address(
    caller: Caller, settings: Settings, feed_id: str, text: str, *, others: Sequence[Statement] = ()
) -> ChangeAnswer:
    """Give a feed another address, in two requests to the database. `others` are written with it, or alone if
    it has the address already, and not at all where it is refused.

    Raises:
        NoSession, DatabaseUnavailable: as Caller's methods.
    """
    address = read_address(text, address_policy(settings))
    user_id = caller.user_id
    hosts = [] if isinstance(address, AddressRefused) else [address.host]
    found, named = caller.read(stored.look_at_address(user_id, feed_id), named_feeds(user_id, hosts))
    feed = one(found)
    if feed is None:
        return NotSubscribed()
    if isinstance(address, AddressRefused):
        return address
    if same_as(feed["url"]) == address.same_as:
        if others:
            caller.write(*others)
        return AddressKept()
    if (fixed := fixed_address(feed, feed_id)) is not None:
        return fixed
    known = known_feeds(named.rows).get(address.same_as)
    if known is not None and not known["unused"]:
        return OtherFeed(feed_id=known["id"], is_subscribed=bool(known["subscribed"]))
    if address.refusal is not None:
        return address.refusal
    url = address.url if known is None else known["url"]
    if known is None and url in {row["url"] for row in named.rows}:
        # A feed that users may not know of. This one is requested without its headers and private hosts.
        url = other_form(url)
    now = caller.clock()
    changing = stored.change_address(user_id, feed_id, url=url, host=address.host, now=now)
    request = new_request(user_id, feed_id, now=now)
    results = caller.write(*others, *changing, *request_statements(request))
    changed = [statement.name for statement in changing].index(stored.CHANGE)
    if not results[len(others) + changed].changes:
        return _CHANGED_MEANWHILE
    return AddressChanged(visit=answer_to(request, results, settings))
