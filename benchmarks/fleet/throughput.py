"""Feeds a second of 1, 2 and 3 workers beside one process on SQLite, in one run: half an hour by default.

    python -m benchmarks.fleet.throughput

All collect the same feeds, first new, then answered 304, at the settings that a new installation has: five
requests at once in a run, and a run at once in a worker. Responses take as long as those of real publishers,
so that a worker waits for them nearly all of its time, as it does out there: where publishers answer at once,
two workers compete for the processors of this machine instead. Beside it stands what the simulation predicts.
It exits with 1 where two workers do not reach 1.7 of one, or a promise is broken. Linux only.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from benchmarks.fleet.machines import BENCHMARK, DUE, PARSERS, SERVER, WORKERS, Phase, Setting, running
from benchmarks.fleet.namespaces import PUBLISHERS
from benchmarks.fleet.processor import Process, Processor
from benchmarks.fleet.publishers import Plan, publishing
from benchmarks.fleet.run import add_options, begin, broken_promises, collect
from benchmarks.fleet.simulation import simulated
from benchmarks.processes import environment, rss_pipeline
from rss_pipeline_tests.simulation.costs import World
from rss_pipeline_tests.simulation.plan import Plan as Simulation
from rss_pipeline_tests.support.up import kill_session

_GOAL = 1.7
_OF_WORKERS = (1, 2, 3)


def on_sqlite(plan: Plan, given: argparse.Namespace) -> Iterator[Phase]:
    """The same feeds, by `rss-pipeline poll`."""
    with tempfile.TemporaryDirectory(prefix="rss-fleet-") as name, publishing(plan) as publishers:
        home = Path(name)
        publishers.register(home / "feeds.yaml")
        env = environment(
            RSS_PIPELINE_HOME=str(home / "home"),
            RSS_FEEDS_FILE=str(home / "feeds.yaml"),
            RSS_FETCH_CONCURRENCY=str(given.concurrency),
            RSS_BATCH_SIZE=str(given.batch_size),
            RSS_HOST_DELAY_SECONDS=str(given.host_delay),
            RSS_PARSE_WORKERS="1",
        )
        for phase in ("new", "unchanged"):
            seen = len(publishers.asked())
            process = subprocess.Popen(
                [rss_pipeline(), "poll", "--json"],
                cwd=home,
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

            def group(found: Process, session: int = process.pid, server: int = publishers.pid) -> str | None:
                if found.pid in (server, os.getpid()):
                    return SERVER if found.pid == server else BENCHMARK
                if found.session != session:
                    return None
                return PARSERS if "forkserver" in found.command else WORKERS

            try:
                with Processor(group) as processor:
                    process.wait(60 * given.minutes)
                    cpu = processor.seconds()
            finally:
                kill_session(process)
            asked = publishers.asked(seen)
            visited = len({each.feed for each in asked})
            if process.returncode != 0 or visited != plan.feeds:
                raise SystemExit(f"rss-pipeline poll: {process.returncode}, {visited} feeds")
            seconds = max(each.ended for each in asked) - min(each.began for each in asked)
            yield Phase(name=phase, feeds=plan.feeds, seconds=seconds, cpu=cpu)
            with closing(sqlite3.connect(home / "home" / "rss.sqlite")) as database:
                database.execute("UPDATE feeds SET next_fetch_at = ?", [DUE])
                database.commit()


def predicted(plan: Plan, setting: Setting, *, new: bool) -> float:
    """Feeds a second by the simulation, from the first request on."""
    world = World(
        response=max(plan.response, 0.001), response_sigma=plan.sigma, no_connection=0.0, no_answer=0.0
    )
    simulation = Simulation(
        feeds=plan.feeds,
        hosts=str(plan.hosts),
        workers=setting.workers,
        runs=setting.runs,
        shards=setting.shards,
        concurrency=setting.concurrency,
        batch_size=setting.batch_size,
        host_delay=setting.host_delay,
        cores=float(os.cpu_count() or 1),
        one_machine=True,
        all_due=True,
        every_document_new=new,
        world=world,
    )
    # It begins with the tick of the sensor.
    before = simulated(replace(simulation, feeds=1, hosts="1", shards=1, workers=1)).end
    return plan.feeds / (simulated(simulation).end - before)


def ratio_lines(
    found: Mapping[int, Sequence[Phase]], plan: Plan, settings: Mapping[int, Setting]
) -> Iterator[str]:
    """A table; the workers 0 are the one process on SQLite."""
    yield "| | new: feeds/s | of one worker | predicted | 304: feeds/s | of one worker | predicted |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for workers, phases in found.items():
        cells = []
        for phase, alone in zip(phases, found[1], strict=True):
            is_new = phase.name == "new"
            cells += [f"{phase.rate:.1f}", f"{phase.rate / alone.rate:.2f}"]
            if workers:
                one, these = (predicted(plan, settings[n], new=is_new) for n in (1, workers))
                cells.append(f"{these:.1f}, {these / one:.2f}")
            else:
                cells.append("")
        name = f"{workers} worker{'s' * (workers > 1)}" if workers else "one process, SQLite"
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--feeds", type=int, default=2_000)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--shards", type=int, default=6, help="so many that each worker has as many")
    parser.add_argument("--response", type=float, default=0.35, help="median seconds of a response")
    add_options(parser)
    given = parser.parse_args()
    in_namespaces = begin(given)
    plan = Plan(feeds=given.feeds, hosts=given.hosts, response=given.response, sigma=given.sigma)
    print(
        f"{plan}; {given.shards} shards, {given.concurrency} at once, {given.batch_size} a claim", flush=True
    )
    began = time.monotonic()
    found: dict[int, list[Phase]] = {0: []}
    settings: dict[int, Setting] = {}
    broken: list[str] = []
    print("One process on SQLite:")
    for phase in on_sqlite(plan, given):
        found[0].append(phase)
        print(phase.line(), flush=True)
    for workers in _OF_WORKERS:
        settings[workers] = setting = Setting(
            workers=workers,
            runs=1,
            shards=given.shards,
            concurrency=given.concurrency,
            batch_size=given.batch_size,
            host_delay=given.host_delay,
            in_namespaces=in_namespaces,
        )
        print(f"Workers: {workers}")
        with running(setting, replace(plan, network=PUBLISHERS) if in_namespaces else plan) as run:
            found[workers] = []
            for phase in collect(run, seconds=60 * given.minutes):
                found[workers].append(phase)
                print(phase.line(), flush=True)
            broken += broken_promises(run, given.host_delay)
    for line in ratio_lines(found, plan, settings):
        print(line)
    for one, two in zip(found[1], found[2], strict=True):
        if two.rate < _GOAL * one.rate:
            broken.append(f"{two.name}: two workers reach {two.rate / one.rate:.2f} of one (goal {_GOAL})")
    print(f"{time.monotonic() - began:.0f} s.")
    for sentence in broken:
        print(f"BROKEN: {sentence}")
    if broken:
        sys.exit(1)


if __name__ == "__main__":
    main()
