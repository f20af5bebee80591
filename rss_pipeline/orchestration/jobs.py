"""The jobs of feeds, topics and images: `poll_feeds`, `refresh_feeds`, `publish_topics`, `download_images`,
`replay_backups`, `replay_all`.

One run claims everything that is due; a feed or image that fails does not fail the run. The assets that a
person materializes are in assets.py, with the same ops; the clean and the purge are in features/retention and
purge_job.py.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

import dagster as dg

from rss_pipeline.features.replay import dagster as replay_ops
from rss_pipeline.features.replay.parts import parts
from rss_pipeline.features.topics import dagster as topic_ops
from rss_pipeline.orchestration.assets import item_images
from rss_pipeline.orchestration.ops import poll as ops
from rss_pipeline.orchestration.ops import refresh as refresh_ops
from rss_pipeline.orchestration.ops.claim import claim
from rss_pipeline.orchestration.partitions import feeds_partitions
from rss_pipeline.orchestration.queueing import REPLAY_TAG
from rss_pipeline.orchestration.ui_labels import OWNERS

POLL_FEEDS = "poll_feeds"
REFRESH_FEEDS = "refresh_feeds"
PUBLISH_TOPICS = "publish_topics"
DOWNLOAD_IMAGES = "download_images"
REPLAY_BACKUPS = "replay_backups"
REPLAY_ALL = "replay_all"
MINUTES_TAGS = {"dagster/max_runtime": "1800"}
"""For runs that take minutes: Dagster ends a run that hangs after half an hour; in seconds."""
REPLAY_TAGS = {"dagster/priority": "-2", REPLAY_TAG: "1"}
"""After polls, which have -1."""


@dg.job(
    name=POLL_FEEDS,
    description=(
        "Visits every feed that is due: fetch, back up, parse, store, find images; then publishes the topics"
        " that changed. The sensor `poll_feeds_when_due` starts it. The table of the op `report` lists the"
        " feeds that failed; the run itself fails only if a store or our own network fails."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def poll_feeds() -> None:
    visits = claim()
    for step in (ops.fetch, ops.backup, ops.parse, ops.store, ops.extract_images, ops.visit_more):
        visits = step(visits)
    topic_ops.publish(ops.report(visits))


@dg.job(
    name=REFRESH_FEEDS,
    description=(
        "Visits the feeds that users of the reader refresh or have just subscribed, due or not; many requests"
        " share a run. `rss-pipeline up` starts it at once, the sensor `refresh_feeds_when_requested` where"
        " the reader is on another machine. Requests to publishers stay conditional and paced; a host on hold"
        " is left alone."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def refresh_feeds() -> None:
    visits, requests = refresh_ops.claim_requested()
    visits = refresh_ops.fetch_requested(visits, requests)
    for step in (ops.backup, ops.parse, ops.store):
        visits = step(visits)
    visits = ops.extract_images(refresh_ops.answer(visits, requests))
    topic_ops.publish(ops.report(refresh_ops.visit_the_rest(visits, requests)))


@dg.job(
    name=PUBLISH_TOPICS,
    description=(
        "Publishes every topic that changed, once its `every` has passed. Polls do the same as their last"
        " step; the sensor `publish_when_changed` starts this job for other changes: by replays, repairs,"
        " cleans, images archived later, feeds.yaml, another machine. The run fails if a topic could not be"
        " published; it stays due."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def publish_topics() -> None:
    topic_ops.publish_due()


download_images = dg.define_asset_job(
    name=DOWNLOAD_IMAGES,
    selection=[item_images],
    tags=MINUTES_TAGS,
    owners=OWNERS,
    description=(
        "Downloads the images of stored items into the object store. The sensor"
        " `download_images_when_waiting` starts it for new images, the schedule `retry_images` for images"
        " with a failed attempt. A table of the materialization lists the images that failed; the run"
        " itself fails only if a store or our own network fails."
    ),
)


@dg.job(
    name=REPLAY_BACKUPS,
    partitions_def=feeds_partitions,
    tags=REPLAY_TAGS,
    owners=OWNERS,
    description=(
        "Reads all backups of a feed again, oldest first, and stores the items that are missing, with the"
        " ids and dates that they would have had. No request is made to the publisher; validators, counts and"
        " schedule stay as they are. With `dry_run` it writes nothing and lists the items that would be new"
        " and the items that the parser now reads differently; with `repair` it rewrites those. One run for"
        " each feed; start a backfill for several feeds, and `replay_all` for all. A run fails only if a"
        " backup could not be read or a store fails."
    ),
)
def replay_backups() -> None:
    visits = replay_ops.parse_backups.alias("parse")(replay_ops.open_backups())
    visits = replay_ops.store_backups.alias("store")(visits)
    visits = replay_ops.extract_backup_images.alias("extract_images")(visits)
    replay_ops.report_replay(visits)


def build_replay_all(shards: int) -> dg.JobDefinition:
    """The job `replay_all`, with 16 partitions for each of RSS_SHARDS."""

    @dg.job(
        name=REPLAY_ALL,
        partitions_def=dg.StaticPartitionsDefinition([str(part) for part in parts(shards)]),
        tags=REPLAY_TAGS,
        owners=OWNERS,
        description=(
            "Reads all backups of all feeds again, as `replay_backups` does for one feed. Each partition is a"
            " part of the feeds, by their ids, and its runs read each backup of these feeds once: start a"
            " backfill of all partitions. Several of its runs work at once, on all workers of a fleet, after"
            " polls. A run that was ended may be started again, with the partitions that are missing or"
            " failed. `rss-pipeline replay --all --queue` starts the same, with `dry_run` or `repair` for all"
            " runs. A run fails only if a backup could not be read, after all others were, or a store fails."
        ),
    )
    def replay_all() -> None:
        replay_ops.replay_part()

    return replay_all
