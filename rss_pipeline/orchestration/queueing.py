"""The order of the run queue: what users of the reader wait for, a person's runs, the daemon's, backfills.

dagster.yaml names the coordinator in here. Runs of equal priority start in the order of their submission, at
most `max_concurrent_runs` at once, and at most two of a backfill and two replays; more in a fleet. The sensor
`poll_feeds_when_due` ensures one poll at a time, not a limit: a dead run would hold the limit's only place.
https://docs.dagster.io/guides/operate/managing-concurrency
"""

from collections.abc import Mapping

import dagster as dg

from rss_pipeline.orchestration.dagster_private import BACKFILL_ID_TAG, PRIORITY_TAG

REFRESH_TAGS = {PRIORITY_TAG: "10"}
"""Tags of runs for which users of the reader wait: before all others."""
DAEMON_TAGS = {PRIORITY_TAG: "-1"}
"""Tags of polls and downloads; a run that a person starts has no such tag, which means 0."""
UPKEEP_TAGS = {PRIORITY_TAG: "-2"}
"""Tags of the clean and the purge."""
MINUTES_TAGS = {"dagster/max_runtime": "1800"}
"""Tags of runs that take minutes: Dagster ends a run that hangs after half an hour; in seconds."""
REASON_TAG = "rss_pipeline/reason"
"""A tag of the daemon's runs: the reason for the start, in a sentence."""
QUEUE_TAG = "dagster-celery/queue"
"""A tag of each run of a fleet: the queue in which the workers find it."""
WORKER_TAG = "rss_pipeline/worker"
"""A tag of each run of a fleet that has begun: the name of the worker that executes it."""
REPLAY_TAG = "rss_pipeline/replay"
"""A tag of replays; dagster.yaml limits how many run at once."""
BACKFILL_PRIORITY = "-3"
"""A backfill of all feeds is hundreds of runs; a feed that is due does not wait for them."""


def missing_priority(tags: Mapping[str, str]) -> str | None:
    """The priority to add to a run with these tags; None if it has one or needs none."""
    return BACKFILL_PRIORITY if BACKFILL_ID_TAG in tags and PRIORITY_TAG not in tags else None


class BackfillsLastRunCoordinator(dg.QueuedRunCoordinator[dg.DagsterInstance]):
    """Dagster's queue, in which the runs of a backfill come last unless they have a priority.

    The UI's dialog for backfills sets no priority, and 0 would put them before every poll.
    """

    def submit_run(self, context: dg.SubmitRunContext) -> dg.DagsterRun:
        """Queue the run. Dagster's daemon reads a run's priority from its tags."""
        run = context.dagster_run
        if (priority := missing_priority(run.tags)) is not None:
            self._instance.add_run_tags(run.run_id, {PRIORITY_TAG: priority})
        return super().submit_run(context)
