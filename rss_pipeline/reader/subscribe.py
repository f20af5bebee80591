"""Subscribing by an address: a known feed at once, anything else by a request to a run (searches.py).

A feed of feeds.yaml that users may not subscribe to is as good as unknown: the same requests to the database,
and the same answer.
"""

from dataclasses import dataclass

from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.addresses import (
    AddressRefused,
    address_policy,
    known_feeds,
    read_address,
)
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
from rss_pipeline.storage.refresh.new_addresses import give_turns, hold_until_turn
from rss_pipeline.storage.refresh.refresh_requests import (
    request_statements,
    search_request_statements,
)
from rss_pipeline.storage.subscriptions.listing import look_for_feed, named_feeds, subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import (
    MAX_SUBSCRIPTIONS,
    Wanted,
    subscribe,
)

_NO_WISHES = Wishes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The user subscribes to this feed now, or did so before. `first`: the visit that it still waits for."""

    feed_id: str
    first: Queued | VisitRunning | Held | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyFeeds:
    """The user has as many subscriptions as one may have."""

    most: int = MAX_SUBSCRIPTIONS


SubscribeAnswer = Known | Queued | VisitRunning | AddressRefused | TooMany | TooManyFeeds


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
    if known is None:
        search = new_search(user_id, address.url, now=now, wishes=wishes)
        return search_answer(search, caller.write(*search_request_statements(search)), settings)
    feed_id = str(known["id"])
    wanted = Wanted(
        feed_id=feed_id,
        url=known["url"],
        title=wishes.title,
        folder=wishes.folder,
        wished_interval=wishes.wished_interval,
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
        return Known(feed_id=feed_id)
    answer = answer_to(request, results, settings)
    return Known(feed_id=feed_id, first=answer if isinstance(answer, Queued | VisitRunning | Held) else None)
