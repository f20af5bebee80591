"""The most bytes of new backups of a user and day; beyond them larger documents wait for the next day.

The most of a feed and day is collector.schedule's: it holds visits, and keeps what was fetched.
"""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import FeedHold
from rss_pipeline.collector.schedule.next_visit import MEGABYTE
from rss_pipeline.storage.backups.user_bytes import backup_bytes, first_subscribers
from rss_pipeline.storage.database import Database

SMALL_BYTES = 100_000
"""A document of this size or less is always kept: it is what most feeds have."""


class BackupBudget:
    """The bytes of one run and of the closed visits before it. Used by the threads of the step `backup`."""

    def __init__(self, database: Database, *, most: int, clock: Clock) -> None:
        self._database = database
        self._most = most
        self._clock = clock
        self._day = ""
        self._users: dict[str, str | None] = {}
        """By feed the user that it counts to; None for a feed of feeds.yaml."""
        self._bytes: dict[str, int] = {}
        self._counting = threading.Lock()

    def read(self, sizes: Mapping[str, int]) -> None:
        """Find the users of the larger documents, by feed and size, and their bytes of this day."""
        large = {feed_id for feed_id, size in sizes.items() if size > SMALL_BYTES}
        if not large:
            return
        with self._counting:
            self._begin_day(self._clock())
            if new := large - self._users.keys():
                found = first_subscribers(self._database, new)
                self._users |= {id: found.get(id) for id in new}
            users = {user for id in large if (user := self._users[id]) is not None}
            if unread := users - self._bytes.keys():
                self._bytes |= backup_bytes(self._database, unread, day=self._day)

    def take(self, feed: Feed, size: int) -> FeedHold | None:
        """Count a document that is to be backed up; the hold of its feed instead if it has to wait."""
        now = self._clock()
        with self._counting:
            user = self._users.get(feed.id)
            if user is None or size <= SMALL_BYTES:
                return None
            if self._bytes[user] < self._most:
                self._bytes[user] += size
                return None
        tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return FeedHold(
            feed_id=feed.id,
            host="",
            until=tomorrow,
            reason=f"the feeds of its first subscriber have had their {self._most // MEGABYTE:,} MB of new"
            f" documents of today; this one has {size / MEGABYTE:,.1f} MB and is requested again tomorrow",
        )

    def _begin_day(self, now: datetime) -> None:
        if (day := now.date().isoformat()) != self._day:
            self._day = day
            self._users, self._bytes = {}, {}
