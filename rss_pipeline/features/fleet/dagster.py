"""The run queue of a fleet: which runs go to which queue of the workers, and how many of them.

Dagster's daemon keeps a run in its own queue, which has priorities, until a worker has a place for it.
The order of that queue is queueing.py's.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.model import DEFAULT, HIGH, Fleet, WorkerRun, is_lost, of_dead_workers
from rss_pipeline.features.fleet.sql import fleet
from rss_pipeline.orchestration.dagster_private import (
    BACKFILL_ID_TAG,
    PRIORITY_TAG,
    RETRY_STRATEGY_TAG,
    RunQueueConfig,
)
from rss_pipeline.orchestration.instance.dead_runs import end_dead
from rss_pipeline.orchestration.queueing import QUEUE_TAG, REPLAY_TAG, BackfillsLastRunCoordinator
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.leases import end_of_killed, live_run_ids

_logger = logging.getLogger(__name__)

_RETRY_STRATEGY = "ALL_STEPS"
"""The values that the steps of a run pass to each other are in its memory: none can be left out the second
time."""

_SHARE = 3
"""The places of the workers for each one that a backfill may have."""


def queue_of(tags: Mapping[str, str]) -> str:
    """The queue for a run with these tags: that of persons, unless its priority is below theirs, 0."""
    if BACKFILL_ID_TAG in tags:
        return DEFAULT
    try:
        return DEFAULT if int(tags.get(PRIORITY_TAG, "0")) < 0 else HIGH
    except ValueError:
        return HIGH


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlaces:
    """The runs that the workers of a fleet execute at once, by queue."""

    default: int = 0
    high: int = 0

    def limits(self) -> list[dict[str, Any]]:
        """The same as Dagster's limits: a run of a queue in which no place is free stays in Dagster's."""
        places = {DEFAULT: self.default, HIGH: self.high}
        return [{"key": QUEUE_TAG, "value": queue, "limit": limit} for queue, limit in places.items()]

    def raised(self, limit: Mapping[str, Any]) -> Mapping[str, Any]:
        """A limit of dagster.yaml: backfills and replays may have a third of the places, where that is more.

        Polls have the rest: a run that has its place keeps it until it ends, whatever its priority.
        """
        if limit["key"] not in (BACKFILL_ID_TAG, REPLAY_TAG) or "value" in limit:
            return limit
        return {**limit, "limit": max(limit["limit"], self.default // _SHARE)}


def places_of(found: Fleet) -> WorkerPlaces:
    """The places of the workers that are alive."""
    return WorkerPlaces(default=found.places(DEFAULT), high=found.places(HIGH))


class FleetRunCoordinator(BackfillsLastRunCoordinator):
    """The queue of one machine, for the workers of many."""

    _known = WorkerPlaces()
    """As they were when the database was last read."""

    def get_run_queue_config(self) -> RunQueueConfig:
        """The limits of the file, and the places that the workers have now. The daemon calls it each time."""
        config = super().get_run_queue_config()
        try:
            with open_database(Settings.from_environ(os.environ, cwd=Path.cwd())) as database:
                self._known = places_of(fleet(database))
        except RssPipelineError as error:
            # The runs that are sent meanwhile wait in Redis at worst.
            _logger.warning("The places of the workers are not known: %s", error)
        limits = [*map(self._known.raised, config.tag_concurrency_limits or ()), *self._known.limits()]
        return config._replace(tag_concurrency_limits=limits)

    def submit_run(self, context: dg.SubmitRunContext) -> dg.DagsterRun:
        """Queue the run, with the queue of the workers that it is for."""
        run = context.dagster_run
        tags = {QUEUE_TAG: queue_of(run.tags), RETRY_STRATEGY_TAG: _RETRY_STRATEGY, **run.tags}
        self._instance.add_run_tags(run.run_id, {key: tags[key] for key in (QUEUE_TAG, RETRY_STRATEGY_TAG)})
        return super().submit_run(context)


# The runs of dead workers: ended on the main machine, by the table of workers and the database's clock.
#
# Which those are is decided in model.py. Their leases are released; Dagster starts such a run again
# (`run_retries`).


def end_lost(instance: dg.DagsterInstance, settings: Settings) -> list[str]:
    """End the runs that dead workers left; return their ids."""
    with open_database(settings) as database:
        lost = end_lost_runs(instance, database, host_delay=settings.host_delay_seconds)
        return [run.run_id for run in lost]


def end_lost_runs(instance: dg.DagsterInstance, database: Database, *, host_delay: float) -> list[WorkerRun]:
    """End the runs that dead workers left, and release what they hold; return them. Their hosts are left
    alone for so many seconds."""
    fleet = workers.fleet(database)
    left = of_dead_workers(fleet)
    if not left:
        return []
    live = live_run_ids(database)
    renewals = workers.last_renewals(database, [run.run_id for run in left if run.run_id in live])
    lost = [run for run in left if is_lost(run, fleet, renewals)]
    # First: the run that Dagster starts in its place takes the feeds.
    end_of_killed(database, [run.run_id for run in lost], host_delay=host_delay)
    for run in lost:
        seen = fleet.named("worker", run.worker)
        is_same = seen is not None and seen.member.incarnation == run.incarnation
        end_dead(
            instance,
            run.run_id,
            f"Its worker {run.worker} was not seen for a minute: it was killed, or cut off from the database."
            if is_same
            else f"Its process at the worker {run.worker} was killed.",
        )
    if lost:
        workers.end_runs(database, [run.run_id for run in lost])
    return lost
