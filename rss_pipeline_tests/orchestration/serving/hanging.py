"""Definitions with a sensor and a schedule that hang while a file is there, and a sensor that does not.

Loaded by test_locations.py, in its own process.
"""

import os
import time
from pathlib import Path

import dagster as dg

HANGS = Path(os.environ.get("HANGS", "/nowhere"))


@dg.op
def nothing() -> None:
    """Nothing."""


@dg.job
def idle() -> None:
    nothing()


def _hang() -> dg.SkipReason:
    while HANGS.exists():
        time.sleep(0.01)
    return dg.SkipReason("it hangs no more")


@dg.sensor(job=idle)
def hangs() -> dg.SkipReason:
    return _hang()


@dg.schedule(job=idle, cron_schedule="@daily")
def hangs_daily() -> dg.SkipReason:
    return _hang()


@dg.sensor(job=idle)
def goes_on() -> dg.SkipReason:
    return dg.SkipReason("at once")


defs = dg.Definitions(sensors=[hangs, goes_on], schedules=[hangs_daily])
