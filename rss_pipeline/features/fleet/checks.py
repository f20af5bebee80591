"""The health check of several machines: are workers alive? And what to add where feeds wait."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.model import HIGH, Fleet, SeenMachine
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.health import sql as tables
from rss_pipeline.features.health.model import (
    OFTEN,
    SKEW_FAILURE,
    SKEW_WARNING,
    Check,
    Finding,
    Look,
    State,
    Watch,
    counted,
    worst_of,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, Row

POLL_FEEDS = "poll_feeds"
CHECK_HEALTH = "check_health"
"""The job that evaluates these checks takes a place of a worker for a moment."""


TAKEN_OVER = timedelta(minutes=5)
"""Feeds that have been due for longer wait, where a machine has died. A poll starts within four minutes."""
CONNECTIONS_OF_MAIN = 14
CONNECTIONS_OF_A_PLACE = 3
"""Most connections at once, as measured; a worker has a place for a person's run besides the others."""


def check_machines(database: Database, machines: Fleet, settings: Settings, *, now: datetime) -> Finding:
    """The machines of a fleet, what waits since one died, and the connections that all of them need."""
    waiting = 0
    if len(machines.living_workers) < len(machines.workers):
        waiting = tables.overdue(database, since=now - TAKEN_OVER).count
    connections = settings.database.most_connections(database)
    return workers_alive(machines, waiting=waiting, connections=connections)


def workers_alive(fleet: Fleet, *, waiting: int = 0, connections: int | None = None) -> Finding:
    """Workers that are alive, with one version and one clock.

    `waiting` is the number of feeds that have been due for longer than `TAKEN_OVER`, `connections` the most
    that the database gives.
    """
    alive = fleet.living_workers
    dead = [seen for seen in fleet.workers if not seen.is_alive(fleet.now)]
    figures = {
        "workers": len(alive),
        "dead": len(dead),
        "places": fleet.places(),
        "runs": sum(len(fleet.runs_of(seen)) for seen in alive),
    }
    rows = [_row(seen, fleet) for seen in fleet.machines]
    found: list[tuple[State, str, str]] = []
    if not alive:
        found.append(
            ("failure", "No worker is alive: no run begins", "Start `rss-pipeline worker` on a machine.")
        )
    if dead:
        names = ", ".join(f"{seen.member.name} {rough(fleet.now - seen.seen_at)} ago" for seen in dead[:5])
        word = "worker was" if len(dead) == 1 else "workers were"
        found.append(
            (
                "warning",
                f"{len(dead)} {word} last seen: {names}",
                "Start them again if you need them; each is forgotten after a day."
                f" {_taken_over(fleet, dead, waiting)}",
            )
        )
    if fleet.main is None:
        mains = [seen for seen in fleet.machines if seen.member.role == "main"]
        last = max(mains, key=lambda seen: seen.seen_at, default=None)
        found.append(
            (
                "failure",
                "No main machine is alive: no run begins"
                if last is None
                else f"The main machine, {last.member.name}, was last seen {rough(fleet.now - last.seen_at)}"
                " ago: no run begins",
                "Start `rss-pipeline up --fleet` there, or look at its log.",
            )
        )
    elif others := [s for s in alive if s.member.code_version != fleet.main.member.code_version]:
        names = ", ".join(seen.member.name for seen in others[:5])
        found.append(
            (
                "warning",
                f"Their code is not the main machine's: {names}",
                "They begin no run: update them and start them again.",
            )
        )
    if wrong := [seen for seen in fleet.alive if abs(seen.clock_offset) >= SKEW_WARNING.total_seconds()]:
        worst = max(abs(seen.clock_offset) for seen in wrong)
        names = ", ".join(f"{seen.member.name} {seen.clock_offset:+d} s" for seen in wrong[:5])
        found.append(
            (
                "failure" if worst >= SKEW_FAILURE.total_seconds() else "warning",
                f"Clocks differ from the database's: {names}",
                "Set them (NTP): visits come at wrong times.",
            )
        )
    needed = CONNECTIONS_OF_MAIN + sum(
        CONNECTIONS_OF_A_PLACE * (seen.member.runs_at_once + 1) for seen in alive
    )
    if alive and connections is not None and needed > connections:
        found.append(
            (
                "warning",
                f"The database gives {connections} connections, and the main machine and"
                f" {counted(len(alive), 'worker', 'workers')} need up to some {needed}",
                "Raise max_connections of Postgres, or lower RSS_WORKER_RUNS.",
            )
        )
    name = "workers_alive"
    if not found:
        sentence = f"{counted(len(alive), 'worker is', 'workers are')} alive, with {figures['places']} places"
        return Finding(name, "ok", sentence, figures=figures, rows=rows)
    return replace(worst_of(name, found), figures=figures, rows=rows)


def _taken_over(fleet: Fleet, dead: Sequence[SeenMachine], waiting: int) -> str:
    """A sentence about the feeds and runs of dead workers."""
    runs = sum(len(fleet.runs_of(seen)) for seen in dead)
    if runs or waiting:
        parts = [
            *([f"{counted(runs, 'run is', 'runs are')} not ended yet"] if runs else []),
            *([f"{counted(waiting, 'feed waits', 'feeds wait')} for a visit"] if waiting else []),
        ]
        return f"Of what they did, {' and '.join(parts)}."
    if not fleet.living_workers:
        return "No feed waits so far."
    return "Other workers have taken over their feeds and runs."


def backlog_advice(database: Database, settings: Settings) -> str | None:
    """Advice where feeds wait; None without a fleet."""
    if settings.of(FleetSettings) is None:
        return None
    return what_to_add(workers.fleet(database), shards=settings.shards)


def what_to_add(fleet: Fleet, *, shards: int) -> str:
    """Advice for a fleet in which feeds wait, by the figures: workers, shards or connections."""
    alive = fleet.living_workers
    if not alive:
        return "No worker is alive: start `rss-pipeline worker` on a machine."
    there = fleet.places()
    begun = [run for seen in alive for run in fleet.runs_of(seen)]
    runs = [run for run in begun if run.queue != HIGH and run.job != CHECK_HEALTH]
    polls = sum(run.job == POLL_FEEDS for run in runs)
    free = max(there - len(runs), 0)
    taken = f"{len(runs)} of {there} places of {counted(len(alive), 'worker', 'workers')} are taken"
    polled = f"{polls} of {counted(shards, 'shard', 'shards')} {'is' if polls == 1 else 'are'} polled"
    if not free:
        return (
            f"{taken}, and {polled}: start another worker, or raise RSS_WORKER_RUNS on one with idle"
            " processors."
        )
    if polls >= shards:
        return (
            f"{polled}, and {taken}: raise RSS_SHARDS to {max(there, shards + 1)} on the main machine, or"
            " RSS_FETCH_CONCURRENCY on the workers."
        )
    return (
        f"{taken}, and {polled}: more workers would not help. Is the sensor `poll_feeds_when_due` on, do its"
        " runs fail or wait in the queue?"
    )


def _row(seen: SeenMachine, fleet: Fleet) -> Row:
    member = seen.member
    return {
        "name": member.name,
        "role": member.role,
        "host": member.host,
        "last_seen": instant(seen.seen_at),
        "runs": len(fleet.runs_of(seen)),
        "version": member.code_version,
        "clock_offset_seconds": seen.clock_offset,
    }


def signature(found: Fleet) -> str:
    """A text that changes when a machine comes or goes, or is alive or dead, and not with the time."""
    return " ".join(
        f"{seen.member.role}:{seen.member.incarnation}:{'alive' if seen.is_alive(found.now) else 'dead'}"
        for seen in found.machines
    )


def _look(look: Look) -> tuple[Finding, str]:
    found = workers.fleet(look.database)
    return check_machines(look.database, found, look.settings, now=look.now), signature(found)


CHECKS = (
    Check(
        name="workers_alive",
        find=lambda look: _look(look)[0],
        description="The main machine and at least one worker were seen within a minute, no worker has died"
        " within the last day, and all have the version and the time of the main machine.",
        asset="feeds",
        doctor="machines",
        alert="failure",
        may_pass=True,
        every=OFTEN,
        follows="dates_readable",
        is_on=lambda settings: settings.of(FleetSettings) is not None,
        watch=Watch(
            sensor="watch_workers",
            description="Evaluates the check `workers_alive` when a worker has joined, left or died.",
            look=_look,
        ),
    ),
)
