"""Polls one after the other, without Dagster, until it is killed: `python -m ... HOME LEASE_SECONDS`."""

import sys
from datetime import datetime
from pathlib import Path

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline_tests.support.pipeline import Clock, Pipeline


class WallClock(Clock):
    """The time of this machine."""

    def __call__(self) -> datetime:
        return utc_now()


def real_pipeline(home: Path, *, lease_seconds: int) -> Pipeline:
    """An installation with the feeds of its feeds.yaml, and with the real time."""
    pipeline = Pipeline(home, lease_seconds=lease_seconds)
    pipeline.clock = WallClock()
    return pipeline


if __name__ == "__main__":
    pipeline = real_pipeline(Path(sys.argv[1]), lease_seconds=int(sys.argv[2]))
    while True:
        for round_ in pipeline.try_poll(all_feeds=True):
            if round_.error:
                print(round_.error, flush=True)  # noqa: T201 - for who reads the log of the test
