"""What a day costs in Cloudflare in which nothing happens, and what apps and pages cost, by real workerd.

    python -m benchmarks.cloudflare_idle [--feeds 50] [--images 671] [--items 5000]

The feeds are due tomorrow, the images wait for a host that is on hold. All sensors tick for a day, by a clock
of their own; the checks run each hour, when the images count as late, and the search index looks as often as
beside a reader. Then users, to whom all items are unread, sync with an app each and view pages: for the first
time, which costs as much as after a change, and again. Requests are counted at the client, rows read are D1's
own `meta.rows_read`. The figures of docs/cloudflare.md come from here.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import dagster as dg

from rss_pipeline.features.health.alerts import LOOK_SECONDS_PAID, look
from rss_pipeline.features.health.dagster import CHECK_HEALTH
from rss_pipeline.features.search.index_build import REMOTE_LOOK_SECONDS, bring_up_to_date
from rss_pipeline.features.search.index_file import index_path, open_to_write
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.api.test_kept_results import APPS, App, syncs
from rss_pipeline_tests.orchestration.test_looks import wait_in
from rss_pipeline_tests.support.counted import counting
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, new_instance
from rss_pipeline_tests.support.pipeline import on_cloudflare
from rss_pipeline_tests.support.reader import SECRET, Reader
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare
from rss_pipeline_tests.support.stored import add_items, item

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
            total = _measure(pipeline)
            _read(pipeline, total)
            pipeline.close()


COUNTS = Counter[str]()
SYNCS, VIEWS = 96, 20
"""Syncs of an app, one each quarter of an hour, and rounds of seven pages."""


def _cost(what: str, times: int, work: Callable[[], object]) -> Counter[str]:
    """Print what it costs so many times, and return it."""
    COUNTS.clear()
    work()
    found = Counter({name: times * COUNTS[name] for name in ("requests", "rows")})
    _say(what, found)
    return found


def _say(what: str, found: Counter[str]) -> None:
    print(f"{what:40} {found['requests']:6,} requests, {found['rows']:7,} rows read", flush=True)


def _read(pipeline: DagsterPipeline, total: Counter[str]) -> None:
    """An app of each kind, each of a user of its own, and pages; the first app is that of the day."""
    with Reader.on(replace(pipeline.settings, reader_secret=SECRET)) as reader:
        # Users subscribe to public feeds, and those of tests are on loopback.
        reader.database.query("UPDATE feeds SET allow_private = 0, private_hosts = NULL")
        ids = [row["id"] for row in reader.database.query("SELECT id FROM feeds ORDER BY id").rows]
        for place, name in enumerate((*APPS, "newsboat")):
            phone = Phone.of_new_user(reader, f"user-{place}")
            phone.subscribe(*ids)
            app = App(phone, feed=ids[0])
            sync = partial(app.newsboat, *ids) if name == "newsboat" else syncs(app)[name]
            _cost(f"{name}, for the first time", 1, sync)
            sync()
            spent = _cost(f"{name}, nothing changed", 1, sync)
            times = SYNCS if place == 0 else VIEWS if name == "seven pages" else 0
            total.update({what: times * count for what, count in spent.items()})
    _say(f"a day with {SYNCS} syncs and {VIEWS * 7} pages", total)


def _measure(pipeline: DagsterPipeline) -> Counter[str]:
    """An idle day, part by part."""
    total = Counter[str]()
    D1Database._exchange = counting(COUNTS)  # type: ignore[method-assign,assignment]

    with open_to_write(index_path(pipeline.settings)) as file:
        bring_up_to_date(file, pipeline.database, now=pipeline.clock())
        looks = round(24 * 3600 / REMOTE_LOOK_SECONDS)
        total += _cost(
            "the search index", looks,
            lambda: bring_up_to_date(file, pipeline.database, now=pipeline.clock()),
        )  # fmt: skip
    total += _cost("the sensors", 1, lambda: _tick(pipeline))
    checks = pipeline.definitions().resolve_job_def(CHECK_HEALTH)
    total += _cost(
        "the checks", 24,
        lambda: checks.execute_in_process(instance=pipeline.instance, raise_on_error=False),
    )  # fmt: skip
    _say("an idle day", total)
    # The checks of each hour are evaluated by their job.
    settings = replace(pipeline.settings, alert_webhook="http://127.0.0.1:9/")
    look(pipeline.database, settings, now=pipeline.clock())
    total += _cost(
        "with alerts, besides", round(24 * 3600 / LOOK_SECONDS_PAID),
        lambda: look(pipeline.database, settings, now=pipeline.clock()),
    )  # fmt: skip
    return total


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
