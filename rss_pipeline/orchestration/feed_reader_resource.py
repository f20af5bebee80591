"""The collected items as a Dagster resource, for other people's assets, and how far an asset has read.

What a reader does is reading.py's. What other people's code imports is gathered in downstream.py.
https://docs.dagster.io/guides/build/external-resources
"""

from collections.abc import Iterator

import dagster as dg

from rss_pipeline.pipeline.read.reader import FeedReader, open_feed_reader, settings_here
from rss_pipeline.settings import Settings

CURSOR = "cursor"
"""The metadata entry in which `last_cursor` finds how far an asset came."""

FeedReaderResource = dg.ResourceParam[FeedReader]
"""What an asset's argument is annotated with: `feed_reader: FeedReaderResource`."""


def feed_reader_resource(settings: Settings | None = None) -> dg.ResourceDefinition:
    """The resource to put under the key `feed_reader` of your own Definitions: a `FeedReader`.

    Without settings they are the environment's and those of a file `.env` in the current folder, as they are
    for the pipeline itself.

    Raises:
        SettingsError: the environment says something that cannot be.
    """
    found = settings or settings_here()

    def open_reader(context: dg.InitResourceContext) -> Iterator[FeedReader]:
        with open_feed_reader(found) as reader:
            yield reader

    return dg.ResourceDefinition(
        resource_fn=open_reader,
        description="The collected feeds and items, to be read: `items(feed_id, since=...)`, `feeds()`.",
    )


def last_cursor(context: dg.AssetExecutionContext, partition: str | None = None) -> str | None:
    """The cursor that this asset's last materialization recorded, of this partition where it has partitions.

    None at the first one. An asset records it as metadata, `{"cursor": item.cursor}`, so a run that fails
    leaves it where it was and the next run reads the same items again.

    Raises:
        ValueError: the run is over several partitions, and `partition` does not say of which.
    """
    key = context.partition_key if partition is None and context.has_partition_key else partition
    if key is None and context.assets_def.partitions_def is not None:
        raise ValueError("this run is over several partitions: name one, last_cursor(context, key)")
    filter_ = dg.AssetRecordsFilter(asset_key=context.asset_key, asset_partitions=[key] if key else None)
    for record in context.instance.fetch_materializations(filter_, limit=1).records:
        event = record.asset_materialization
        found = None if event is None else event.metadata.get(CURSOR)
        if found is not None:
            return str(found.value)
    return None
