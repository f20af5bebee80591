"""What a day costs in Cloudflare in which nothing happens, measured on real workerd.

    python -m benchmarks.cloudflare_idle [--feeds 50] [--images 671] [--items 5000]

The feeds are due tomorrow, the images wait for a host that is on hold. All sensors tick for a day, by a clock
of their own; the checks run each hour, and the search index looks as often as beside a reader. Requests are
counted at the client, rows read are D1's own `meta.rows_read`. The figures of docs/cloudflare.md come from
here.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import dagster as dg

from rss_pipeline.orchestration.checks import CHECK_HEALTH
from rss_pipeline.pipeline.search.build import bring_up_to_date
from rss_pipeline.pipeline.search.follow import REMOTE_LOOK_SECONDS
from rss_pipeline.storage.backends.d1 import D1Database
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.search.index_file import open_to_write
from rss_pipeline_tests.orchestration.test_looks import counting, wait_in
from rss_pipeline_tests.pipeline.topics.stored import add_items, item
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, new_instance
from rss_pipeline_tests.support.pipeline import on_cloudflare
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare

HALF_MINUTES = 2 * 24 * 60


def main() -> None:
    """Let a day pass, and print what each part of it cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("feeds", 50), ("images", 671), ("items", 5_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, local_cloudflare() as cloudflare:
        home = Path(folder)
        os.environ.update(cloudflare.environ)
        with new_instance(home) as instance:
            pipeline = DagsterPipeline(home, instance, **on_cloudflare(cloudflare))
            migrate(pipeline.database)
            wait_in(pipeline, feeds=wanted.feeds, images=wanted.images)
            for number in range(wanted.feeds):
                feed = f"feed-{number:02}"
                key = f"backups/{feed}/2026-03-01/a.xml"
                pipeline.objects.put(key, b"<rss/>", content_type="text/xml")
                numbers = range(number, wanted.items, wanted.feeds)
                add_items(
                    pipeline.database,
                    [
                        item(feed, str(n), "2026-03-01T00:00:00Z", arrived=n + 2, backup_key=key)
                        for n in numbers
                    ],
                )
            _measure(pipeline)
            pipeline.close()


def _measure(pipeline: DagsterPipeline) -> None:
    total, counts = Counter[str](), Counter[str]()
    D1Database._exchange = counting(counts)  # type: ignore[method-assign,assignment]

    def cost(what: str, times: int, work: Callable[[], object]) -> None:
        counts.clear()
        work()
        of_day = {name: times * counts[name] for name in ("requests", "rows")}
        total.update(of_day)
        print(f"{what:20} {of_day['requests']:6,} requests, {of_day['rows']:7,} rows read")

    with open_to_write(pipeline.settings.search_path) as file:
        bring_up_to_date(file, pipeline.database, now=pipeline.clock())
        looks = round(24 * 3600 / REMOTE_LOOK_SECONDS)
        cost(
            "the search index", looks,
            lambda: bring_up_to_date(file, pipeline.database, now=pipeline.clock()),
        )  # fmt: skip
    checks = pipeline.definitions().resolve_job_def(CHECK_HEALTH)
    cost(
        "the checks", 24,
        lambda: checks.execute_in_process(instance=pipeline.instance, raise_on_error=False),
    )  # fmt: skip
    cost("the sensors", 1, lambda: _tick(pipeline))
    print(f"{'all':20} {total['requests']:6,} requests, {total['rows']:7,} rows read")


def _tick(pipeline: DagsterPipeline) -> None:
    sensors = [
        sensor
        for sensor in pipeline.definitions().sensors or ()
        if isinstance(sensor, dg.SensorDefinition) and not isinstance(sensor, dg.RunStatusSensorDefinition)
    ]
    for number in range(HALF_MINUTES):
        for sensor in sensors:
            if number * 30 % (sensor.minimum_interval_seconds or 30) == 0:
                with dg.build_sensor_context(instance=pipeline.instance) as context:
                    sensor(context)
        pipeline.clock.turn(seconds=30)


if __name__ == "__main__":
    main()
