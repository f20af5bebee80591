"""The definitions of a poll, and of a refresh, in this process: their jobs, and the resources of all runs.

All definitions are in build.py; to build them takes a poll at the terminal 50 ms more.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.jobs import poll_feeds, refresh_feeds
from rss_pipeline.orchestration.poll_ops import VISITS_IO_MANAGER
from rss_pipeline.orchestration.resources import database_resource, object_resource, session_resource
from rss_pipeline.orchestration.run_config import NOTHING
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.progress import Progress
from rss_pipeline.settings import Settings


def run_resources(
    settings: Settings, *, clock: Clock, progress: Progress | None = None, synced: RegistrySync | None = None
) -> dict[str, Any]:
    """The resources of every run, by key; the arguments are those of `build.build_definitions`."""
    return {
        "database": database_resource(settings),
        "objects": object_resource(settings),
        "session": session_resource(settings, clock=clock, progress=progress, synced=synced),
        VISITS_IO_MANAGER: dg.mem_io_manager.configured(NOTHING, config_schema=NOTHING),
        # Dagster's default, which a run could point at any folder. Nothing of ours is stored by it.
        "io_manager": dg.FilesystemIOManager()
        .get_resource_definition()
        .configured(NOTHING, config_schema=NOTHING),
    }


def poll_definitions(
    settings: Settings,
    *,
    clock: Clock,
    progress: Progress | None = None,
    synced: RegistrySync | None = None,
    resource_overrides: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """The jobs of `in_process.poll_in_process`; the arguments are those of `build.build_definitions`."""
    resources = run_resources(settings, clock=clock, progress=progress, synced=synced)
    return dg.Definitions(
        jobs=[
            poll_feeds,
            *(each.after_poll.job.load() for each in FEATURES if each.after_poll is not None),
        ],
        resources={**resources, **(resource_overrides or {})},
        executor=dg.in_process_executor,
    )


def refresh_definitions(settings: Settings, *, clock: Clock) -> dg.Definitions:
    """The job of `in_process.refresh_in_process`."""
    return dg.Definitions(
        jobs=[refresh_feeds],
        resources=run_resources(settings, clock=clock),
        executor=dg.in_process_executor,
    )
