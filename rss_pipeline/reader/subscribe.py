"""Subscribing by an address: a known feed at once, anything else by a request to a run (searches.py); to
many feeds at once; and to those of feeds.yaml.

A feed of feeds.yaml that users may not subscribe to is as good as unknown: the same requests to the database,
and the same answer.
"""

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.feed import MAX_URL_CHARACTERS, Wishes
from rss_pipeline.collector.registry.feed_url import (
    completed,
    feed_id,
    free_id,
    literal,
    other_form,
    read_url,
    reason,
    same_as,
)
from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.pipeline.session.fetch_policy import feed_policy
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import PRIVATE
from rss_pipeline.reader.refresh import (
    Held,
    Queued,
    TooMany,
    VisitRunning,
    answer_to,
    new_request,
    new_search,
    search_answer,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Database, Result, Row, Statement
from rss_pipeline.storage.feeds.feed_row import stored_urls
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.refresh.new_addresses import give_turns, hold_until_turn
from rss_pipeline.storage.refresh.refresh_requests import (
    request_statements,
    search_request_statements,
)
from rss_pipeline.storage.subscriptions.listing import look_for_feed, named_feeds, subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import (
    MAX_SUBSCRIPTIONS,
    Wanted,
    count_listed,
    joinable_listed,
    joinable_named,
    subscribe,
)

# The address of a feed as a user names it: checked without a request, and the known feed that it is.


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


_NO_WISHES = Wishes()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFeed:
    """The user subscribes to this feed now, or did so before. `first`: the visit that it still waits for."""

    feed_id: str
    first: Queued | VisitRunning | Held | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyFeeds:
    """The user has as many subscriptions as one may have."""

    most: int = MAX_SUBSCRIPTIONS


SubscribeAnswer = KnownFeed | Queued | VisitRunning | AddressRefused | TooMany | TooManyFeeds


def subscribe_address(
    caller: Caller,
    settings: Settings,
    text: str,
    *,
    wishes: Wishes = _NO_WISHES,
) -> SubscribeAnswer:
    """Subscribe to the feed at an address, in two requests to the database.

    Raises:
        NoSession, DatabaseUnavailable: as Caller's methods.
    """
    address = read_address(text, address_policy(settings))
    if isinstance(address, AddressRefused):
        # Only a caller learns what is refused.
        caller.read()
        return address
    user_id = caller.user_id
    named, count = caller.read(named_feeds(user_id, [address.host]), subscription_count(user_id))
    known = known_feeds(named.rows).get(address.same_as)
    has_known = known is not None and bool(known["subscribed"])
    if known is None and address.refusal is not None:
        return address.refusal
    if int(count.rows[0]["n"]) >= MAX_SUBSCRIPTIONS and not has_known:
        return TooManyFeeds()
    now = caller.clock()
    if known is None or (known["may_accept"] and address.refusal is None):
        search = new_search(user_id, address.url, now=now, wishes=wishes)
        return search_answer(search, caller.write(*search_request_statements(search)), settings)
    feed_id = str(known["id"])
    wanted = Wanted(
        feed_id=feed_id,
        url=known["url"],
        title=wishes.title,
        folder=wishes.folder,
        wished_interval=wishes.wished_interval,
        full_text=wishes.full_text,
    )
    statements = [
        *give_turns(user_id, [feed_id], now=now),
        *subscribe(user_id, [wanted], at=now),
        *hold_until_turn(user_id, [feed_id], now=now),
        look_for_feed(user_id, feed_id),
    ]
    request = new_request(user_id, feed_id, now=now, kind="first")
    results = caller.write(*statements, *(request_statements(request) if known["waits"] else ()))
    if not results[len(statements) - 1].rows:
        # The feed got another address at this moment, or the user another feed.
        return subscribe_address(caller, settings, text, wishes=wishes)
    if not known["waits"]:
        return KnownFeed(feed_id=feed_id)
    answer = answer_to(request, results, settings)
    return KnownFeed(
        feed_id=feed_id, first=answer if isinstance(answer, Queued | VisitRunning | Held) else None
    )


# Subscribing to many feeds at once, by addresses that may be requested: of a list, or found by a search.
#
# Nothing is fetched: feeds that are new are due, and the polls that follow visit them as any other.


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedFeed:
    """A feed by its address, which has neither userinfo nor fragment."""

    url: str
    host: str
    same_as: str
    """The same for two forms of one address."""
    title: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSubscriptions:
    """The rows to write."""

    new: tuple[NewFeed, ...]
    wanted: tuple[Wanted, ...]
    known: int
    """Feeds that the user subscribes to already."""


def named_statements(user_id: str, feeds: Sequence[AddressedFeed]) -> list[Statement]:
    """Queries for the feeds at the hosts of these, and for the feeds with the ids that new ones would
    have (`stored_urls`)."""
    hosts = sorted({feed.host for feed in feeds})
    ids = (feed_id(url, feed.host) for feed in feeds for url in (feed.url, other_form(feed.url)))
    return [named_feeds(user_id, hosts), *stored_urls(ids)]


def plan_subscriptions(
    feeds: Iterable[AddressedFeed], stored: Iterable[Row], taken: Mapping[str, str]
) -> PlannedSubscriptions:
    """The feeds to add and to subscribe, from the rows of `named_feeds`, and the URLs of `stored_urls`.

    A feed that users may not subscribe by its address is as good as unknown: its public form is added, which
    is requested without the headers and passwords of feeds.yaml. So no user learns whether there is one.
    """
    rows = list(stored)
    urls = {row["url"] for row in rows}
    by_address = known_feeds(rows)
    new: list[NewFeed] = []
    wanted: list[Wanted] = []
    known = 0
    for feed in feeds:
        stored_feed = by_address.get(feed.same_as)
        if stored_feed is None:
            added = _new_feed(feed, urls, taken)
            new.append(added)
            wanted.append(Wanted(feed_id=added.id, url=added.url, title=feed.title, folder=feed.folder))
        elif stored_feed["subscribed"]:
            known += 1
        else:
            wanted.append(_wanted(feed, stored_feed))
    return PlannedSubscriptions(new=tuple(new), wanted=tuple(wanted), known=known)


def _new_feed(feed: AddressedFeed, urls: set[str], taken: Mapping[str, str]) -> NewFeed:
    url = feed.url if feed.url not in urls else other_form(feed.url)
    return NewFeed(id=free_id(url, feed.host, taken), url=url, host=feed.host)


def _wanted(feed: AddressedFeed, row: Mapping[str, str | None]) -> Wanted:
    # A title that is the feed's own is not the user's: it would stay when the feed changes its title.
    title = feed.title if feed.title != row["title"] else None
    return Wanted(feed_id=str(row["id"]), url=row["url"], title=title, folder=feed.folder)


# The feeds of feeds.yaml as subscriptions of users: for who collects for themselves.
#
# Such a subscription is recorded as one that came with the file: it goes when the feed is taken out, unless
# the user has made it an own one.

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The numbers of feeds of feeds.yaml that a new user does not get."""

    closed: int
    """Users may not subscribe to them until it says `shared: true`."""
    too_many: int
    """More than `most`."""
    most: int = MAX_SUBSCRIPTIONS
    """The most subscriptions of a user."""


def read_list(database: Database, settings: Settings, *, now: datetime) -> None:
    """Bring the database up to date with feeds.yaml. A file that cannot be used changes nothing: then the
    feeds are those of the last poll."""
    try:
        sync_registry(database, settings, now=now, environ=os.environ)
    except RegistryError as error:
        logger.warning("%s\nThe feeds are those that the last poll has read.", error)


def subscribe_listed(
    database: Database, user_id: str, *, at: datetime, only: Collection[str] | None = None
) -> int:
    """Subscribe a user to the open feeds of feeds.yaml, or to those of these ids, in their folders; return
    how many of them the user subscribes to now.

    `left_out` has the number of the others.
    """
    [found] = database.batch([joinable_listed()])
    wanted = [each for each in wanted_listed(found) if only is None or each.feed_id in only]
    _subscribe(database, user_id, wanted, at=at)
    return len(wanted)


def subscribe_named(
    database: Database, user_id: str, feed_ids: Sequence[str], *, at: datetime
) -> tuple[int, int]:
    """Subscribe a user to these feeds by choice; return how many of them any user may subscribe to, and how
    many subscriptions are new."""
    [found] = database.batch([joinable_named(feed_ids)])
    wanted = [Wanted(feed_id=row["id"], folder=row["folder"]) for row in found.rows]
    return len(wanted), _subscribe(database, user_id, wanted, at=at)


def only_user(database: Database, *, at: datetime) -> tuple[str, str] | None:
    """Id and name of the user of an installation that has just one."""
    found = users.accounts(database, now=at)
    return (found[0].id, found[0].name) if len(found) == 1 else None


def left_out(database: Database) -> LeftOut:
    """The feeds of feeds.yaml that `subscribe_listed` leaves out."""
    [found] = database.batch([count_listed()])
    listed, joinable = int(found.rows[0]["listed"]), int(found.rows[0]["joinable"])
    return LeftOut(closed=listed - joinable, too_many=max(0, joinable - MAX_SUBSCRIPTIONS))


def wanted_listed(listed: Result) -> list[Wanted]:
    """The feeds that `joinable_listed` found, as they are subscribed."""
    return [Wanted(feed_id=row["id"], folder=row["folder"], origin="list") for row in listed.rows]


def _subscribe(database: Database, user_id: str, wanted: Sequence[Wanted], *, at: datetime) -> int:
    if not wanted:
        return 0
    count = subscription_count(user_id)
    before, *_, after = database.batch(
        [count, *subscribe(user_id, wanted, at=at), users.note_change(user_id), count]
    )
    return int(after.rows[0]["n"]) - int(before.rows[0]["n"])
