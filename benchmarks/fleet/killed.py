"""A run killed with 500 claimed feeds, for real: when each was visited. `python -m benchmarks.fleet.killed`

First on one machine with SQLite, where all of `rss-pipeline up` is killed as by a power cut and started
again; then in a fleet, where one of three workers is killed for good, beside what the simulation predicts.
Publishers are on loopback and answer as slowly as real ones. It exits with 1 where a feed comes later than
eight minutes after the kill, or a promise is broken; some 15 minutes. Linux only.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.fleet.machines import START_SECONDS, Setting, running
from benchmarks.fleet.namespaces import PUBLISHERS
from benchmarks.fleet.publishers import Asked, Plan, Publishers, feed_id, publishing
from benchmarks.fleet.run import add_options, begin, broken_promises
from benchmarks.fleet.simulation import simulated
from rss_pipeline_tests.simulation.costs import World
from rss_pipeline_tests.simulation.plan import Plan as Simulation
from rss_pipeline_tests.support.up import Up, free_port, kill_session
from rss_pipeline_tests.support.waiting import soon

GOAL_SECONDS = 480.0
_CLAIMED = 500
_BEGUN = 100
"""Requests for feeds of the claim before it is killed."""
_LOOK_SECONDS = 1.0
_LEASES = "SELECT run_id, feeds FROM leases WHERE feeds <> '[]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """A run that was killed, and when its feeds were visited."""

    claimed: int
    begun: int
    """Those of them with a request."""
    left: int
    """Those without a visit that was closed."""
    half: float
    """Seconds from the kill until half of those left were visited; `last` is until all were."""
    last: float

    def line(self) -> str:
        return (
            f"{self.claimed} claimed, {self.begun} of them requested, {self.left} not closed; half of these"
            f" were visited {self.half:.0f} s after the kill, the last {self.last:.0f} s"
        )


Rows = Callable[[str], list[tuple[Any, ...]]]


def _half_way(rows: Rows, publishers: Publishers) -> tuple[str, set[str]]:
    """Wait for a run with so many feeds, some of them requested: its id, and theirs."""
    found: list[tuple[str, set[str]]] = []

    def is_there() -> bool:
        asked = {feed_id(each.feed) for each in publishers.asked()}
        for run_id, feeds in rows(_LEASES):
            ids = set(json.loads(feeds))
            if len(ids) >= 0.9 * _CLAIMED and len(ids & asked) >= _BEGUN:
                found.append((str(run_id), ids))
                return True
        return False

    soon(is_there, seconds=START_SECONDS)
    return found[0]


def _visited(rows: Rows, ids: Collection[str], asked: list[Asked], *, since: float) -> Killed:
    """Wait until each of these feeds was visited."""
    waiting = set(ids) & _unvisited(rows)
    left, times = len(waiting), list[float]()
    while waiting:
        time.sleep(_LOOK_SECONDS)
        now = waiting & _unvisited(rows)
        times += [time.monotonic() - since] * len(waiting - now)
        waiting = now
        if time.monotonic() - since > 3 * GOAL_SECONDS:
            raise SystemExit(f"{len(waiting)} feeds wait {3 * GOAL_SECONDS:g} s after the kill")
    begun = len({feed_id(each.feed) for each in asked} & set(ids))
    return Killed(
        claimed=len(ids), begun=begun, left=left, half=times[len(times) // 2] if times else 0.0,
        last=times[-1] if times else 0.0,
    )  # fmt: skip


def _unvisited(rows: Rows) -> set[str]:
    return {str(id) for (id,) in rows("SELECT id FROM feeds WHERE last_visited_at IS NULL")}


def on_one_machine(given: argparse.Namespace) -> Killed:
    """`rss-pipeline up` on SQLite, killed as a whole and started again."""
    plan = Plan(feeds=_CLAIMED, hosts=_CLAIMED, response=given.response, sigma=given.sigma)
    with tempfile.TemporaryDirectory(prefix="rss-killed-") as name, publishing(plan) as publishers:
        folder = Path(name)
        publishers.register(folder / "feeds.yaml")

        def started() -> Up:
            return Up(
                folder,
                free_port(),
                RSS_FETCH_CONCURRENCY=str(given.concurrency),
                RSS_HOST_DELAY_SECONDS=str(given.host_delay),
                RSS_READER="off",
            )

        up = started()

        def rows(sql: str) -> list[tuple[Any, ...]]:
            try:
                return up.rows(sql)
            except sqlite3.OperationalError:  # It is being made.
                return []

        try:
            _, ids = _half_way(rows, publishers)
            kill_session(up.process)
            up.log.close()
            killed_at, asked = time.monotonic(), publishers.asked()
            up = started()
            return _visited(rows, ids, asked, since=killed_at)
        finally:
            kill_session(up.process)
            up.log.close()


def in_a_fleet(given: argparse.Namespace, *, in_namespaces: bool) -> Iterator[str]:
    """One of the workers, killed for good; lines of what came of it, BROKEN before what should not be."""
    plan = Plan(
        feeds=given.feeds,
        hosts=given.hosts,
        response=given.response,
        sigma=given.sigma,
        network=PUBLISHERS if in_namespaces else "127",
    )
    setting = Setting(
        workers=given.workers,
        runs=1,
        shards=given.workers,
        concurrency=given.concurrency,
        batch_size=given.batch_size,
        host_delay=given.host_delay,
        in_namespaces=in_namespaces,
    )
    with running(setting, plan) as run:
        rows = run.machines.rows
        run_id, ids = _half_way(rows, run.publishers)
        worker = rows(f"SELECT worker FROM worker_runs WHERE run_id = '{run_id}'")[0][0]
        run.machines.workers[worker].kill()
        killed_at, asked = time.monotonic(), run.publishers.asked()
        killed = _visited(rows, ids, asked, since=killed_at)
        yield killed.line()
        run.phase("new", seconds=60 * given.minutes)
        every = run.publishers.asked()
        first, last = min(each.began for each in every), max(each.ended for each in every)
        yield f"killed after {killed_at - first:.0f} s; all {plan.feeds} visited after {last - first:.0f} s"
        world = World(response=plan.response, response_sigma=plan.sigma, no_connection=0.0, no_answer=0.0)
        simulation = Simulation(
            feeds=plan.feeds, hosts=str(plan.hosts), workers=setting.workers, runs=1, shards=setting.shards,
            concurrency=setting.concurrency, batch_size=setting.batch_size, host_delay=setting.host_delay,
            one_machine=True, all_due=True, every_document_new=True, world=world,
            dying=1 / setting.workers, dies_at=killed_at - first, back_at=1e9,
        )  # fmt: skip
        # It begins with the tick of the sensor.
        before = simulated(replace(simulation, feeds=1, hosts="1", shards=1, workers=1, dying=0.0)).end
        for share, name in ((1 / setting.workers, "so killed"), (0.0, "without a kill")):
            figures = simulated(replace(simulation, dying=share, dies_at=simulation.dies_at + before))
            yield f"simulated, {name}: {figures.lost_visits} lost, all after {figures.end - before:.0f} s"
        if killed.last > GOAL_SECONDS:
            yield f"BROKEN: a feed came {killed.last:.0f} s after the kill"
        # What the killed run had requested and not stored is requested again, and stored once.
        for sentence in broken_promises(run, given.host_delay):
            yield f"BROKEN: {sentence}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--feeds", type=int, default=3_000, help="of the fleet; one machine has 500")
    parser.add_argument("--hosts", type=int, default=1_500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--fleet-only", action="store_true")
    parser.add_argument("--response", type=float, default=0.35, help="median seconds of a response")
    add_options(parser)
    given = parser.parse_args()
    in_namespaces = begin(given)
    broken = []
    if not given.fleet_only:
        killed = on_one_machine(given)
        print(f"One machine: {killed.line()}", flush=True)
        broken += [killed.line()] if killed.last > GOAL_SECONDS else []
    for line in in_a_fleet(given, in_namespaces=in_namespaces):
        print(f"Fleet: {line}", flush=True)
        broken += [line] if line.startswith("BROKEN") else []
    if broken:
        sys.exit(1)


if __name__ == "__main__":
    main()
