"""A year in some minutes: Dagster's home and its processes stop growing once runs are purged.

year.py lives through it; here are the promises.
"""

from pathlib import Path

import pytest

from rss_pipeline_tests.soak.year import Look, live, verdict

FEEDS = 200
MAY_GROW = 1.15
"""The growth of the last third over the second: noise of the allocator, and of where in its retention a
purge came."""
FEW = 5
"""Rows, files and MB that do not count: the first run of a job adds two rows of snapshots, and some jobs run
once an hour."""


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_what_dagster_keeps_stops_growing_and_every_feed_stays_green(tmp_path: Path) -> None:
    looks = [
        each
        for each in live(
            tmp_path, feeds=FEEDS, minutes=60, daemon_polls=300, polls=5_000, purges=24, retention_minutes=4
        )
        if isinstance(each, Look)
    ]
    assert looks[-1].purges >= 20
    assert looks[-1].daemon_polls >= 300
    assert looks[-1].polls >= 5_000
    assert {look.green for look in looks} == {FEEDS}
    assert looks[-1].images_green
    grew = {
        name: found["ratio"]
        for name, found in verdict(looks).items()
        if name.startswith(("disk", "files", "rows", "MB"))
        and found["ratio"] > MAY_GROW
        and found["last third"] - found["second third"] > FEW
    }
    assert grew == {}
