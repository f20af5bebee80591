"""How many workers and shards a number of feeds needs, and what a death of workers does: simulated.

The model and its costs are rss_pipeline_tests/simulation. Nothing is requested; the same every time.

    python -m benchmarks.fleet --tables --to docs           # the tables and plots of docs/fleet-simulation.md
    python -m benchmarks.fleet --feeds 50000 --workers 5 --shards 16 --dying 0.34     # one fleet
    python -m benchmarks.fleet --feeds 10000 --hosts 500 --workers 3 --shards 3 --all-due --one-machine \\
        --response 0.01 --host-delay 0.05                   # a first poll that can be measured
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
from rss_pipeline_tests.simulation.costs import Costs, World
from rss_pipeline_tests.simulation.figures import SPAN, Figures
from rss_pipeline_tests.simulation.fleet import Fleet
from rss_pipeline_tests.simulation.plan import HOUR, MINUTE, Plan

SMALL = Plan(feeds=50_000, registry=0, hours=2.0)
LARGE = Plan(feeds=1_000_000, registry=0, hours=1.25)

SIZES = (
    replace(SMALL, shards=4, workers=2),
    replace(SMALL, shards=8, workers=4),
    replace(SMALL, shards=16, workers=4),
    replace(SMALL, shards=16, workers=5),
    replace(SMALL, shards=8, workers=3, concurrency=20),
    replace(SMALL, shards=8, workers=3, concurrency=20, registry=None),
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
    replace(
        LARGE,
        shards=64,
        workers=30,
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
    """A row a fleet: what it needs and what it gives."""
    yield (
        "| feeds, hosts | shards | workers × runs | fetched at once | places taken | visits/s | lag p50"
        " | lag p99 | crowded hosts: feeds, lag p50 | lock held | longest wait | batches/s | rows/s"
        " | Dagster's rows/s | WAL MB/s |"
    )
    yield "|---|" + "---:|" * 14
    for each in rows:
        plan = each.plan
        crowded = f"{each.crowded_feeds:,} on {each.crowded_hosts}"
        late = each.crowded.percentile(0.5, plan.warm_up) / MINUTE
        registry = "" if plan.registry == 0 else ", feeds.yaml read by each run"
        batch = "" if plan.batch_size == 500 else f", {plan.batch_size:,} a run"
        yield (
            f"| {plan.feeds:,} {plan.hosts}{registry}{batch} | {plan.shards} | {plan.workers} × {plan.runs}"
            f" | {plan.concurrency} | {each.places:.1f} | {each.visits_a_second:.0f}"
            f" | {lag(each, 0.5)} min | {lag(each, 0.99)} min"
            f" | {f'{crowded}, {late:.0f} min' if each.crowded_hosts else 'none'}"
            f" | {100 * each.lock_share:.0f} % | {each.longest_wait:.1f} s"
            f" | {each.transactions_a_second:.1f} | {each.rows_a_second:.0f}"
            f" | {each.dagster_rows_a_second:.0f} | {each.wal_a_second / 1e6:.2f} |"
        )


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
    """Minutes from the return of the workers until p99 is within a fifth of that before, for 20 minutes."""
    plan = figures.plan
    usual = figures.lag.percentile(0.99, plan.warm_up, plan.dies_at) * 1.2
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
            "feeds due and not claimed, without crowded hosts": {
                "feeds": [float(sample.waiting) for sample in found]
            },
        },
    )


def tables(to: Path | None) -> Iterator[str]:
    """All tables of the page, and its plots."""
    began = time.perf_counter()
    with ProcessPoolExecutor(2, max_tasks_per_child=1) as pool:
        deaths = pool.map(simulated, reversed(DEATHS))
        sizes: list[Figures] = []
        for each in pool.map(simulated, SIZES):
            sizes.append(each)
            yield [*size_lines(sizes)][-1] if len(sizes) > 1 else "\n".join(size_lines(sizes))
        died = list(deaths)[::-1]
    yield ""
    yield from death_lines(died)
    yield f"\n{time.perf_counter() - began:.0f} s."
    if to is not None:
        for each in (died[0], died[-1]):
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
    parser.add_argument("--tick", type=float, default=60.0, help="seconds between two looks of the sensor")
    parser.add_argument("--response", type=float, help="median seconds of a request; no time-outs then")
    parser.add_argument("--registry", type=int, help="feeds in feeds.yaml; default: all")
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
        world = World(response=given.response, response_sigma=0.2, no_connection=0.0, no_answer=0.0)
    same = {name: value for name, value in vars(given).items() if name in Plan.__dataclass_fields__}
    plan = Plan(
        **same,
        every_document_new=given.new,
        costs=Costs(claims_beside=given.claims_beside),
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
