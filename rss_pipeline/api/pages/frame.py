"""The frame around a signed-in page: the user's preferences, folders and feeds with their unread counts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Self, TypeVar, overload

from rss_pipeline.api.auth import AsyncCaller
from rss_pipeline.api.pages.addresses import feed_of
from rss_pipeline.reader.accounts.preferences import OwnState, Preferences, own_state
from rss_pipeline.reader.collecting import Hindrance, PollTrouble, poll_trouble
from rss_pipeline.reader.feed_queries import (
    FeedRow,
    HiddenUnread,
    feeds,
    folders,
    hidden_unread,
    item_count,
    star_count,
)
from rss_pipeline.reader.query import NOTHING, Query, together

T = TypeVar("T")

MOST_IN_COLUMN = 300
"""Feeds in the column of a page: 3,000 would be half a megabyte."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in the column of feeds."""

    name: str
    feeds: Sequence[FeedRow]
    hidden: int = 0
    """Unread items for which another one stands."""

    @property
    def unread(self) -> int:
        return sum(feed.unread for feed in self.feeds) - self.hidden


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The parts of every page of a user besides its own content."""

    preferences: Preferences
    feeds: Sequence[FeedRow]
    """In the user's order, without the times of their visits (`with_visits`)."""
    folders: Sequence[Folder]
    """By name, empty ones too."""
    starred: int
    """Items with a star."""
    state: int
    """The version of what the user sees: it grows with each mark, wherever that is made."""
    items: int = 0
    """All items of the feeds."""
    hidden: int = 0
    """Unread items for which another one stands."""
    trouble: PollTrouble | None = None
    """The hindrance that the last poll met."""
    hindrances: Sequence[Hindrance] = ()
    """All that keeps feeds from being visited now."""

    @cached_property
    def loose(self) -> Sequence[FeedRow]:
        """Feeds in no folder."""
        return [feed for feed in self.feeds if feed.folder is None]

    @cached_property
    def unread(self) -> int:
        """The unread entries of the list of all feeds."""
        return sum(feed.unread for feed in self.feeds) - self.hidden

    @cached_property
    def version(self) -> int:
        """The number of the newest item of all feeds: what this page has shown."""
        return max((feed.version for feed in self.feeds), default=0)

    @cached_property
    def failing(self) -> int:
        """Feeds with a failed last visit."""
        return sum(feed.last_visit_failed for feed in self.feeds)

    @cached_property
    def unvisited(self) -> int:
        """Feeds that wait for their first visit."""
        return sum(feed.health == "new" for feed in self.feeds)

    @property
    def is_cut(self) -> bool:
        """True if feeds without unread items are left out of the column: there are too many."""
        return len(self.feeds) > MOST_IN_COLUMN

    def in_column(self, feeds: Sequence[FeedRow], path: str) -> Sequence[FeedRow]:
        """The feeds among these that the column of the page at this path shows."""
        if not self.is_cut:
            return feeds
        kept, shown = self._kept, feed_of(path)
        return [feed for feed in feeds if feed.feed_id in kept or feed.feed_id == shown]

    @cached_property
    def _kept(self) -> frozenset[str]:
        unread = (feed.feed_id for feed in self.feeds if feed.unread)
        return frozenset(islice(unread, MOST_IN_COLUMN))

    def next_unread(self, feed_id: str) -> FeedRow | None:
        """The next feed with unread items in the order of the column; behind the last feed the first is next.
        None if all is read."""
        feeds = [feed for folder in self.folders for feed in folder.feeds] + list(self.loose)
        place = next((n for n, feed in enumerate(feeds) if feed.feed_id == feed_id), len(feeds) - 1)
        return next((feed for feed in feeds[place + 1 :] + feeds[: place + 1] if feed.unread), None)

    def after_reading(self, feed_id: str) -> Self:
        """The frame after one unread item of this feed was read."""

        def less(feed: FeedRow) -> FeedRow:
            is_it = feed.feed_id == feed_id and feed.unread > 0
            return feed._replace(unread=feed.unread - 1) if is_it else feed

        return replace(
            self,
            state=self.state + 1,
            feeds=[less(feed) for feed in self.feeds],
            folders=[replace(folder, feeds=[less(feed) for feed in folder.feeds]) for folder in self.folders],
        )


def frame_query(user_id: str) -> Query[Frame]:
    """The frame, without the number of all items."""
    own = together(
        own_state(user_id),
        folders(user_id),
        feeds(user_id, has_visits=False),
        star_count(user_id),
        hidden_unread(user_id),
    )
    return together(own, poll_trouble()).then(lambda found: _frame(*found[0], found[1]))


def _frame(
    own: OwnState,
    names: Sequence[str],
    feeds: Sequence[FeedRow],
    starred: int,
    hidden: HiddenUnread,
    trouble: PollTrouble | None,
) -> Frame:
    by_folder = defaultdict[str | None, list[FeedRow]](list)
    for feed in feeds:
        by_folder[feed.folder].append(feed)
    return Frame(
        preferences=own.preferences,
        feeds=feeds,
        folders=[Folder(name, by_folder.get(name, []), hidden.of_folders.get(name, 0)) for name in names],
        hidden=hidden.of_all,
        starred=starred,
        state=own.version,
        trouble=trouble,
    )


async def items_of_all(caller: AsyncCaller, feed_ids: Sequence[str], version: int) -> int:
    """The number of all items of the caller's feeds, which are these; `version` is the newest arrival."""
    seen = version, hash(frozenset(feed_ids))
    totals = caller.stores.totals
    known = totals.known(caller.user_id, seen, are_reads_charged=caller.stores.is_remote)
    if known is not None:
        return known
    return totals.keep(caller.user_id, seen, await caller.ask_long(item_count(caller.user_id)))


@overload
async def read_frame(caller: AsyncCaller) -> tuple[Frame, None]: ...
@overload
async def read_frame(caller: AsyncCaller, query: Query[T]) -> tuple[Frame, T]: ...
async def read_frame(caller: AsyncCaller, query: Query[Any] = NOTHING) -> tuple[Frame, Any]:
    """The frame, and the value of the page's own query, in one batch; in another one what is only counted
    once something came in."""
    frame, value = await caller.ask_long(together(frame_query(caller.user_id), query))
    items = await items_of_all(caller, [feed.feed_id for feed in frame.feeds], frame.version)
    found = await caller.hindrances(frame.trouble)
    return replace(frame, items=items, hindrances=found), value
