"""The jobs of feeds and images: `poll_feeds`, `refresh_feeds`, `download_images`.

One run claims everything that is due; a feed or image that fails does not fail the run. The assets that a
person materializes are in assets.py, with the same ops; the clean and the purge are in features/retention and
purge_job.py.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

import dagster as dg

from rss_pipeline.orchestration import poll_ops as ops
from rss_pipeline.orchestration import poll_ops as refresh_ops
from rss_pipeline.orchestration.assets import end_poll, item_images
from rss_pipeline.orchestration.poll_ops import claim
from rss_pipeline.orchestration.queueing import MINUTES_TAGS
from rss_pipeline.orchestration.ui_labels import OWNERS

POLL_FEEDS = "poll_feeds"
REFRESH_FEEDS = "refresh_feeds"
DOWNLOAD_IMAGES = "download_images"


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
    end_poll(visits)


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
    end_poll(refresh_ops.visit_the_rest(visits, requests))


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
