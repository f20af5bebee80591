"""The requests that a day of polls costs in Cloudflare, by some hours of one on real workerd.

    python -m benchmarks.cloudflare_day [--feeds 50] [--hours 4]

Each feed is visited 24 times a day and changes 4 times, with an item that shows an image. All sensors tick,
by a clock of their own, and the runs that they start are executed. The first hour, in which the images of all
items are downloaded, is left out. The search index and the checks are measured by cloudflare_idle.py. The
requests of docs/cloudflare.md come from here.
"""

import argparse
import os
import random
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path

import dagster as dg

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.counted import counting
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, new_instance
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import on_cloudflare, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare

CHANGES_A_DAY, LISTED, HALF_MINUTES = 4, 10, 120


def main() -> None:
    """Let some hours pass, and print what a day of them costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--feeds", type=int, default=50)
    parser.add_argument("--hours", type=int, default=4)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, local_cloudflare() as cloudflare, FeedServer() as server:
        os.environ.update(cloudflare.environ)
        with new_instance(Path(folder)) as instance:
            pipeline = DagsterPipeline(Path(folder), instance, **on_cloudflare(cloudflare))
            migrate(pipeline.database)
            _measure(pipeline, server, feeds=wanted.feeds, hours=wanted.hours)
            pipeline.close()


def _measure(pipeline: DagsterPipeline, server: FeedServer, *, feeds: int, hours: int) -> None:
    picture = Answer(body=png(), headers={"Content-Type": "image/png"})
    host = server.route("127.0.9.9", "/1.png", picture).removesuffix("/1.png")
    newest = [LISTED] * feeds

    def publish(n: int) -> str:
        body = rss(*(f"{n}-{m}" for m in range(newest[n], newest[n] - LISTED, -1)), image=host)
        return server.route(f"127.0.0.{n + 2}", "/feed", Answer(body=body, etag=f'"{newest[n]}"'))

    for n in range(feeds):
        pipeline.register(publish(n), f"feed-{n:02}", interval="1h")
    pipeline.poll(all_feeds=True)
    for n in range(feeds):
        due = instant(pipeline.clock() + timedelta(hours=n / feeds))
        pipeline.database.query("UPDATE feeds SET next_fetch_at = ? WHERE id = ?", [due, f"feed-{n:02}"])
    counts, runs = Counter[str](), Counter[str]()
    D1Database._exchange = counting(counts)  # type: ignore[method-assign,assignment]
    chance = random.Random(1)
    for half_minute in range((hours + 1) * HALF_MINUTES):
        if half_minute == HALF_MINUTES:
            counts.clear()
            runs.clear()
        for n in range(feeds):
            if chance.random() < CHANGES_A_DAY / 24 / HALF_MINUTES:
                newest[n] += 1
                publish(n)
        _tick(pipeline, half_minute, runs)
        pipeline.clock.turn(seconds=30)
    for what, number in (*counts.items(), *runs.items()):
        print(f"{what:20} {number * 24 // hours:9,} a day")


def _tick(pipeline: DagsterPipeline, half_minute: int, runs: Counter[str]) -> None:
    definitions = pipeline.definitions()
    for sensor in definitions.sensors or ():
        if not isinstance(sensor, dg.SensorDefinition) or isinstance(sensor, dg.RunStatusSensorDefinition):
            continue
        if half_minute * 30 % (sensor.minimum_interval_seconds or 30):
            continue
        with dg.build_sensor_context(instance=pipeline.instance) as context:
            requested = sensor.evaluate_tick(context).run_requests or ()
        for request in requested:
            job = request.job_name or sensor.job_name or ""
            runs[job] += 1
            definitions.resolve_job_def(job).execute_in_process(
                run_config=request.run_config,
                instance=pipeline.instance,
                tags=dict(request.tags),
                raise_on_error=False,
            )


if __name__ == "__main__":
    main()
