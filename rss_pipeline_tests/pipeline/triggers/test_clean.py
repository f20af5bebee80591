"""The start of a clean, case by case."""

from datetime import timedelta

import pytest

from rss_pipeline.pipeline.triggers.daily import (
    DailyRun,
    decide_again,
    decide_daily,
)
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline_tests.support.pipeline import NOON


def run(state: str, minutes: float = 60, *, unfinished: bool = False, refused: bool = False) -> DailyRun:
    """A run made so many minutes ago."""
    made = NOON - timedelta(minutes=minutes)
    return DailyRun(
        run_id="r" * 12, state=state, created_at=made, is_unfinished=unfinished, is_refused=refused
    )


CASES: dict[str, tuple[list[DailyRun], type, type]] = {
    "there was none yet": ([], Start, Wait),
    "the last one finished": ([run("succeeded")], Start, Wait),
    "the last one left something": ([run("succeeded", unfinished=True)], Start, Start),
    "one left something and the next did not": (
        [run("succeeded"), run("succeeded", 120, unfinished=True)],
        Start,
        Wait,
    ),
    "the last one failed": ([run("failed"), run("succeeded", 120)], Start, Start),
    "the last one removed nothing until it is confirmed": ([run("failed", refused=True)], Start, Wait),
    "it failed and was made good": ([run("succeeded"), run("failed", 120)], Start, Wait),
    "a restart cancelled it": ([run("canceled")], Start, Start),
    "one waits in the queue, for however long": ([run("queued", 9_000)], Wait, Wait),
    "one is starting": ([run("waiting", 1), run("failed")], Wait, Wait),
    "one is running": ([run("running", 29), run("failed")], Wait, Wait),
    "one was running and was killed with its machine": ([run("running", 30)], Start, Start),
    "one was running before the clock was put back": ([run("running", -1_200)], Start, Start),
    "one is running behind another that failed": ([run("failed", 5), run("running", 9)], Wait, Wait),
}


@pytest.mark.parametrize(("runs", "by_day", "by_hour"), CASES.values(), ids=CASES)
def test_a_clean_starts_by_day_and_by_hour(runs: list[DailyRun], by_day: type, by_hour: type) -> None:
    assert (type(decide_daily(runs, now=NOON)), type(decide_again(runs, now=NOON))) == (by_day, by_hour)
