"""The computed assets: `feed_items`, with one partition for each feed, and `item_images`.

A person materializes them. The daemon runs the jobs in jobs.py, which have the same ops. Assets that no run
computes are in build.py.
https://docs.dagster.io/guides/build/assets
"""

from typing import Any

import dagster as dg

from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration import poll_ops as ops
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.partitions import PARTITIONS_A_RUN, feeds_partitions
from rss_pipeline.orchestration.poll_ops import SessionResource, claim
from rss_pipeline.orchestration.reporting.asset_keys import ITEM_IMAGES, REGISTRY
from rss_pipeline.orchestration.reporting.feeds import image_metadata
from rss_pipeline.orchestration.ui_labels import GROUP
from rss_pipeline.pipeline.images import download


def end_poll(visits: Any) -> Any:
    """The ops that end a poll: `report`, then the last steps of features."""
    reported = ops.report(visits)
    for feature in FEATURES:
        if feature.after_poll is not None:
            reported = feature.after_poll.op.load()(reported)
    return reported


@dg.graph_asset(
    name="feed_items",
    group_name=GROUP,
    partitions_def=feeds_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"registry": dg.AssetIn(REGISTRY, dagster_type=dg.Nothing)},
    description=(
        "The job `poll_feeds` updates this asset: it visits every feed that is due and records here which"
        " feeds changed. Each partition holds the collected items of one feed. Materialize a partition to"
        " visit its feed now; the request is conditional and paced, as always."
    ),
)
def feed_items(registry: Any) -> Any:
    visits = claim(registry)
    for step in (ops.fetch, ops.backup, ops.parse, ops.store, ops.extract_images):
        visits = step(visits)
    return end_poll(visits)


@dg.asset(
    key=ITEM_IMAGES,
    deps=[feed_items],
    group_name=GROUP,
    kinds={"image"},
    description=(
        "The job `download_images` updates this asset: it downloads the images of stored items into the"
        " object store, under `images/`. Materialize it to download what is due now: new images, and images"
        " due for another attempt after a failed one."
    ),
)
def item_images(context: dg.AssetExecutionContext, session: SessionResource) -> dg.MaterializeResult[None]:
    """Claim, download, store and record images in rounds, until none is due or 15 minutes are over."""
    with run_step(context, session):
        done = download.download_images(
            run=session.run,
            lease_keeper=session.leases,
            politeness=session.image_politeness,
            spool=session.spool,
        )
        return dg.MaterializeResult(metadata=image_metadata(session.run, context.instance, done))
