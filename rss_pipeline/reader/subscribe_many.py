"""Subscribing to many feeds at once, by addresses that may be requested: of a list, or found by a search.

Nothing is fetched: feeds that are new are due, and the polls that follow visit them as any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rss_pipeline.collector.registry.feed_url import feed_id, free_id, other_form
from rss_pipeline.reader.addresses import known_feeds
from rss_pipeline.storage.database import Row, Statement
from rss_pipeline.storage.feeds.feeds import stored_urls
from rss_pipeline.storage.feeds.subscribed import NewFeed
from rss_pipeline.storage.subscriptions.listing import named_feeds
from rss_pipeline.storage.subscriptions.subscriptions import Wanted


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
