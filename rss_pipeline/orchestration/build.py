"""All definitions, built from one Settings: for production, tests and the command line.

The definitions themselves are in the modules beside this one.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.assets import feed_items, item_images
from rss_pipeline.orchestration.build_polls import run_resources
from rss_pipeline.orchestration.downstream.external_assets import reported_assets, with_storage_metadata
from rss_pipeline.orchestration.jobs import (
    download_images,
    poll_feeds,
    refresh_feeds,
)
from rss_pipeline.orchestration.looks import Looks
from rss_pipeline.orchestration.parts import Building
from rss_pipeline.orchestration.schedules import build_schedules
from rss_pipeline.orchestration.sensors import build_sensors
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
