"""The feeds of a user as people are shown them: listed, named, in folders, with counts and visits."""

from collections.abc import Sequence

from rss_pipeline.reader.query import Query
from rss_pipeline.storage.database import Result
from rss_pipeline.storage.feeds.predicates import Health
from rss_pipeline.storage.subscriptions import folding, item_query, listing, subscriptions
from rss_pipeline.storage.subscriptions.folding import HiddenUnread
from rss_pipeline.storage.subscriptions.item_query import UnreadCount
from rss_pipeline.storage.subscriptions.listing import FeedName, FeedRow, Visits, with_visits

__all__ = [
    "FeedName",
    "FeedRow",
    "Health",
    "HiddenUnread",
    "UnreadCount",
    "Visits",
    "feed",
    "feed_name",
    "feed_names",
    "feeds",
    "folders",
    "has_feed",
    "hidden_unread",
    "item_count",
    "star_count",
    "star_count_of_feed",
    "unread_counts",
    "visits",
    "with_visits",
]


def feeds(
    user_id: str, *, newer_than: int | None = None, has_visits: bool = True
) -> Query[Sequence[FeedRow]]:
    """All feeds, in the user's order; `newer_than`: those with an item of a higher arrival number. Not
    `has_visits`: without what changes with each visit, for `with_visits`."""
    return Query.of(
        listing.list_feeds(user_id, newer_than=newer_than, has_visits=has_visits), listing.feed_rows
    )


def feed(user_id: str, feed_id: str) -> Query[FeedRow | None]:
    """One feed; None for one that the user does not subscribe to."""
    return Query.of(
        listing.list_feeds(user_id, feed_id), lambda found: next(iter(listing.feed_rows(found)), None)
    )


def has_feed(user_id: str, feed_id: str) -> Query[bool]:
    """True if the user subscribes to this feed."""
    return Query.of(listing.look_for_feed(user_id, feed_id), lambda found: bool(found.values))


def visits(feed_ids: Sequence[str]) -> Query[Visits]:
    """The last and the next visit of each of these feeds."""
    return Query(tuple(listing.list_visits(feed_ids)), listing.visits_of)


def feed_names(user_id: str) -> Query[Sequence[FeedName]]:
    """All feeds by name, in the user's order: in a fifth of the time of `feeds`."""
    return Query.of(listing.list_names(user_id), listing.feed_names)


def feed_name(user_id: str, feed_id: str) -> Query[FeedName | None]:
    """One feed by name; None for one that the user does not subscribe to."""
    return Query.of(
        listing.list_names(user_id, feed_id), lambda found: next(iter(listing.feed_names(found)), None)
    )


def folders(user_id: str) -> Query[Sequence[str]]:
    """The names of all folders, empty ones too, sorted."""
    return Query.of(subscriptions.list_folders(user_id), subscriptions.folder_names)


def unread_counts(user_id: str) -> Query[Sequence[UnreadCount]]:
    """The unread items of each feed, by feed id; feeds without any, too."""
    return Query.of(item_query.count_unread(user_id), item_query.unread_counts)


def item_count(user_id: str) -> Query[int]:
    """The number of all items of the user's feeds: an index entry is read of each."""
    return Query.of(item_query.count_items(user_id), _number)


def star_count(user_id: str) -> Query[int]:
    """The number of all items to which the user has given a star."""
    return Query.of(item_query.count_all_starred(user_id), _number)


def star_count_of_feed(user_id: str, feed_id: str) -> Query[int]:
    """The number of those of one feed."""
    return Query.of(item_query.count_starred(user_id, feed_id), _number)


def hidden_unread(user_id: str) -> Query[HiddenUnread]:
    """The unread items that lists of several feeds do not count, because another item stands for them."""
    folds = folding.folding()
    if folds is None:
        return Query((), lambda _: HiddenUnread())
    return Query.of(folds.count(user_id), folds.counted)


def _number(found: Result) -> int:
    return int(found.values[0][0])
