"""The collected items as a Dagster resource for downstream assets, and the cursor of an asset.

The reader itself is in pipeline/read/reader.py. Other projects import all of this from downstream.py.
https://docs.dagster.io/guides/build/external-resources
"""

from collections.abc import Iterator

import dagster as dg

from rss_pipeline.orchestration.run_config import NOTHING
from rss_pipeline.pipeline.read.reader import FeedReader, open_feed_reader, settings_here
from rss_pipeline.settings import Settings

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

    def open_reader(context: dg.InitResourceContext) -> Iterator[FeedReader]:
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
