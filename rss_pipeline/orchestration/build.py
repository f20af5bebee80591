"""All definitions, built from one Settings: for production, tests and the command line.

The definitions themselves are in the modules beside this one.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.orchestration.alerts import build_alerts
from rss_pipeline.orchestration.assets import feed_items, item_images
from rss_pipeline.orchestration.build_polls import run_resources
from rss_pipeline.orchestration.checks import build_check_schedule, build_checks, check_health
from rss_pipeline.orchestration.downstream.external_assets import reported_assets, with_storage_metadata
from rss_pipeline.orchestration.fleet.watch import build_watch
from rss_pipeline.orchestration.jobs import (
    build_replay_all,
    download_images,
    poll_feeds,
    publish_topics,
    refresh_feeds,
    replay_backups,
)
from rss_pipeline.orchestration.looks import Looks
from rss_pipeline.orchestration.schedules import build_schedules
from rss_pipeline.orchestration.sensors import build_sensors
from rss_pipeline.orchestration.topic_assets import stream_items, topics
from rss_pipeline.orchestration.upkeep.clean_job import clean_store, cleaning_resource
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
    resources = {
        **run_resources(settings, clock=clock, progress=progress, synced=synced),
        "cleaning": cleaning_resource(settings, clock=clock),
    }
    looks = Looks(settings)
    return dg.Definitions(
        assets=[
            *reported_assets(settings),
            *with_storage_metadata([feed_items, item_images, stream_items, topics], settings),
        ],
        asset_checks=build_checks(settings, clock=clock),
        jobs=[
            poll_feeds,
            refresh_feeds,
            publish_topics,
            download_images,
            clean_store,
            purge_history,
            replay_backups,
            build_replay_all(settings.shards),
            check_health,
        ],
        schedules=[*build_schedules(settings, clock=clock, looks=looks), build_check_schedule()],
        sensors=[
            *build_sensors(settings, clock=clock, looks=looks),
            *build_alerts(settings, clock=clock),
            *([] if settings.fleet is None else [build_watch(settings, clock=clock)]),
        ],
        resources={**resources, **(resource_overrides or {})},
        # One process for each run: values between ops stay in memory, and a process start costs 3 s and more.
        executor=dg.in_process_executor,
    )
