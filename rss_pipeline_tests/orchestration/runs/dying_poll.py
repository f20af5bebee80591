"""A run of the poll job in a process that kills itself somewhere, with the arguments HOME STEP [ADVANCES].

The places are those of pipeline/visits/faults/dying_poll.py, and `report`. POLL_MINUTES of the environment is
the time in minutes after noon. Started by test_crashes.py and test_downstream.py.
"""

import os
import sys
from pathlib import Path

import dagster as dg

from rss_pipeline_tests.pipeline.visits.faults.dying_poll import Death
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline


def main() -> None:
    home, step, *advances = sys.argv[1:]
    with dg.DagsterInstance.from_config(str(Path(home) / "dagster")) as instance:
        pipeline = DagsterPipeline(Path(home), instance)
        pipeline.clock.turn(minutes=int(os.environ.get("POLL_MINUTES", "0")))
        pipeline.poll(all_feeds=True, progress=Death(step, int(advances[0]) if advances else None))
