"""The feeds that a user subscribes to, as calls look them up."""

from collections.abc import Sequence
from dataclasses import dataclass

from rss_pipeline.api.google_reader.answers import Refused
from rss_pipeline.api.google_reader.call import SignedIn
from rss_pipeline.api.google_reader.parameters import Feed, FeedAddress, FeedStream
from rss_pipeline.collector.registry.feed_url import completed, same_as
from rss_pipeline.reader.feeds import FeedName, feed_names


@dataclass(frozen=True, slots=True)
class Feeds:
    """All feeds of a user."""

    rows: Sequence[FeedName]

    def find(self, feed: Feed) -> FeedName | None:
        """The feed with this id or address, if the user subscribes to it."""
        if isinstance(feed, FeedStream):
            return next((row for row in self.rows if row.feed_id == feed.id), None)
        wanted = _same_as(feed.url)
        return next((row for row in self.rows if _same_as(row.url) == wanted), None)

    def known(self, feed: Feed) -> FeedName:
        """The same.

        Raises:
            Refused: the user does not subscribe to it; the answer says nothing of what others subscribe to.
        """
        row = self.find(feed)
        if row is None:
            raise Refused(404, "You do not subscribe to this feed.")
        return row


async def read_feeds(session: SignedIn) -> Feeds:
    """The feeds of the caller, in the user's order."""
    return Feeds(await session.ask(feed_names(session.user_id)))


async def feed_id_of(session: SignedIn, feed: Feed) -> str:
    """The id of a feed by its stream.

    Raises:
        Refused: it is named by its address, and the user does not subscribe to it.
    """
    if isinstance(feed, FeedAddress):
        return (await read_feeds(session)).known(feed).feed_id
    return feed.id


def _same_as(url: str) -> str:
    try:
        return same_as(completed(url))
    except ValueError:
        return url
