"""The base of downstream assets: the only module of this project that other projects import.

- `feeds_partitions`: one partition for each feed; its key is the feed's id.
- `streams_partitions`, `topics_partitions`, `stories_partitions`: those of `stream_items` (`feed/stream`),
  `topics` and `stories` (days).
- `feed_reader_resource()`: the resource that reads items; in an asset, `feed_reader: FeedReaderResource`.
- `last_cursor(context)`: the cursor that the asset recorded the last time.
- `feed_changed()`: the automation condition that is true for new items and not for heartbeats.
- `open_feed_reader()`: the same reader outside of Dagster; `export` writes its items as JSON lines or
  Parquet.

docs/downstream.md explains them, examples/digest is a project that uses them. Every other module of
rss_pipeline may move.
"""

from collections.abc import Iterator

import dagster as dg

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.orchestration.partitions import (
    feeds_partitions,
    stories_partitions,
    streams_partitions,
    topics_partitions,
)
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, STORIES, STREAM_ITEMS, TOPICS
from rss_pipeline.orchestration.run_config import NOTHING
from rss_pipeline.pipeline.read.feed_reader import FeedReader, open_feed_reader, settings_here
from rss_pipeline.pipeline.read.item_files import export
from rss_pipeline.settings import Settings
from rss_pipeline.storage.items.stored_items import FeedInfo, StoredItem
from rss_pipeline.storage.items.stories import StoredMember, StoredStory

__all__ = [
    "FEED_ITEMS",
    "STORIES",
    "STREAM_ITEMS",
    "TOPICS",
    "Enclosure",
    "FeedInfo",
    "FeedReader",
    "FeedReaderResource",
    "StoredItem",
    "StoredMember",
    "StoredStory",
    "export",
    "feed_changed",
    "feed_reader_resource",
    "feeds_partitions",
    "last_cursor",
    "open_feed_reader",
    "stories_partitions",
    "streams_partitions",
    "topics_partitions",
]


def feed_changed() -> dg.AutomationCondition[dg.AssetKey]:
    """True for each partition with new items, until a run for it is requested.

    An asset on `feeds_partitions` gets one run for each such partition; an asset without partitions gets one
    run for all new items. No run is requested for heartbeats, for a feed that answers again after failures,
    for a materialization of `feed_items` by hand without new items, and for items that came before the first
    evaluation: start a backfill once. New items that come during a run of their partition wait for its end
    and then get another run, because it is unknown if that run has read them. A failed run is not repeated
    before the next new items; for that, give the job the tag `dagster/max_retries`.
    """
    changed = dg.AutomationCondition.asset_matches(
        FEED_ITEMS, dg.AutomationCondition.data_version_changed()
    ).with_label("feed_has_news")
    # Not `since_last_handled`: it assumes that a run that ends has seen everything, and if new items and the
    # request before them meet in one tick, the request wins. Both lose new items.
    requested = dg.AutomationCondition.newly_requested() & ~changed
    waiting = changed.since(requested.with_label("requested")).with_label("news_without_request")
    return (waiting & ~dg.AutomationCondition.in_progress()).with_label("feed_changed")


CURSOR = "cursor"
"""The metadata entry with the cursor that `last_cursor` returns."""

FeedReaderResource = dg.ResourceParam[FeedReader]
"""The annotation of an asset's argument: `feed_reader: FeedReaderResource`."""


def feed_reader_resource(settings: Settings | None = None) -> dg.ResourceDefinition:
    """The resource to put under the key `feed_reader` of your own Definitions: a `FeedReader`.

    Without settings, they are read from the environment and from the file `.env` in the current folder, as
    for the pipeline itself.

    Raises:
        SettingsError: a setting has a wrong value.
    """
    found = settings or settings_here()

    def open_reader(_context: dg.InitResourceContext) -> Iterator[FeedReader]:
        with open_feed_reader(found) as reader:
            yield reader

    return dg.ResourceDefinition(
        resource_fn=open_reader,
        config_schema=NOTHING,
        description="Reads the collected feeds and items: `items(feed_id, since=...)`, `feeds()`.",
    )


def last_cursor(context: dg.AssetExecutionContext, partition: str | None = None) -> str | None:
    """The cursor recorded in this asset's last materialization, or in that of this partition.

    None before the first one. An asset records it as metadata, `{"cursor": item.cursor}`: a run that fails
    does not move it, and the next run reads the same items again.

    Raises:
        ValueError: the run has several partitions, and `partition` names none of them.
    """
    key = context.partition_key if partition is None and context.has_partition_key else partition
    if key is None and context.assets_def.partitions_def is not None:
        raise ValueError("this run has several partitions: name one of them, last_cursor(context, key)")
    filter_ = dg.AssetRecordsFilter(asset_key=context.asset_key, asset_partitions=[key] if key else None)
    for record in context.instance.fetch_materializations(filter_, limit=1).records:
        event = record.asset_materialization
        found = None if event is None else event.metadata.get(CURSOR)
        if found is not None:
            return str(found.value)
    return None
