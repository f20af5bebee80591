"""All definitions, built from one Settings: for production, tests and the command line.

The definitions themselves are in the modules beside this one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.assets import feed_items, item_images
from rss_pipeline.orchestration.build_polls import run_resources
from rss_pipeline.orchestration.jobs import (
    download_images,
    poll_feeds,
    refresh_feeds,
)
from rss_pipeline.orchestration.looks import Looks
from rss_pipeline.orchestration.parts import Building
from rss_pipeline.orchestration.reporting.asset_keys import POLLS, REGISTRY
from rss_pipeline.orchestration.schedules import build_schedules
from rss_pipeline.orchestration.sensors import build_sensors
from rss_pipeline.orchestration.ui_labels import GROUP, OWNERS
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.progress import Progress
from rss_pipeline.settings import Settings


def build_definitions(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    progress: Progress | None = None,
    synced: RegistrySync | None = None,
    resource_overrides: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """All definitions for these settings.

    `clock` returns the present time, `progress` gets the progress of runs in this process, `synced` is the
    registry if this process has read it already, `resource_overrides` replaces resources by key (an open
    database; in a test a store that fails).
    """
    looks = Looks(settings)
    building = Building(settings=settings, clock=clock, looks=looks)
    parts = [feature.dagster.load()(building) for feature in FEATURES if feature.dagster is not None]
    resources = run_resources(settings, clock=clock, progress=progress, synced=synced)
    for each in parts:
        resources |= each.resources
    return dg.Definitions(
        assets=[
            *reported_assets(settings),
            *with_storage_metadata(
                [feed_items, item_images, *(asset for each in parts for asset in each.assets)], settings
            ),
        ],
        asset_checks=[
            *(check for each in parts for check in each.asset_checks),
        ],
        jobs=[
            poll_feeds,
            refresh_feeds,
            download_images,
            purge_history,
            *(job for each in parts for job in each.jobs),
        ],
        schedules=[
            *build_schedules(building),
            *(schedule for each in parts for schedule in each.schedules),
        ],
        sensors=[
            *build_sensors(building),
            *(sensor for each in parts for sensor in each.sensors),
        ],
        resources={**resources, **(resource_overrides or {})},
        # One process for each run: values between ops stay in memory, and a process start costs 3 s and more.
        executor=dg.in_process_executor,
    )


# The assets that no run computes, and the storage of all assets as metadata.
#
# The graph is registry -> feed_items -> item_images, stream_items and topics, and registry -> polls. The
# metadata depends on the settings: database, object store, feeds.yaml. Computed assets are in assets.py.
# https://docs.dagster.io/guides/build/assets/external-assets

_TABLES = {
    "registry": "feeds",
    "feed_items": "items",
    "item_images": "image_tasks",
    "stream_items": "item_streams",
    "topics": "topics",
}
_OBJECTS = {
    "feed_items": "backups/{feed_id}/{time}.xml",
    "item_images": "images/{feed_id}/{item_guid_hash}/{index}.{ext}",
    "topics": "topics/{topic_id}.atom, topics/{topic_id}.json",
}


def reported_assets(settings: Settings) -> list[dg.AssetSpec]:
    """The assets that no run computes: the registry, and the daemon's polls."""
    registry = dg.AssetSpec(
        REGISTRY,
        group_name=GROUP,
        kinds={"yaml"},
        description=(
            "The sensor `sync_registry` and each poll update this asset: they apply the changes of"
            " feeds.yaml, the list of the feeds to collect. Each change is recorded here with the number"
            " of feeds."
        ),
    )
    polls = dg.AssetSpec(
        POLLS,
        deps=[REGISTRY],
        group_name=GROUP,
        kinds={"rss"},
        description=(
            "The job `poll_feeds` records each of its polls here: the number of feeds that were due, how"
            " their visits ended, how long the longest due had waited, and how long the poll took. The"
            " plots show whether polling keeps up. No table holds these figures: they are part of"
            " Dagster's history and are removed with it (RSS_HISTORY_DAYS)."
        ),
    )
    return [_with_storage_metadata(spec, settings) for spec in (registry, polls)]


def with_storage_metadata(
    assets: Sequence[dg.AssetsDefinition], settings: Settings
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets with their owners and, as metadata, the storage that these settings name."""
    return list(dg.map_asset_specs(lambda spec: _with_storage_metadata(spec, settings), assets))


def _with_storage_metadata(spec: dg.AssetSpec, settings: Settings) -> dg.AssetSpec:
    name = spec.key.to_user_string()
    metadata: dict[str, str] = {}
    kinds = set(spec.kinds)
    if name in _TABLES:
        database = settings.database
        kinds.add(database.maker.lower() or database.name)
        metadata |= {
            "dagster/table_name": _TABLES[name],
            "dagster/storage_kind": database.name,
            "database": database.where,
        }
    if name in _OBJECTS:
        prefix = _OBJECTS[name].partition("{")[0]
        uri, where = settings.objects.uri(prefix)
        kinds |= set() if settings.objects.is_here else {settings.objects.name}
        metadata |= {"dagster/uri": uri, "objects": _OBJECTS[name], "object_store": where}
    if name == "registry":
        metadata |= {"dagster/uri": settings.feeds_file.absolute().as_uri(), "file": str(settings.feeds_file)}
    return spec.replace_attributes(owners=OWNERS, kinds=kinds, metadata={**spec.metadata, **metadata})
