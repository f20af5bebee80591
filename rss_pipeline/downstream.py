"""The base of downstream assets: the only module of this project that other projects import.

- `feeds_partitions`: one partition for each feed; its key is the feed's id.
- `streams_partitions`, `topics_partitions`: those of `stream_items` (`feed/stream`) and `topics`.
- `feed_reader_resource()`: the resource that reads items; in an asset, `feed_reader: FeedReaderResource`.
- `last_cursor(context)`: the cursor that the asset recorded the last time.
- `feed_changed()`: the automation condition that is true for new items and not for heartbeats.
- `open_feed_reader()`: the same reader outside of Dagster; `export` writes its items as JSON lines or
  Parquet.

docs/downstream.md explains them, examples/digest is a project that uses them. Every other module of
rss_pipeline may move.
"""

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.orchestration.downstream.feed_changed import feed_changed
from rss_pipeline.orchestration.downstream.feed_reader_resource import (
    FeedReaderResource,
    feed_reader_resource,
    last_cursor,
)
from rss_pipeline.orchestration.partitions import feeds_partitions, streams_partitions, topics_partitions
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, STREAM_ITEMS, TOPICS
from rss_pipeline.pipeline.read.export import export
from rss_pipeline.pipeline.read.reader import FeedReader, open_feed_reader
from rss_pipeline.storage.items.read import FeedInfo, StoredItem

__all__ = [
    "FEED_ITEMS",
    "STREAM_ITEMS",
    "TOPICS",
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
    "streams_partitions",
    "topics_partitions",
]
