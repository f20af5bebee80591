"""The frame around a signed-in page: the user's preferences, folders and feeds with their unread counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.pipeline.accounts.preferences import Preferences, stored_preferences
from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.subscriptions.folders import folder_names, list_folders
from rss_pipeline.storage.subscriptions.listing import FeedRow, feed_rows, list_feeds


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder in the column of feeds."""

    name: str
    feeds: Sequence[FeedRow]

    @property
    def unread(self) -> int:
        return sum(feed.unread for feed in self.feeds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What every page of a user shows beside its own matter."""

    preferences: Preferences
    feeds: Sequence[FeedRow]
    """In the user's order."""
    folders: Sequence[Folder]
    """By name, empty ones too."""

    @property
    def loose(self) -> Sequence[FeedRow]:
        """Feeds in no folder."""
        return [feed for feed in self.feeds if feed.folder is None]

    @property
    def unread(self) -> int:
        return sum(feed.unread for feed in self.feeds)

    @property
    def version(self) -> int:
        """The number of the newest item of all feeds: what this page has shown."""
        return max((feed.version for feed in self.feeds), default=0)

    @property
    def failing(self) -> int:
        """Feeds whose last visit failed."""
        return sum(feed.health in ("failing", "gone") for feed in self.feeds)


def frame_statements(user_id: str) -> list[Statement]:
    """The queries for `frame_of`."""
    return [users.preferences(user_id), list_folders(user_id), list_feeds(user_id)]


def frame_of(results: Sequence[Result]) -> Frame:
    """The frame, from the results of `frame_statements`."""
    user, folders, listed = results
    feeds = feed_rows(listed)
    inside = sorted((feed for feed in feeds if feed.folder is not None), key=lambda feed: feed.folder or "")
    by_folder = {name: list(rows) for name, rows in groupby(inside, key=lambda feed: feed.folder or "")}
    return Frame(
        preferences=stored_preferences(user.rows[0]["preferences"]),
        feeds=feeds,
        folders=[Folder(name, by_folder.get(name, [])) for name in folder_names(folders)],
    )


async def read_frame(caller: AsyncCaller, *more: Statement) -> tuple[Frame, list[Result]]:
    """The frame, and the results of the page's own queries, in one batch."""
    own = frame_statements(caller.user_id)
    found = await caller.read_long(*own, *more)
    return frame_of(found[: len(own)]), found[len(own) :]
