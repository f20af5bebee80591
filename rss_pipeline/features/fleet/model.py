"""The machines of a fleet: how each describes itself, when it was last seen, what it runs. Values only.

sql.py stores them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.pipeline.session.lease_keeper import CUT_OFF_SECONDS

Role = Literal["main", "worker"]

HIGH, DEFAULT = "high", "default"
"""The queues: of runs that a person waits for, and of all others. Each worker has a place of its own for the
first."""

BEAT_SECONDS = 15.0
UNSEEN = timedelta(seconds=60)
"""A machine that was not seen for so long counts as dead."""
GAP = timedelta(seconds=40)
"""A machine that was not seen for so long has a gap; after one, others may not have been seen either."""
FORGOTTEN = timedelta(days=1)
"""A dead machine that has left no run is forgotten after so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A machine of the fleet, as it describes itself."""

    role: Role
    name: str
    incarnation: str
    """A new token at each start."""
    host: str
    machine: str
    """The machine on which `pid` is a process: equal for two only where they see the same processes."""
    pid: int
    code_version: str
    schema_version: int
    queues: tuple[str, ...] = ()
    runs_at_once: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenMachine:
    """A member, and when it was seen, by the database's clock."""

    member: FleetMember
    started_at: datetime
    seen_at: datetime
    steady_since: datetime
    """Since then it was seen without a gap."""
    clock_offset: int
    """Its clock minus the database's, in seconds."""

    def is_alive(self, now: datetime) -> bool:
        """True if it was seen lately; `now` is the database's."""
        return now - self.seen_at < UNSEEN


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRun:
    """A run that a worker has begun and not ended."""

    run_id: str
    worker: str
    incarnation: str
    job: str
    queue: str
    detail: str | None
    pid: int
    """The id of its process on the worker's machine."""
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All machines, the main one first, and what the workers run."""

    now: datetime
    """The database's clock when it was read."""
    machines: tuple[SeenMachine, ...]
    runs: tuple[WorkerRun, ...]

    @property
    def main(self) -> SeenMachine | None:
        """The main machine, if one is alive."""
        alive = [each for each in self.alive if each.member.role == "main"]
        return max(alive, key=lambda each: each.started_at, default=None)

    @property
    def workers(self) -> tuple[SeenMachine, ...]:
        """The workers, dead ones too."""
        return tuple(each for each in self.machines if each.member.role == "worker")

    @property
    def alive(self) -> tuple[SeenMachine, ...]:
        """The machines that were seen lately."""
        return tuple(each for each in self.machines if each.is_alive(self.now))

    @property
    def living_workers(self) -> tuple[SeenMachine, ...]:
        """The workers that were seen lately."""
        return tuple(each for each in self.workers if each.is_alive(self.now))

    def places(self, queue: str = DEFAULT) -> int:
        """Runs of this queue that the living workers execute at once."""
        serving = [each.member for each in self.living_workers if queue in each.member.queues]
        return len(serving) if queue == HIGH else sum(member.runs_at_once for member in serving)

    def runs_of(self, seen: SeenMachine) -> tuple[WorkerRun, ...]:
        """The runs that a worker has begun and not ended, since it was started."""
        return tuple(run for run in self.runs if run.incarnation == seen.member.incarnation)

    def named(self, role: Role, name: str) -> SeenMachine | None:
        """The machine with this name, alive or dead."""
        return next((m for m in self.machines if (m.member.role, m.member.name) == (role, name)), None)


DISOWNED = ""
"""The incarnation of a run that was killed, as its worker has seen."""

# A name that the worker and the processes of its runs share.

INCARNATION_TAG = "rss_pipeline/worker_incarnation"
"""A tag of each run that a worker has begun: the start of the worker. A later one did not execute it."""


# Runs of workers that are dead: which of them are to be ended. A decision; nothing is read here.

_SILENT = timedelta(seconds=CUT_OFF_SECONDS + 2)
"""A run that has renewed no lease for so long makes no more requests. Leases end at whole seconds."""


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
    """True if the run of a dead worker is dead, too, so that its leases can be released. `renewals` are the
    times at which live leases were renewed.

    A worker has seen that the process of one without an incarnation is gone. Any other one that has renewed a
    lease lately is alive: only the process that beats is gone, or it is about to end. Where the machine is
    cut off from the database, nothing is renewed, and the run has stopped its requests by then. One without
    a lease whose worker was started anew has a minute to end, as at a stop.
    """
    if run.incarnation == DISOWNED:
        return True
    if (renewed := renewals.get(run.run_id)) is not None:
        return fleet.now - renewed >= _SILENT
    seen = fleet.named("worker", run.worker)
    is_other = seen is not None and seen.member.incarnation != run.incarnation
    return seen is None or not is_other or fleet.now - seen.started_at >= UNSEEN
