"""The promise of benchmarks/politeness.md: no publisher of any kind finds a fault with us in a fortnight."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.politeness.fortnight import Fortnight, Loop
from rss_pipeline_tests.politeness.kinds import IMAGES, KINDS, OUTAGES, RATES, READERS
from rss_pipeline_tests.politeness.publishers import Kind
from rss_pipeline_tests.politeness.stand import Row
from rss_pipeline_tests.support.server import FeedServer

SEED = 31
OTHERS = READERS[1]
A_FEW_DAYS = 5


def scored(
    home: Path, instance: dg.DagsterInstance, server: FeedServer, kinds: Sequence[Kind], hours: int = 12
) -> tuple[dict[str, Row], list[str]]:
    """The rows by kind, and the faults, of a fortnight with refreshes by hand, restarts and runs of the job
    strewn in."""
    with Fortnight(home, instance, server, kinds, hours=hours, patience=timedelta(hours=2)) as fortnight:
        rows = {row.kind: row for row in fortnight.run()}
        faults = fortnight.stand.scorer.faults
        return rows, [f"{fault.feed} {fault.at} {fault.kind}: {fault.what}" for fault in faults]


@pytest.mark.slow
def test_a_tenth_of_the_publishers_finds_no_fault_in_a_fortnight(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    kinds = random.Random(SEED).sample(OTHERS, len(KINDS) // 10)
    rows, faults = scored(tmp_path, instance, server, kinds)
    assert faults == []
    assert all(row.requests >= 14 for row in rows.values()), "each was asked at least once a day"


@pytest.mark.slow
def test_hosts_that_limit_the_rate_of_feeds_or_of_images_find_no_fault_in_some_days(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    sample = random.Random(SEED)
    limited = [kind for kind in IMAGES if kind.is_limited]
    others = [kind for kind in IMAGES if not kind.is_limited]
    kinds = [replace(sample.choice(some), days=A_FEW_DAYS) for some in (limited, others, RATES)]
    rows, faults = scored(tmp_path, instance, server, kinds, hours=24)
    assert faults == []
    assert all(row.images >= A_FEW_DAYS for row in rows.values() if row.kind != kinds[-1].name)
    assert rows[kinds[-1].name].requests >= A_FEW_DAYS * len(kinds[-1].feeds)


@pytest.mark.slow
def test_a_provider_with_an_outage_that_is_all_that_its_reader_sees_finds_no_fault(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    _, faults = scored(tmp_path, instance, server, OUTAGES)
    assert faults == []


def test_a_feed_that_is_requested_again_and_again_ends_the_fortnight(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    [auto] = [kind for kind in KINDS if kind.name == "auto"]
    hour = timedelta(hours=1)
    with (
        Fortnight(tmp_path, instance, server, [auto], hours=1, patience=hour, most_requests=3) as fortnight,
        pytest.raises(Loop, match='of "auto" was requested 4 times on day 0'),
    ):
        fortnight.run()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kinds", [RATES, IMAGES], ids=["limits by rate", "images"])
def test_no_publisher_with_a_reader_of_its_own_finds_a_fault_in_a_fortnight(
    kinds: Sequence[Kind], tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    rows, faults = scored(tmp_path, instance, server, kinds)
    assert faults == []
    assert all(row.requests >= 14 for row in rows.values()), "each was asked at least once a day"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_publisher_finds_a_fault_in_a_fortnight(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer
) -> None:
    rows, faults = scored(tmp_path, instance, server, OTHERS)
    assert faults == []
    assert len(rows) >= 77
    assert all(row.requests >= 14 for row in rows.values()), "each was asked at least once a day"
    assert rows["both"].conditional == rows["both"].requests - 1
    assert rows["both"].not_modified > rows["both"].bodies
    apart = {name: row.apart for name, row in rows.items() if row.apart}
    assert apart == {
        "304 for ever": 1,
        "304 for ever, then errors": 1,
        "304 for a week": 6,
        "one ETag for ever": 1,
    }
