"""The asset `feed_items`: the person's door. One partition a feed; materialize one, backfill some.

The daemon's door is jobs.py, with the same ops.
https://docs.dagster.io/guides/build/assets
"""

from typing import Any

import dagster as dg

from rss_pipeline.orchestration import ops
from rss_pipeline.orchestration.partitions import feeds_partitions

PARTITIONS_A_RUN = 100


@dg.graph_asset(
    name="feed_items",
    group_name="feeds",
    partitions_def=feeds_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    description=(
        "The items of a feed, as far as they were collected. Materializing a partition visits that feed now:"
        " conditionally, and with the pauses between requests that its host is always given. The daemon does"
        " the same for all that is due, in runs of the job `poll_feeds`, and records here what changed."
    ),
)
def feed_items() -> Any:
    visits = ops.claim()
    for step in (ops.fetch, ops.backup, ops.parse, ops.store, ops.extract_images):
        visits = step(visits)
    return ops.report(visits)
