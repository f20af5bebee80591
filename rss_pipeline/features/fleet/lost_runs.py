"""Runs of workers that are dead: which of them are to be ended. A decision; nothing is read here."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from rss_pipeline.features.fleet.machines import BEAT_SECONDS, GAP, Fleet, WorkerRun

_BETWEEN_BEATS = timedelta(seconds=BEAT_SECONDS + 2)


def of_dead_workers(fleet: Fleet) -> list[WorkerRun]:
    """The runs of workers that were not seen lately, have left, or were started anew.

    None where the main machine itself had a gap just now, or is not seen: the database was away, and whoever
    is alive is seen again within a beat.
    """
    if fleet.main is None or fleet.now - fleet.main.steady_since < GAP:
        return []
    alive = {(seen.member.name, seen.member.incarnation) for seen in fleet.living_workers}
    return [run for run in fleet.runs if (run.worker, run.incarnation) not in alive]


def is_lost(run: WorkerRun, fleet: Fleet, renewals: Mapping[str, datetime]) -> bool:
    """True if the run of a dead worker is dead, too. `renewals` are the times at which live leases were
    renewed.

    One that has renewed a lease since its worker was last seen is alive: only the process that beats is gone.
    Once its lease has lapsed it is dead, whenever that was renewed: a run that is alive renews it. Where the
    machine is cut off from the database, nothing is renewed. Such a run stops its requests when its lease is
    over, and no run claims its feeds before: what is free sooner is its place in Dagster's queue.
    """
    seen = fleet.named("worker", run.worker)
    if seen is None or seen.member.incarnation != run.incarnation:
        return True
    renewed = renewals.get(run.run_id)
    return renewed is None or renewed <= seen.seen_at + _BETWEEN_BEATS
