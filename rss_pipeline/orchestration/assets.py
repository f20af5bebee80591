"""The assets: the person's doors. `feed_items` has a partition a feed; `item_images` is their images.

The daemon's doors are jobs.py, with the same ops.
https://docs.dagster.io/guides/build/assets
"""

from typing import Any

import dagster as dg

from rss_pipeline.orchestration import ops
from rss_pipeline.orchestration.partitions import feeds_partitions
from rss_pipeline.orchestration.reporting.asset_keys import ITEM_IMAGES, REGISTRY
from rss_pipeline.orchestration.reporting.images import image_metadata
from rss_pipeline.orchestration.ui_labels import GROUP
from rss_pipeline.pipeline.images import download

PARTITIONS_A_RUN = 100


@dg.graph_asset(
    name="feed_items",
    group_name=GROUP,
    partitions_def=feeds_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"registry": dg.AssetIn(REGISTRY, dagster_type=dg.Nothing)},
    description=(
        "The items of a feed, as far as they were collected. Materializing a partition visits that feed now:"
        " conditionally, and with the pauses between requests that its host is always given. The daemon does"
        " the same for all that is due, in runs of the job `poll_feeds`, and records here what changed."
    ),
)
def feed_items(registry: Any) -> Any:
    visits = ops.claim(registry)
    for step in (ops.fetch, ops.backup, ops.parse, ops.store, ops.extract_images):
        visits = step(visits)
    return ops.report(visits)


@dg.asset(
    key=ITEM_IMAGES,
    deps=[feed_items],
    group_name=GROUP,
    kinds={"image"},
    description=(
        "The images of the items, archived in the object store under `images/`. Materializing downloads"
        " what is due now: new images, and those whose pause after a failed attempt is over."
    ),
)
def item_images(
    context: dg.AssetExecutionContext, session: ops.SessionResource
) -> dg.MaterializeResult[None]:
    """Claim, download, put, record: in rounds, until nothing is due or a quarter of an hour is over."""
    with session.step():
        done = download.download_images(
            run=session.run,
            lease_keeper=session.leases,
            politeness=session.image_politeness,
            spool=session.spool,
        )
        return dg.MaterializeResult(metadata=image_metadata(session.run, context.instance, done))
