"""The job `poll_feeds`: the daemon's door. One run claims all that is due; one bad feed does not fail it.

The person's door is assets.py, with the same ops.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

import dagster as dg

from rss_pipeline.orchestration import ops

POLL_FEEDS = "poll_feeds"


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
