"""The jobs: the daemon's doors. One run claims all that is due; one bad feed or image does not fail it.

The person's doors are assets.py, with the same ops.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

import dagster as dg

from rss_pipeline.orchestration import ops
from rss_pipeline.orchestration.assets import item_images

POLL_FEEDS = "poll_feeds"
DOWNLOAD_IMAGES = "download_images"


@dg.job(
    name=POLL_FEEDS,
    description=(
        "Visits every feed that is due: fetch, back up, parse, store, find images. Started by the sensor"
        " `poll_feeds_when_due`. Feeds that fail are in the table of the op `report`; the run itself fails"
        " only where a store, or our own network, does."
    ),
)
def poll_feeds() -> None:
    visits = ops.claim()
    for step in (ops.fetch, ops.backup, ops.parse, ops.store, ops.extract_images):
        visits = step(visits)
    ops.report(visits)


download_images = dg.define_asset_job(
    name=DOWNLOAD_IMAGES,
    selection=[item_images],
    description=(
        "Downloads the images of stored items into the object store: new ones, started by the sensor"
        " `download_images_when_waiting`, and those whose last attempt failed, started by the schedule"
        " `retry_images`. Images that fail are in a table of the materialization; the run itself fails only"
        " where a store, or our own network, does."
    ),
)
