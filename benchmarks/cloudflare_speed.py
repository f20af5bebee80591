"""How long polls take with the tables in D1 (real workerd) beside SQLite, and what a slow network adds.

    python -m benchmarks.cloudflare_speed [--feeds 1000] [--far 100] [--rounds 3]

Whole poll runs in this process, publishers in one of their own, pauses between requests off, the start of the
process not counted. Every round has new stores. The figures of docs/cloudflare.md come from here.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from benchmarks.documents import made_up_feeds
from benchmarks.feeds_file import feed_id
from benchmarks.server import Feed, serving
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import on_cloudflare
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare
from rss_pipeline_tests.support.services.faults import FaultProxy

FIRST, UNCHANGED = "first poll", "poll of unchanged feeds"
FAR_SECONDS = 0.1
Times = dict[tuple[str, str], list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--feeds", type=int, default=1000, help="for D1 beside SQLite")
    parser.add_argument("--far", type=int, default=100, help="feeds for the calls that take 100 ms longer")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    times: Times = defaultdict(list)
    with serving(partial(made_up_feeds, asked.feeds)) as server:
        for _ in range(asked.rounds):
            for where in ("SQLite and folder", "D1 and folder", "D1 and R2"):
                _measure(times, where, server.feeds)
    for what in (UNCHANGED, FIRST):
        base = statistics.median(times[what, "SQLite and folder"])
        for where in ("D1 and folder", "D1 and R2"):
            took = statistics.median(times[what, where])
            print(
                f"{what}, {asked.feeds} feeds: SQLite {base:.2f} s, {where} {took:.2f} s,"
                f" ratio {took / base:.2f}"
            )
    times.clear()
    with serving(partial(made_up_feeds, asked.far)) as server:
        for _ in range(asked.rounds):
            for where in ("near", "100 ms away"):
                _measure(times, where, server.feeds)
    for what in (UNCHANGED, FIRST):
        near, far = (statistics.median(times[what, where]) for where in ("near", "100 ms away"))
        print(f"{what}, {asked.far} feeds: near {near:.2f} s, 100 ms away {far:.2f} s, {far - near:+.2f} s")


def _measure(times: Times, where: str, feeds: Sequence[Feed]) -> None:
    with _pipeline(where) as pipeline:
        for number, feed in enumerate(feeds):
            pipeline.feeds.append(
                {
                    "url": feed.url,
                    "id": feed_id(number, feed),
                    "allow_private": ["127.0.0.0/8"],
                    "images": True,
                }
            )
        pipeline.write_registry()
        pipeline.sync()
        for what in (FIRST, UNCHANGED):
            pipeline.clock.turn(hours=25)
            started = time.perf_counter()
            rounds = pipeline.poll(all_feeds=True)
            took = time.perf_counter() - started
            visits = sum(len(round_.visits) for round_ in rounds)
            if visits != len(feeds):
                raise SystemExit(f"{what}, {where}: {visits} visits of {len(feeds)} feeds")
            times[what, where].append(took)
            print(f"  {what}, {len(feeds)} feeds, {where}: {took:.2f} s in {len(rounds)} runs", flush=True)


@contextmanager
def _pipeline(where: str) -> Iterator[DagsterPipeline]:
    """A pipeline in new stores: where they are is in the name."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings: dict[str, Any] = {}
        if where != "SQLite and folder":
            cloudflare = stack.enter_context(local_cloudflare())
            settings = on_cloudflare(cloudflare)
            environ: Mapping[str, str] = cloudflare.environ
            if where in {"near", "100 ms away"}:
                proxy = stack.enter_context(FaultProxy(cloudflare.url))
                proxy.seconds = FAR_SECONDS if where == "100 ms away" else 0.0
                environ = {**environ, "D1_PROXY_URL": proxy.url, "R2_ENDPOINT_URL": proxy.s3_endpoint}
                settings = _through(proxy, settings)
            os.environ.update(environ)
            if where == "D1 and folder":
                del settings["r2"]
        (home / "dagster").mkdir()
        instance = stack.enter_context(dg.DagsterInstance.from_config(str(home / "dagster")))
        pipeline = DagsterPipeline(home, instance, fetch_concurrency=16, **settings)
        stack.callback(pipeline.close)
        yield pipeline


def _through(proxy: FaultProxy, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "d1": replace(settings["d1"], url=proxy.url),
        "r2": replace(settings["r2"], endpoint_url=proxy.s3_endpoint),
    }


if __name__ == "__main__":
    main()
