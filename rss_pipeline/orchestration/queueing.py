"""The order of the queue: what a person starts first, then the daemon's runs, then backfills.

dagster.yaml names the coordinator here. Runs of equal priority go in the order of their coming, at most
`max_concurrent_runs` at once, and of backfills and replays two each. That there is one poll at a time is the
sensor's doing (polling.py) and not a limit's: a run that died would hold the limit's only place.
https://docs.dagster.io/guides/operate/managing-concurrency
"""

from collections.abc import Mapping

import dagster as dg
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.storage.tags import BACKFILL_ID_TAG, PRIORITY_TAG

DAEMON_TAGS = {PRIORITY_TAG: "-1"}
"""Polls and images; a person's run has no tag, which is 0."""
UPKEEP_TAGS = {PRIORITY_TAG: "-2"}
"""The clean and the purge."""
REASON_TAG = "rss_pipeline/reason"
"""Why the daemon started a run, in a sentence."""
BACKFILL_PRIORITY = "-3"
"""A backfill over all feeds is hundreds of runs, and a feed that is due does not wait for them."""


def missing_priority(tags: Mapping[str, str]) -> str | None:
    """The priority that a run with these tags is to be given; None where it has one, or needs none."""
    return BACKFILL_PRIORITY if BACKFILL_ID_TAG in tags and PRIORITY_TAG not in tags else None


class BackfillsLastRunCoordinator(QueuedRunCoordinator[dg.DagsterInstance]):
    """Dagster's queue, in which a backfill's run stands last unless it says otherwise.

    The dialog for backfills gives its runs no priority of ours, and 0 would put them before every poll.
    """

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Queue the run. Dagster's daemon reads a run's priority from its tags."""
        run = context.dagster_run
        if (priority := missing_priority(run.tags)) is not None:
            self._instance.add_run_tags(run.run_id, {PRIORITY_TAG: priority})
        return super().submit_run(context)
