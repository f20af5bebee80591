"""Cleans that remove nothing until a person confirms it. The cleans are in test_wrong_clock.py."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from rss_pipeline.features.retention.refusal import Extent, Jump, ahead, jump, refusal
from rss_pipeline.storage.installation import FarDate
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
    why = refusal(Extent(now=NOON, last_visit=last, items_due=1, items=2))
    assert (why is not None) == refused


@pytest.mark.parametrize(
    ("due", "items", "refused"),
    [
        (999, 1_998, False),
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


@pytest.mark.parametrize(
    ("due", "items", "removed", "refused"),
    [
        (1, 1, 0, True),
        (1, 2, 0, False),
        (12, 20, 0, True),
        (10, 20, 0, False),
        (10, 20, 1, True),
        (1, 60, 58, False),
        (1, 60, 59, True),
        (0, 1, 50, False),
    ],
)
def test_more_than_half_of_a_small_store_does_not_go_at_once_nor_over_a_day(
    due: int, items: int, removed: int, refused: bool
) -> None:
    why = refusal(Extent(now=NOON, last_visit=NOON, items_due=due, items=items, removed=removed))
    assert (why is not None) == refused
    assert why is None or (f"{due} of {items}" in why and "rss-pipeline clean --yes" in why)


def test_more_than_half_of_what_was_there_before_the_clock_jumped_does_not_go_after_it() -> None:
    """Polls under the wrong clock made the store larger."""
    half = Extent(
        now=NOON,
        last_visit=NOON,
        items_due=10,
        items=100,
        jumped=Jump(NOON - 181 * DAY, NOON),
        items_before=20,
    )
    assert refusal(half) is None
    for more in (replace(half, items_due=11), replace(half, removed_since=1)):
        why = refusal(more) or ""
        assert "2025-09-02T12:00:00Z to 2026-03-02T12:00:00Z" in why
        assert "rss-pipeline clean --yes" in why


def test_a_week_without_a_visit_is_a_jump_for_three_weeks_or_until_a_person_confirms_it() -> None:
    today = NOON.date()

    def found(*ago: int, confirmed: datetime | None = None, now: datetime = NOON) -> tuple[date, date] | None:
        days = [today - n * DAY for n in ago]
        jumped = jump(days, now=now, confirmed=confirmed)
        return None if jumped is None else (jumped.before.date(), jumped.after.date())

    assert found(*range(28)) is None
    assert found() is None, "a new installation"
    assert found(0, 1, 7, 8) is None, "switched on at weekends only"
    assert found(0, 1, 8, 9) == (today - 7 * DAY, today - DAY)
    assert found(181) == (today - 180 * DAY, today), "visited by now, or not yet"
    assert found(*range(22), 40) == (today - 39 * DAY, today - 21 * DAY)
    assert found(*range(23), 40) is None, "days of the month before last that later visits do not replace"
    assert found(-180, 0, 1) is None, "a clock that was ahead and is right now"
    assert found(0, 181, confirmed=NOON) is None
    assert found(0, 181, confirmed=NOON + DAY) is not None, "by a clock that was ahead"


def test_a_refusal_says_what_was_found_and_what_to_do() -> None:
    silent = refusal(Extent(now=NOON, last_visit=NOON - 181 * DAY, items_due=1, items=2)) or ""
    many = refusal(Extent(now=NOON, last_visit=NOON, items_due=1_300, items=1_400)) or ""
    assert "181 d before (2025-09-02T12:00:00Z)" in silent
    assert "1,300 of 1,400 items" in many
    for text in (silent, many):
        assert "rss-pipeline clean --yes" in text
        assert "2026-03-02T12:00:00Z" in text


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ((5, 5.001, 5.005), 5),
        ((5, 5.001), None),
        ((5, 5.1, 6, 9, 40), None),
        ((1, 5, 5.001, 5.005, 40), 5),
    ],
)
def test_three_publishers_who_agree_are_believed_and_those_who_err_each_by_itself_are_not(
    said: tuple[float, ...], found: float | None
) -> None:
    dates = [FarDate(NOON, int(days * 86_400)) for days in said]
    one = ahead(dates, now=NOON, last_visit=NOON, confirmed=None)
    assert one == (None if found is None else found * DAY)
    for later in (
        ahead(dates, now=NOON, last_visit=NOON + DAY, confirmed=None),
        ahead(dates, now=NOON - DAY, last_visit=NOON - DAY, confirmed=None),
        ahead(dates, now=NOON, last_visit=NOON, confirmed=NOON),
        ahead(dates, now=NOON, last_visit=None, confirmed=None),
    ):
        assert later is None
