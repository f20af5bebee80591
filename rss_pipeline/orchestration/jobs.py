"""The jobs: the daemon's doors, and `replay_backups`, which reads a feed's backups again.

One run claims all that is due; one bad feed or image does not fail it.

The person's doors are assets.py, with the same ops.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

import dagster as dg

from rss_pipeline.orchestration import ops, replay_ops
from rss_pipeline.orchestration.assets import item_images
from rss_pipeline.orchestration.partitions import feeds_partitions
from rss_pipeline.orchestration.ui_labels import OWNERS

POLL_FEEDS = "poll_feeds"
DOWNLOAD_IMAGES = "download_images"
REPLAY_BACKUPS = "replay_backups"
MINUTES_TAGS = {"dagster/max_runtime": "1800"}
"""For runs that take minutes: one that hangs is ended after half an hour, in seconds."""
REPLAY_TAGS = {"dagster/priority": "-2", "rss_pipeline/replay": "1"}
"""Behind polls, which have -1; dagster.yaml limits how many run at once."""


@dg.job(
    name=POLL_FEEDS,
    description=(
        "Visits every feed that is due: fetch, back up, parse, store, find images. Started by the sensor"
        " `poll_feeds_when_due`. Feeds that fail are in the table of the op `report`; the run itself fails"
        " only where a store, or our own network, does."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def poll_feeds() -> None:
    visits = ops.claim()
    for step in (ops.fetch, ops.backup, ops.parse, ops.store, ops.extract_images):
        visits = step(visits)
    ops.report(visits)


download_images = dg.define_asset_job(
    name=DOWNLOAD_IMAGES,
    selection=[item_images],
    tags=MINUTES_TAGS,
    owners=OWNERS,
    description=(
        "Downloads the images of stored items into the object store: new ones, started by the sensor"
        " `download_images_when_waiting`, and those whose last attempt failed, started by the schedule"
        " `retry_images`. Images that fail are in a table of the materialization; the run itself fails only"
        " where a store, or our own network, does."
    ),
)


@dg.job(
    name=REPLAY_BACKUPS,
    partitions_def=feeds_partitions,
    tags=REPLAY_TAGS,
    owners=OWNERS,
    description=(
        "Reads all backups of a feed again, oldest first, and brings in the items that are missing, as they"
        " would have come: same ids, same dates. Nothing is asked of the publisher, and validators, counts"
        " and schedule stay. With `dry_run` it writes nothing and tells what would be new and what the parser"
        " reads otherwise now; with `repair` it rewrites the latter. A run a feed; backfill it over several"
        " or all. A run fails only where a backup could not be read, or a store fails."
    ),
)
def replay_backups() -> None:
    visits = replay_ops.parse_backups.alias("parse")(replay_ops.open_backups())
    visits = replay_ops.store_backups.alias("store")(visits)
    visits = replay_ops.extract_backup_images.alias("extract_images")(visits)
    replay_ops.report_replay(visits)
