"""The start of a purge: once a day, also by a machine that sleeps at night."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.pipeline.triggers.daily import (
    DailyRun,
    decide_once_a_day,
    latest,
)
from rss_pipeline.pipeline.triggers.runs import Start, Wait

FOUR = time(4, 0)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def run(hours_ago: float, state: str = "succeeded", *, unfinished: bool = False) -> DailyRun:
    created = NOON - timedelta(hours=hours_ago)
    return DailyRun(run_id="a-run-of-it", state=state, created_at=created, is_unfinished=unfinished)


@pytest.mark.parametrize(
    ("runs", "starts"),
    [
        ([], True),  # A new home: what was lost with the old one is reported again.
        ([run(7.9)], False),  # After four o'clock.
        ([run(8.1)], True),  # Before, so it was yesterday's.
        ([run(7, unfinished=True)], True),
        ([run(7, "failed")], True),
        ([run(7, "canceled")], True),
        ([run(0.4, "running")], False),
        ([run(0.6, "running")], True),  # Killed with its machine.
        ([run(9, "queued")], False),
        ([run(7), run(8, "failed")], False),
    ],
)
def test_one_a_day_and_another_where_it_did_not_finish(runs: list[DailyRun], starts: bool) -> None:
    decided = decide_once_a_day(runs, now=NOON, at=FOUR, timezone="UTC")
    assert isinstance(decided, Start if starts else Wait)


@given(
    st.integers(0, 20 * 365 * 24 * 60).map(lambda minutes: NOON + timedelta(minutes=minutes)),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Tokyo", "America/Los_Angeles"]),
)
def test_the_last_time_it_was_that_late_is_at_most_a_day_ago(now: datetime, at: time, timezone: str) -> None:
    # An hour more on the day on which clocks are set back.
    assert timedelta(0) <= now - latest(now, at=at, timezone=timezone) <= timedelta(hours=25)
