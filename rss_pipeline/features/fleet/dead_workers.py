"""The runs of dead workers: ended on the main machine, by the table of workers and the database's clock.

Which those are is decided in features/fleet/lost_runs.py. Dagster starts such a run again (`run_retries`);
its feeds are due when its lease is over.
"""

import dagster as dg

from rss_pipeline.features.fleet import workers
from rss_pipeline.features.fleet.lost_runs import is_lost, of_dead_workers
from rss_pipeline.features.fleet.machines import WorkerRun
from rss_pipeline.orchestration.instance.dead_runs import end_dead
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.leases import live_run_ids


def end_lost_runs(instance: dg.DagsterInstance, database: Database) -> list[WorkerRun]:
    """End the runs that dead workers left; return them."""
    fleet = workers.fleet(database)
    left = of_dead_workers(fleet)
    if not left:
        return []
    live = live_run_ids(database)
    renewals = workers.last_renewals(database, [run.run_id for run in left if run.run_id in live])
    lost = [run for run in left if is_lost(run, fleet, renewals)]
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
