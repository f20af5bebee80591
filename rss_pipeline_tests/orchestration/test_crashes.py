"""A run of the poll job killed at any place reports each item once: the next one tells what it left.

What it stores is proven without Dagster, at more places, in pipeline/visits/test_crashes.py.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rss_pipeline_tests.pipeline.visits.test_crashes import FEEDS, serve
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.server import FeedServer

COMMAND = [sys.executable, "-W", "ignore", "-m", "rss_pipeline_tests.orchestration.dying_poll"]


@pytest.mark.slow
@pytest.mark.parametrize("place", [("store", "2"), ("report",)], ids=" ".join)
def test_a_run_killed_before_its_report_is_reported_by_the_next_one(
    place: tuple[str, ...], tmp_path: Path, pipeline: DagsterPipeline, server: FeedServer
) -> None:
    serve(server, pipeline)
    done = subprocess.run([*COMMAND, str(tmp_path), *place], check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    assert [pipeline.events(id) for id in FEEDS] == [[], [], []]
    pipeline.lapse_leases()
    pipeline.clock.turn(minutes=10)
    pipeline.poll(all_feeds=True)
    for id, body in FEEDS.items():
        (event,) = pipeline.events(id)
        items = body.count(b"<item>")
        assert (len(pipeline.items(id)), event["items_new"], event["items_seen"]) == (items, items, items)
