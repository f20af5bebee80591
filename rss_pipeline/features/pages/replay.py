"""A page in the replay of its feed: what the newest backup shows of it, where the database was lost."""

from collections.abc import Iterator

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.pages.known import PageOfDocument, page_in
from rss_pipeline.features.pages.sql import restore_page
from rss_pipeline.storage.database import Database, Statement


class PageInReplay:
    """The work of pages in the replay of one feed."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._last: PageOfDocument | None = None

    def inserting(self, *_: object, **__: object) -> Iterator[list[Statement]]:
        """Nothing."""
        return iter(())

    def others(self, *_: object, **__: object) -> Iterator[list[Statement]]:
        """Nothing."""
        return iter(())

    def add(self, parsed: Parsed) -> None:
        """Take in a backup whose items are stored."""
        self._last = page_in(parsed)

    def end(self, database: Database) -> None:
        """Record what the newest document shows."""
        if self._last is not None:
            known = self._last.known.to_text()
            restore_page(database, self._feed.id, settings=self._last.settings, known=known)
