"""When a clean removes nothing until a person confirms it. The cleans are in test_wrong_clock.py."""

from datetime import timedelta

import pytest

from rss_pipeline.pipeline.retention.refusal import Extent, refusal
from rss_pipeline_tests.support.pipeline import NOON

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("silence", "refused"),
    [(0, False), (3, False), (3.001, True), (181, True), (-181, False), (None, True)],
)
def test_a_clock_more_than_three_days_after_the_last_visit_is_not_believed(
    silence: float | None, refused: bool
) -> None:
    last = None if silence is None else NOON - silence * DAY
    why = refusal(Extent(now=NOON, last_visit=last, items_due=1, items=1))
    assert (why is not None) == refused


@pytest.mark.parametrize(
    ("due", "items", "refused"),
    [
        (999, 999, False),
        (1_000, 1_000, True),
        (1_000, 5_000, False),
        (1_001, 5_000, True),
        (20_000, 10**6, False),
    ],
)
def test_more_than_a_fifth_at_once_is_not_believed_from_a_thousand_on(
    due: int, items: int, refused: bool
) -> None:
    why = refusal(Extent(now=NOON, last_visit=NOON, items_due=due, items=items))
    assert (why is not None) == refused


def test_a_refusal_says_what_was_found_and_what_to_do() -> None:
    silent = refusal(Extent(now=NOON, last_visit=NOON - 181 * DAY, items_due=1, items=1)) or ""
    many = refusal(Extent(now=NOON, last_visit=NOON, items_due=1_300, items=1_400)) or ""
    assert "181 d before (2025-09-02T12:00:00Z)" in silent
    assert "1,300 of 1,400 items" in many
    for text in (silent, many):
        assert "rss-pipeline clean --yes" in text
        assert "2026-03-02T12:00:00Z" in text
