"""The reader of collected items, for an asset, a script or a notebook: `FeedReader`.

It needs no Dagster; the resource for assets is orchestration.downstream. The statements are
storage.items.stored_items'.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rss_pipeline.environment import load_env_file
from rss_pipeline.pipeline.read import frames as page
from rss_pipeline.pipeline.read.terminal_text import items_html
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import cursor
from rss_pipeline.storage.items import stored_items as read
from rss_pipeline.storage.items.cursor import Position
from rss_pipeline.storage.items.stored_items import FeedInfo, StoredItem, stored_item
from rss_pipeline.storage.items.stories import StoredStory, stored_stories
from rss_pipeline.storage.objects import ObjectStore

Since = str | datetime | None
"""The `cursor` of an item; or an aware datetime, for what came in then or later; or None, for everything."""


@dataclass(frozen=True, slots=True)
class FeedReader:
    """Reads the collected feeds and items.

    Items are given in the order in which they came in, which no clock and no replay disturbs. Each carries
    its `cursor`: pass the last one's as `since` the next time, and you get all items that came in meanwhile,
    each once. A cursor is a text to be kept as it is. It stays valid however many of the items around it
    retention has removed, and after `rss-pipeline copy`. After `restore`, after `forget` and a new start,
    and where the database was put back from an older copy, items that had been read come again, under the
    ids they had; none is left out. An item that a repair rewrote does not come again.
    """

    database: Database
    objects: ObjectStore

    def feeds(self) -> list[FeedInfo]:
        """All known feeds, by id; also those that have left feeds.yaml."""
        return read.feeds(self.database)

    def items(
        self,
        feed_id: str | None = None,
        *,
        streams: Sequence[str] | None = None,
        since: Since = None,
        html: bool = False,
    ) -> Iterator[StoredItem]:
        """The items of a feed, or of all feeds, that came in behind `since`, oldest arrival first.

        With `streams`, those of a feed that belong to any of these streams; an item that a changed selector
        gives to a stream keeps its place in the order, so a reader that is behind it does not see it.

        They are read page by page (about 1 MB) as you iterate, so that memory does not grow with their
        number. With `html` each has its content with the archived images in place. An unknown feed has no
        items.

        Raises:
            ValueError: `since` is not a cursor of this project, or a datetime without a time zone.
            InfrastructureError: a store cannot be read now.
        """
        for rows in read.pages(self.database, feed_id, since=position(since), streams=streams):
            contents = items_html(self.database, self.objects, rows) if html else [None] * len(rows)
            for row, content in zip(rows, contents, strict=True):
                yield stored_item(row, html=content)

    def stories(self, *, since: datetime, until: datetime | None = None) -> Iterator[StoredStory]:
        """The stories in which an item came in at `since` or later, and before `until`: what several feeds
        write of one event. They are of all feeds; what one user sees of them is the reader's."""
        return stored_stories(self.database, since=since, until=until)

    def frame(self, item: StoredItem) -> str:
        """An `<iframe>` that shows an item of `items(..., html=True)` in a page of yours.

        The page begins with `page_head()`. Publishers' HTML in it runs no script, sends no form and no
        Referer, and loads only images and media, over https or from the archive.
        """
        html = item.html or item.content_html or item.summary or ""
        return page.frame(html, base=item.base_url or item.link, sources=page.image_sources(self.objects))

    def page_head(self) -> str:
        """The first elements of a page with such frames, behind its doctype: character set and policies."""
        return page.page_head(page.image_sources(self.objects))

    def end(self) -> str:
        """The cursor behind all that is stored now: to start with the items that come after it."""
        return str(cursor.end(self.database))


@contextmanager
def open_feed_reader(settings: Settings | None = None) -> Iterator[FeedReader]:
    """A reader outside of Dagster, for a script or a notebook.

    Raises:
        SettingsError: a variable of the environment has an invalid value.
        DatabaseUnavailable: it cannot be reached, or its schema is not this code's.
    """
    settings = settings or settings_here()
    with open_database(settings) as database:
        yield FeedReader(database, open_objects(settings))


def settings_here() -> Settings:
    """The settings of the environment and of a file `.env` in the current folder."""
    load_env_file(Path.cwd())
    return Settings.from_environ(os.environ, cwd=Path.cwd())


def position(since: Since) -> Position:
    """The place in the order of arrival that `since` means."""
    if since is None:
        return Position()
    return Position.of(since) if isinstance(since, str) else Position.at(since)
