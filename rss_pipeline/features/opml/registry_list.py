"""Lists of feeds from and to other readers: an OPML file into feeds.yaml, feeds.yaml as OPML.

The form of OPML is collector.opml's. No feed is visited here: the next poll visits what is new.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.registry.feed_url import literal, same_as
from rss_pipeline.collector.registry.new_entries import NewEntry
from rss_pipeline.features.opml.outline import OpmlFeed
from rss_pipeline.features.opml.read import read_opml
from rss_pipeline.features.opml.write import write_opml
from rss_pipeline.pipeline.registry.edit import registered, write_feeds
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feeds import known_pages
from rss_pipeline.storage.feeds.registered import registry_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The feeds of an OPML file: what became of them."""

    ids: tuple[str, ...]
    """The added feeds."""
    known: int
    """Already in feeds.yaml, where their entries stay as they are."""
    merged: int
    """Further outlines of a feed that the file lists more than once."""
    in_several: tuple[tuple[str, str, str], ...]
    """URL, folder kept and other folder of feeds that the file lists in more than one."""

    @property
    def added(self) -> int:
        return len(self.ids)


def import_opml(
    body: bytes, *, path: Path, database: Database, settings: Settings, environ: Mapping[str, str]
) -> Imported:
    """Add the feeds of an OPML file to feeds.yaml: all that are new, or none.

    Two outlines are one feed if their URLs are the same to feeds.yaml. The first gives title and folder; what
    it does not have comes from the others.

    Raises RegistryError: the OPML file has mistakes, or feeds.yaml has.
    """
    specs = registered(settings.feeds_file, environ=environ)
    listed = read_opml(body, path=path)
    known = {same_as(spec.url) for spec in specs}
    feeds: dict[str, OpmlFeed] = {}
    in_several: list[tuple[str, str, str]] = []
    for feed in listed:
        first = feeds.setdefault(feed.same_as, feed)
        if first.folder and feed.folder and first.folder != feed.folder and feed.same_as not in known:
            in_several.append((first.url, first.folder, feed.folder))
        feeds[feed.same_as] = replace(
            first, title=first.title or feed.title, folder=first.folder or feed.folder
        )
    new = [feed for key, feed in feeds.items() if key not in known]
    written: tuple[FeedSpec, ...] = ()
    if new:
        entries = [NewEntry(url=literal(each.url), title=each.title, folder=each.folder) for each in new]
        written = write_feeds(settings.feeds_file, entries, environ=environ, rows=registry_rows(database))
    return Imported(
        ids=tuple(spec.id for spec in written),
        known=len(feeds) - len(new),
        merged=len(listed) - len(feeds),
        in_several=tuple(in_several),
    )


def export_opml(
    *, database: Database, settings: Settings, environ: Mapping[str, str], now: datetime
) -> tuple[bytes, int, int]:
    """The feeds of feeds.yaml as OPML; how many they are, and how many of them need a password or headers.

    Passwords and headers are left out. Title and page are the registry's, else the feed's own.
    """
    specs = registered(settings.feeds_file, environ=environ)
    pages = known_pages(database)
    feeds = []
    for spec in specs:
        title, link = pages.get(spec.id, (None, None))
        feeds.append(OpmlFeed(url=spec.url, title=spec.title or title, folder=spec.folder, html_url=link))
    body = write_opml(feeds, title="Feeds of rss_pipeline", created=now)
    return body, len(specs), sum(not spec.access.is_open for spec in specs)
