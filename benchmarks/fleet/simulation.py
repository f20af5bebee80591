"""How many workers and shards a number of feeds needs, and what a death of workers does: simulated.

The model and its costs are rss_pipeline_tests/simulation. Nothing is requested; the same every time.

    python -m benchmarks.fleet.simulation --tables --to benchmarks    # fleet-simulation.md
    python -m benchmarks.fleet.simulation --feeds 50000 --workers 5 --shards 16 --dying 0.34    # one fleet
    python -m benchmarks.fleet.simulation --feeds 10000 --hosts 500 --workers 3 --shards 3 --all-due \\
        --one-machine --response 0.01 --host-delay 0.05             # a first poll that can be measured
"""

import argparse
import gc
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from benchmarks.plot import svg
from rss_pipeline_tests.simulation.costs import World
from rss_pipeline_tests.simulation.figures import SPAN, Figures
from rss_pipeline_tests.simulation.fleet import Fleet
from rss_pipeline_tests.simulation.plan import HOUR, MINUTE, Plan

SMALL = Plan(feeds=50_000, hours=2.0)
LARGE = Plan(feeds=1_000_000, hours=1.25)

SIZES = (
    replace(SMALL, shards=4, workers=2),
    replace(SMALL, shards=8, workers=4),
    replace(SMALL, shards=16, workers=4),
    replace(SMALL, shards=16, workers=5),
    replace(SMALL, shards=8, workers=3, concurrency=20),
    replace(SMALL, shards=8, workers=3, concurrency=20, registry=50_000),
    replace(SMALL, shards=8, workers=3, concurrency=20, hosts="smallweb"),
    replace(LARGE, shards=160, workers=60),
    replace(LARGE, shards=256, workers=60, concurrency=20),
    replace(LARGE, shards=64, workers=24, concurrency=40, batch_size=2_000),
    replace(LARGE, shards=64, workers=24, concurrency=40, batch_size=2_000, hosts="smallweb"),
)
_DYING = replace(SMALL, hours=4.5, dying=1 / 3)
DEATHS = (
    replace(_DYING, shards=16, workers=6),
    replace(_DYING, shards=8, workers=3, concurrency=20),
    # A quarter of a fleet for a million: of its feeds, shards and workers.
    replace(
        LARGE,
        feeds=250_000,
        shards=16,
        workers=8,
        concurrency=40,
        batch_size=2_000,
        hours=2.75,
        dying=1 / 3,
        dies_at=0.75 * HOUR,
        back_at=1.75 * HOUR,
    ),
)


def simulated(plan: Plan) -> Figures:
    fleet = Fleet(plan)
    # Nothing of it is garbage, and looking for some takes longer than the simulation.
    gc.collect()
    gc.freeze()
    gc.disable()
    return fleet.run()


def lag(figures: Figures, share: float, since: float | None = None, until: float | None = None) -> str:
    """A percentile of lag after the warm-up, in minutes."""
    plan = figures.plan
    begin = plan.warm_up if since is None else since
    return f"{figures.lag.percentile(share, begin, until or plan.hours * HOUR) / MINUTE:.1f}"


def size_lines(rows: Sequence[Figures]) -> Iterator[str]:
    """Two tables with a row a fleet: what it gives, and what it asks of Postgres and of hosts."""
    yield (
        "| feeds, hosts | shards | workers × runs | fetched at once | places taken | lag p50 | lag p99"
        " | late on crowded hosts |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for each in rows:
        plan = each.plan
        yield (
            f"| {_named(plan)} | {plan.shards} | {plan.workers} × {plan.runs} | {plan.concurrency}"
            f" | {each.places:.1f} | {lag(each, 0.5)} min | {lag(each, 0.99)} min"
            f" | {each.crowded_feeds:,} on {each.crowded_hosts} |"
        )
    yield ""
    yield (
        "| feeds, hosts | shards | visits/s | batches/s | rows/s | Dagster's rows/s | WAL MB/s"
        " | lock held | longest wait | requests/h to a crowded host |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for each in rows:
        plan = each.plan
        hours = (each.end - plan.warm_up) / HOUR
        crowded = each.crowded.count(plan.warm_up) / hours / max(1, each.crowded_hosts)
        yield (
            f"| {_named(plan)} | {plan.shards} | {each.visits_a_second:.0f}"
            f" | {each.transactions_a_second:.1f} | {each.rows_a_second:.0f}"
            f" | {each.dagster_rows_a_second:.0f} | {each.wal_a_second / 1e6:.2f}"
            f" | {100 * each.lock_share:.0f} % | {each.longest_wait:.1f} s | {crowded:.0f} |"
        )


def _named(plan: Plan) -> str:
    registry = ", feeds.yaml on each worker" if plan.registry else ""
    batch = "" if plan.batch_size == 500 else f", {plan.batch_size:,} a run"
    return f"{plan.feeds:,} {plan.hosts}{registry}{batch}"


def death_lines(rows: Sequence[Figures]) -> Iterator[str]:
    """A row a fleet of which a third dies for an hour."""
    yield (
        "| feeds | shards | workers × runs | visits lost | lag p99 before | in the hour | the hour after"
        " | then | p99 is normal again after |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for each in rows:
        plan = each.plan
        yield (
            f"| {plan.feeds:,} | {plan.shards} | {plan.workers} × {plan.runs} | {each.lost_visits:,}"
            f" | {lag(each, 0.99, None, plan.dies_at)} min"
            f" | {lag(each, 0.99, plan.dies_at, plan.back_at)} min"
            f" | {lag(each, 0.99, plan.back_at, plan.back_at + HOUR)} min"
            f" | {lag(each, 0.99, plan.back_at + HOUR)} min | {_recovered(each):.0f} min |"
        )


def _recovered(figures: Figures) -> float:
    """Minutes from the return of the workers until p99 is at most 1.5 of that before, for 20 minutes."""
    plan = figures.plan
    usual = figures.lag.percentile(0.99, plan.warm_up, plan.dies_at) * 1.5
    late = [figures.lag.percentile(0.99, at, at + SPAN) > usual for at in figures.times()]
    first = int(plan.back_at // SPAN)
    for span in range(first, len(late) - 3):
        if not any(late[span : span + 4]):
            return (span - first) * SPAN / MINUTE
    return math.inf


def drawing(figures: Figures) -> str:
    """Lag, load and what waits, over time."""
    plan = figures.plan
    times = list(figures.times())
    samples = {int(sample.at // SPAN): sample for sample in figures.samples}
    found = [samples[int(at // SPAN)] for at in times]

    def line(share: float) -> list[float]:
        return [figures.lag.percentile(share, at, at + SPAN) / MINUTE for at in times]

    return svg(
        f"{plan.feeds:,} feeds, {plan.shards} shards, {plan.workers} workers of {plan.runs} runs;"
        f" {plan.dying:.0%} of them dead from {plan.dies_at / MINUTE:.0f} to {plan.back_at / MINUTE:.0f} min",
        [at / MINUTE for at in times],
        {
            "lag of feeds in minutes, without crowded hosts": {"p50": line(0.5), "p99": line(0.99)},
            "runs": {
                "on workers": [float(sample.busy) for sample in found],
                "waiting for a place": [float(sample.queued) for sample in found],
            },
            "feeds due and not claimed": {"feeds": [float(sample.waiting) for sample in found]},
        },
    )


def tables(to: Path | None) -> Iterator[str]:
    """All tables of the page, and its plots."""
    began = time.perf_counter()
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        deaths = pool.map(simulated, reversed(DEATHS))
        sizes = list(pool.map(simulated, SIZES))
        died = list(deaths)[::-1]
    yield from size_lines(sizes)
    yield ""
    yield from death_lines(died)
    yield f"\n{time.perf_counter() - began:.0f} s."
    if to is not None:
        for each in died[1:]:
            (to / f"fleet-{each.plan.feeds}.svg").write_text(drawing(each), "utf-8")


def first_polls(plan: Plan) -> Iterator[str]:
    """A poll of feeds that are all due, by 1 to all workers: what a measurement is held against."""
    yield "| workers | seconds | feeds/s | of one worker | runs |"
    yield "|---:|---:|---:|---:|---:|"
    alone = 0.0
    for workers in range(1, plan.workers + 1):
        figures = simulated(replace(plan, workers=workers))
        alone = alone or figures.end
        yield (
            f"| {workers} | {figures.end:.0f} | {figures.visits / figures.end:.1f}"
            f" | {alone / figures.end:.2f} | {figures.runs} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", action="store_true", help="all fleets of the page; some minutes")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where plots are written")
    parser.add_argument("--feeds", type=int, default=10_000)
    parser.add_argument("--hosts", default="lists", help="lists, smallweb, or a number of equal hosts")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--runs", type=int, default=2, help="at once on each worker")
    parser.add_argument("--cores", type=float, default=2, help="of each worker, or of the one machine")
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=5, help="RSS_FETCH_CONCURRENCY")
    parser.add_argument("--batch-size", type=int, default=500, help="RSS_BATCH_SIZE")
    parser.add_argument("--host-delay", type=float, default=1.0, help="RSS_HOST_DELAY_SECONDS")
    parser.add_argument("--tick", type=float, help="seconds between two looks of the sensor")
    parser.add_argument("--response", type=float, help="median seconds of a request; no time-outs then")
    parser.add_argument("--sigma", type=float, default=0.2, help="of its logarithm, with --response")
    parser.add_argument("--registry", type=int, default=0, help="feeds in the feeds.yaml of each worker")
    parser.add_argument("--all-due", action="store_true", help="all are due: how long until each was visited")
    parser.add_argument("--new", action="store_true", help="each document is new")
    parser.add_argument("--one-machine", action="store_true", help="all workers share the cores")
    parser.add_argument(
        "--claims-beside", action="store_true", help="claims do not wait for the writers' lock"
    )
    parser.add_argument("--dying", type=float, default=0.0, help="share of workers that is dead for an hour")
    parser.add_argument("--hours", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.tables:
        for line in tables(given.to):
            print(line, flush=True)
        return
    world = World()
    if given.response is not None:
        world = World(response=given.response, response_sigma=given.sigma, no_connection=0.0, no_answer=0.0)
    same = {name: value for name, value in vars(given).items() if name in Plan.__dataclass_fields__}
    plan = Plan(
        **same,
        every_document_new=given.new,
        world=world,
    )
    if plan.all_due:
        lines = first_polls(plan)
    else:
        figures = simulated(plan)
        lines = iter([*size_lines([figures]), *(["", *death_lines([figures])] if plan.dying else [])])
        if given.to is not None:
            (given.to / f"fleet-{plan.feeds}.svg").write_text(drawing(figures), "utf-8")
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
