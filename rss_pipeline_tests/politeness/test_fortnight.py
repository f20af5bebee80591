"""What docs/politeness.md promises: no publisher of any kind finds a fault with us in a fortnight."""

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.politeness.fortnight import Fortnight
from rss_pipeline_tests.politeness.kinds import KINDS
from rss_pipeline_tests.support.server import FeedServer


@pytest.mark.minutes
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_publisher_finds_a_fault_in_a_fortnight(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    """Refreshes by hand, restarts and runs of the job strewn in."""
    with Fortnight(tmp_path, instance, server, KINDS, hours=12, patience=timedelta(hours=2)) as fortnight:
        rows = {row.kind: row for row in fortnight.run()}
        faults = [
            f"{fault.feed} {fault.at} {fault.kind}: {fault.what}" for fault in fortnight.stand.scorer.faults
        ]
    assert faults == []
    assert len(rows) >= 40
    assert all(row.requests >= 14 for row in rows.values()), "each was asked at least once a day"
    assert rows["both"].conditional == rows["both"].requests - 1
    assert rows["both"].not_modified > rows["both"].bodies
    apart = {name: row.apart for name, row in rows.items() if row.apart}
    assert apart == {"304 for ever": 1, "304 for ever, then errors": 1}
