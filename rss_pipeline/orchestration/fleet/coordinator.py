"""The run queue of a fleet: which runs go to which queue of the workers, and how many of them.

Dagster's daemon keeps a run in its own queue, which has priorities, until a worker has a place for it.
The order of that queue is queueing.py's.
"""

from collections.abc import Mapping

import dagster as dg
from dagster._core.run_coordinator import SubmitRunContext
from dagster._core.storage.tags import BACKFILL_ID_TAG, PRIORITY_TAG, RETRY_STRATEGY_TAG

from rss_pipeline.orchestration.fleet.names import DEFAULT, HIGH
from rss_pipeline.orchestration.queueing import QUEUE_TAG, BackfillsLastRunCoordinator

_RETRY_STRATEGY = "ALL_STEPS"
"""What the steps of a run give to each other is in its memory: none can be left out the second time."""


def queue_of(tags: Mapping[str, str]) -> str:
    """The queue for a run with these tags: that of persons, unless its priority is below theirs, 0."""
    if BACKFILL_ID_TAG in tags:
        return DEFAULT
    try:
        return DEFAULT if int(tags.get(PRIORITY_TAG, "0")) < 0 else HIGH
    except ValueError:
        return HIGH


class FleetRunCoordinator(BackfillsLastRunCoordinator):
    """The queue of one machine, for the workers of many."""

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Queue the run, with the queue of the workers that it is for."""
        run = context.dagster_run
        tags = {QUEUE_TAG: queue_of(run.tags), RETRY_STRATEGY_TAG: _RETRY_STRATEGY, **run.tags}
        self._instance.add_run_tags(run.run_id, {key: tags[key] for key in (QUEUE_TAG, RETRY_STRATEGY_TAG)})
        return super().submit_run(context)
