"""The changes that a user makes to subscriptions: title, folder, place, interval, address, and their end; and
to folders.

Each function does its rows and answers with values; all may be repeated. The address of a feed of feeds.yaml
is changed there. Any other belongs to those who subscribe to it: who is the only one may change it, and the
owner of the installation. Nothing is requested here: the feed is due, and a visit is requested for it, as
when it is refreshed by hand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

from rss_pipeline.collector.registry.feed_url import other_form, same_as
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.refresh import (
    NotSubscribed,
    RefreshAnswer,
    answer_to,
    new_request,
)
from rss_pipeline.reader.subscribe import (
    AddressRefused,
    address_policy,
    known_feeds,
    read_address,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Result, Row, one
from rss_pipeline.storage.refresh.refresh_requests import request_statements
from rss_pipeline.storage.subscriptions import subscriptions
from rss_pipeline.storage.subscriptions import subscriptions as stored
from rss_pipeline.storage.subscriptions.listing import FeedRow, feed_rows, list_feeds, named_feeds

Direction = Literal["up", "down"]


class SubscriptionChanges(TypedDict, total=False):
    """Changes to one subscription; what is left out stays."""

    title: str | None
    """None for the feed's own."""
    folder: str | None
    """None for none."""
    position: int
    wished_interval: int | None
    """Seconds; None for what the schedule finds."""
    full_text: bool
    """The articles behind items that arrive from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The feed is as it was wanted."""

    feed: FeedRow
    visit: RefreshAnswer | None = None
    """The visit that was requested at its new address, or why there is none yet; None if it has the address
    of before."""


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


EditAnswer = Edited | NotTheirs | OtherFeed | AddressRefused | NotSubscribed

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

    return Query.of(subscriptions.look_at_address(user_id, feed_id), read)


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


def edit_feed(
    caller: Caller,
    settings: Settings,
    feed_id: str,
    *,
    url: str | None = None,
    **changes: Unpack[SubscriptionChanges],
) -> EditAnswer:
    """Change a subscription, in one request to the database; with another address, in two. Where the address
    is refused, nothing changes.

    Raises:
        NoSession, DatabaseUnavailable: as Caller's methods.
    """
    user_id, now = caller.user_id, caller.clock()
    edits, after = stored.edit(user_id, feed_id, changes, at=now), list_feeds(user_id, feed_id)
    if url is None:
        return _edited(caller.write(*edits, after)[-1])
    address = read_address(url, address_policy(settings))
    hosts = [] if isinstance(address, AddressRefused) else [address.host]
    found, named = caller.read(subscriptions.look_at_address(user_id, feed_id), named_feeds(user_id, hosts))
    feed = one(found)
    if feed is None:
        return NotSubscribed()
    if isinstance(address, AddressRefused):
        return address
    if same_as(feed["url"]) == address.same_as:
        return _edited(caller.write(*edits, after)[-1])
    if (fixed := fixed_address(feed, feed_id)) is not None:
        return fixed
    known = known_feeds(named.rows).get(address.same_as)
    if known is not None and not known["unused"]:
        return OtherFeed(feed_id=known["id"], is_subscribed=bool(known["subscribed"]))
    if address.refusal is not None:
        return address.refusal
    new_url = address.url if known is None else known["url"]
    if known is None and new_url in {row["url"] for row in named.rows}:
        # A feed that users may not know of. This one is requested without its headers and private hosts.
        new_url = other_form(new_url)
    changing = subscriptions.change_address(user_id, feed_id, url=new_url, host=address.host, now=now)
    request = new_request(user_id, feed_id, now=now)
    *results, listed = caller.write(*edits, *changing, *request_statements(request), after)
    changed = [statement.name for statement in changing].index(subscriptions.CHANGE)
    if not results[len(edits) + changed].changes:
        return _CHANGED_MEANWHILE
    return _edited(listed, answer_to(request, results, settings))


def _edited(listed: Result, visit: RefreshAnswer | None = None) -> Edited | NotSubscribed:
    rows = feed_rows(listed)
    return Edited(feed=rows[0], visit=visit) if rows else NotSubscribed()


def edit_feeds(caller: Caller, changes: Mapping[str, SubscriptionChanges]) -> None:
    """Change several subscriptions, by feed id, all or none; feeds that are not subscribed are left out."""
    at = caller.clock()
    edits = [stored.edit(caller.user_id, id, wanted, at=at) for id, wanted in changes.items() if wanted]
    if edits:
        caller.write(*(statement for edit in edits for statement in edit))


def unsubscribe(caller: Caller, feed_ids: Sequence[str]) -> int:
    """End these subscriptions, with their read states and stars; how many of them there were. Once no one
    uses a feed, it is no longer visited, and a week later its items are removed."""
    if not feed_ids:
        return 0
    ended, *_ = caller.write(*stored.unsubscribe(caller.user_id, feed_ids, at=caller.clock()))
    return ended.changes


def move_feed(caller: Caller, feed_id: str, direction: Direction) -> None:
    """Let a feed change places with its neighbour in the same folder."""
    [listed] = caller.read(list_feeds(caller.user_id))
    if places := moved(feed_rows(listed), feed_id, direction):
        caller.write(stored.place(caller.user_id, places))


def moved(rows: Sequence[FeedRow], feed_id: str, direction: Direction) -> dict[str, int]:
    """The new places, by feed id, after a feed has changed places with its neighbour in the same folder.

    `rows` are all feeds in the user's order. Where some have the same place, all get new ones. Empty for the
    first feed that moves up, the last one that moves down, and a feed that is not in the list.
    """
    at = next((n for n, row in enumerate(rows) if row.feed_id == feed_id), None)
    if at is None:
        return {}
    ahead = range(at - 1, -1, -1) if direction == "up" else range(at + 1, len(rows))
    other = next((n for n in ahead if rows[n].folder == rows[at].folder), None)
    if other is None:
        return {}
    places = [row.position for row in rows]
    if len(set(places)) < len(places):
        places = list(range(1, len(rows) + 1))
    places[at], places[other] = places[other], places[at]
    return {row.feed_id: place for row, place in zip(rows, places, strict=True) if row.position != place}


def add_folders(caller: Caller, names: Sequence[str]) -> None:
    """Make these folders, which may stay empty; beyond the most of a user none is made."""
    caller.write(subscriptions.add_folders(caller.user_id, names))


def rename_folder(caller: Caller, name: str, new: str) -> bool:
    """Give a folder another name; where there is one of that name, the two become one. False where there is
    a folder of neither name."""
    user_id = caller.user_id
    before, *_ = caller.write(
        subscriptions.list_folders(user_id), *subscriptions.rename_folder(user_id, name, new)
    )
    return not {name, new}.isdisjoint(subscriptions.folder_names(before))


def remove_folders(caller: Caller, names: Sequence[str]) -> None:
    """Remove folders; their feeds stay, in none."""
    caller.write(*(one for name in names for one in subscriptions.remove_folder(caller.user_id, name)))
