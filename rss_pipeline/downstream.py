"""What assets of your own build on: the one module of this project that other projects import.

- `feeds_partitions`: the partitions, a feed each, its id the key.
- `feed_reader_resource()`: the resource that reads items; in an asset `feed_reader: FeedReaderResource`.
- `last_cursor(context)`: how far the asset came the last time.
- `feed_changed()`: the automation condition that is true on news and not on heartbeats.
- `open_feed_reader()`: the same reader outside of Dagster; `export` writes JSON lines or Parquet of it.

docs/downstream.md explains them, examples/digest is a project that uses them. All else in rss_pipeline may
change its place.
"""

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.orchestration.feed_changed import feed_changed
from rss_pipeline.orchestration.feed_reader_resource import (
    FeedReaderResource,
    feed_reader_resource,
    last_cursor,
)
from rss_pipeline.orchestration.partitions import feeds_partitions
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.pipeline.read.export import export
from rss_pipeline.pipeline.read.reader import FeedReader, open_feed_reader
from rss_pipeline.storage.items.read import FeedInfo, StoredItem

__all__ = [
    "FEED_ITEMS",
    "Enclosure",
    "FeedInfo",
    "FeedReader",
    "FeedReaderResource",
    "StoredItem",
    "export",
    "feed_changed",
    "feed_reader_resource",
    "feeds_partitions",
    "last_cursor",
    "open_feed_reader",
]
