"""All definitions, built from one Settings: for production, tests and the command line.

The definitions themselves are in the modules beside this one.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.features.fleet.watch import build_watch
from rss_pipeline.features.health.alert_sensor import build_alerts
from rss_pipeline.features.health.asset_checks import build_check_schedule, build_checks, check_health
from rss_pipeline.features.retention.dagster import clean_store, cleaning_resource
from rss_pipeline.features.topics import dagster as topic_ops
from rss_pipeline.orchestration.assets import PARTITIONS_A_RUN, feed_items, item_images
from rss_pipeline.orchestration.build_polls import run_resources
from rss_pipeline.orchestration.downstream.external_assets import reported_assets, with_storage_metadata
from rss_pipeline.orchestration.jobs import (
    build_replay_all,
    download_images,
    poll_feeds,
    publish_topics,
    refresh_feeds,
    replay_backups,
)
from rss_pipeline.orchestration.looks import Looks
from rss_pipeline.orchestration.partitions import streams_partitions, topics_partitions
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.schedules import build_schedules
from rss_pipeline.orchestration.sensors import build_sensors
from rss_pipeline.orchestration.ui_labels import GROUP
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


# The computed assets `stream_items` and `topics`, with one partition for each stream and topic.
#
# A person materializes them. Polls and the job `publish_topics` update them, with the ops of features/topics.
# https://docs.dagster.io/guides/build/assets

_FEED_ITEMS = dg.AssetIn(FEED_ITEMS, partition_mapping=dg.AllPartitionMapping(), dagster_type=dg.Nothing)
"""For the lineage only: feeds.yaml has the feeds of a topic, and Dagster evaluates no mapping of ours."""


@dg.graph_asset(
    name="stream_items",
    group_name=GROUP,
    partitions_def=streams_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"feed_items": _FEED_ITEMS},
    description=(
        "Each poll updates this asset: the streams of feeds.yaml are parts of feeds, such as the items of one"
        " author, and need no request of their own. Each partition, `feed/stream`, holds the items of one"
        " stream; an event means that its members changed. Materialize a partition to judge all stored items"
        " by its selector again. A selector by XPath needs the documents: for that, replay the feed."
    ),
)
def stream_items(feed_items: Any) -> Any:
    return topic_ops.judge_partitions(feed_items)


@dg.graph_asset(
    name="topics",
    group_name=GROUP,
    partitions_def=topics_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"atom", "json"},
    ins={"feed_items": _FEED_ITEMS},
    description=(
        "Each poll updates this asset as its last step, and the job `publish_topics`: they publish the topics"
        " of feeds.yaml, groups of feeds and streams, as Atom and JSON Feed under `topics/`. An event means"
        " that the bytes of a topic changed; its data version is their hash. Each partition is a topic."
        " Materialize a partition to publish its topic now, whatever its `every` says."
    ),
)
def topics(feed_items: Any) -> Any:
    return topic_ops.publish_partitions(feed_items)
