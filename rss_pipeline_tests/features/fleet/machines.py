"""Machines of a fleet for the tests of this room, seen when a test wants."""

from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.features.fleet.model import DEFAULT, HIGH, Fleet, FleetMember, SeenMachine, WorkerRun
from rss_pipeline.storage.database import Database

NOW = datetime.fromisoformat("2026-02-18T08:30:00Z")
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def machine(name: str = "one", incarnation: str = "a", **fields: Any) -> FleetMember:
    """A worker, unless it has another role."""
    given = {
        "role": "worker",
        "name": name,
        "incarnation": incarnation,
        "host": f"{name}.example",
        "machine": f"{name}.example",
        "pid": 7,
        "code_version": "1",
        "schema_version": 29,
        "queues": (DEFAULT, HIGH),
    }
    return FleetMember(**{**given, **fields})


def main(**fields: Any) -> FleetMember:
    return machine("main", **{"role": "main", "queues": (), **fields})


def seen(member: FleetMember, at: datetime = NOW) -> SeenMachine:
    since = at - 60 * MINUTE
    return SeenMachine(member=member, started_at=since, seen_at=at, steady_since=since, clock_offset=0)


def a_run(worker: str = "one", incarnation: str = "a", **fields: Any) -> WorkerRun:
    """A poll that a worker has begun."""
    given = {
        "run_id": "r",
        "worker": worker,
        "incarnation": incarnation,
        "job": "poll_feeds",
        "queue": DEFAULT,
        "detail": None,
        "pid": 9,
        "started_at": NOW - 5 * MINUTE,
    }
    return WorkerRun(**{**given, **fields})


def fleet(*machines: SeenMachine, now: datetime = NOW, runs: tuple[WorkerRun, ...] = ()) -> Fleet:
    return Fleet(now=now, machines=machines, runs=runs)


def put_back(database: Database, member: FleetMember, by: timedelta) -> None:
    """Let a machine have been seen so long ago."""
    at = instant(utc_now() - by)
    database.query(
        "UPDATE workers SET seen_at = ? WHERE role = ? AND name = ?", [at, member.role, member.name]
    )
