"""The interval of `auto`: what it makes of a rhythm, and the bounds that hold for every rhythm."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.schedule.auto_interval import (
    LONGEST,
    LONGEST_ALIVE,
    PATIENCE,
    SHORTEST,
    SILENT_AFTER,
    UNKNOWN,
    auto_interval,
)

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)  # a Wednesday
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

AGES = st.lists(st.timedeltas(-365 * DAY, 9_000 * DAY), max_size=25)


def every(gap: timedelta, *, count: int = 20, newest: timedelta = MINUTE) -> tuple[datetime, ...]:
    return tuple(NOW - newest - gap * number for number in range(count))


def daily(*hours: float, days: int = 10) -> tuple[datetime, ...]:
    """Items at these UTC hours of each of the last days, this one's included where they have come."""
    midnight = NOW.replace(hour=0, minute=0)
    times = [midnight - DAY * day + HOUR * hour for day in range(days) for hour in hours]
    return tuple(sorted((at for at in times if at <= NOW), reverse=True)[:20])


def interval(rhythm: tuple[datetime, ...], *, at: datetime = NOW) -> timedelta:
    return auto_interval(rhythm, now=at).interval


@pytest.mark.parametrize(
    ("rhythm", "wanted"),
    [
        ((), UNKNOWN),
        (every(HOUR, count=1), UNKNOWN),
        (every(MINUTE), SHORTEST),
        (every(20 * MINUTE), SHORTEST),
        (every(30 * DAY), LONGEST_ALIVE),
        (every(3 * HOUR, newest=14 * DAY), 2 * HOUR),
        (every(3 * HOUR, newest=28 * DAY), 4 * HOUR),
        (every(3 * HOUR, newest=84 * DAY), 12 * HOUR),
        (every(3 * HOUR, newest=500 * DAY), DAY),
        (every(3 * HOUR, count=1, newest=28 * DAY), 4 * HOUR),
        # Announcements of the future are neither rhythm nor life.
        ((*every(DAY, newest=-20 * DAY), NOW + SECOND), UNKNOWN),
        ((NOW + 9 * DAY, *every(3 * HOUR, newest=28 * DAY)), 4 * HOUR),
    ],
)
def test_the_bounds_and_the_silent(rhythm: tuple[datetime, ...], wanted: timedelta) -> None:
    assert interval(rhythm) == wanted


@pytest.mark.parametrize("gap", [37 * MINUTE, 61 * MINUTE, 131 * MINUTE, 311 * MINUTE])
def test_a_feed_without_hours_is_visited_by_the_square_root_of_its_rate(gap: timedelta) -> None:
    """rate * interval^2 / 2 is what its items wait together: gaps that drift through the day are no hours."""
    wanted = (2 * PATIENCE / gap) ** 0.5 * gap
    assert interval(every(gap)) == pytest.approx(max(wanted, SHORTEST), rel=0.35)


def test_four_times_the_rate_is_twice_the_visits() -> None:
    often, seldom = interval(every(61 * MINUTE)), interval(every(4 * 61 * MINUTE))
    assert seldom / often == pytest.approx(2, rel=0.3)


@pytest.mark.parametrize(
    ("name", "hour", "wanted"),
    [
        ("at its hour", 14, (SHORTEST, 25 * MINUTE)),
        ("some time before it: about then", 12.5, (50 * MINUTE, 110 * MINUTE)),
        ("just after it", 15, (90 * MINUTE, LONGEST_ALIVE)),
        ("at night", 2, (90 * MINUTE, LONGEST_ALIVE)),
    ],
)
def test_a_daily_feed_is_visited_often_about_its_hour_and_seldom_else(
    name: str, hour: float, wanted: tuple[timedelta, timedelta]
) -> None:
    at = NOW.replace(hour=0, minute=0) + HOUR * hour
    shortest, longest = wanted
    assert shortest <= interval(daily(14, days=20), at=at) <= longest


def test_its_hour_may_lie_about_midnight() -> None:
    rhythm = daily(23.9, 0.1, days=10)
    assert interval(rhythm, at=NOW.replace(hour=23, minute=50)) == SHORTEST
    assert interval(rhythm, at=NOW.replace(hour=0, minute=5) + DAY) == SHORTEST


def test_a_batch_a_day_is_looked_for_at_its_hour_only() -> None:
    rhythm = tuple(at - MINUTE * number for at in daily(14, days=3) for number in range(10))[:20]
    assert interval(rhythm, at=NOW.replace(hour=13, minute=45)) == SHORTEST
    assert interval(rhythm, at=NOW.replace(hour=20)) >= 30 * MINUTE


def test_what_a_document_has_room_for_never_comes_between_two_visits() -> None:
    """At the rate of the newest items, at most half of a document of ten is new at the next visit."""
    for minutes in range(4, 600):
        rhythm = every(MINUTE * minutes, count=10)
        assert auto_interval(rhythm, now=NOW).interval / (MINUTE * minutes) <= 5


def test_its_reason_names_its_inputs() -> None:
    known = auto_interval(every(3 * HOUR, count=9, newest=HOUR), now=NOW)
    assert (known.items, known.span, known.silence) == (9, 25 * HOUR, HOUR)
    assert known.wait == known.interval
    assert 0 < known.expected < 1
    assert not known.is_silent
    assert auto_interval((), now=NOW).is_silent is False


@given(AGES)
def test_the_bounds_hold_for_every_rhythm(ages: list[timedelta]) -> None:
    got = auto_interval([NOW - age for age in ages], now=NOW)
    assert SHORTEST <= got.interval <= LONGEST
    assert got.is_silent or got.interval <= LONGEST_ALIVE
    assert got.expected >= 0


@given(AGES, st.timedeltas(timedelta(0), 400 * DAY), st.timedeltas(timedelta(0), 400 * DAY))
def test_the_longer_a_silence_the_longer_the_interval(
    ages: list[timedelta], earlier: timedelta, more: timedelta
) -> None:
    """From two weeks on, and never less than a living feed's longest; before, the hour of the day decides."""
    rhythm = [NOW - age for age in ages if age >= timedelta(0)] or [NOW]
    silent = max(rhythm) + SILENT_AFTER + earlier
    shorter = auto_interval(rhythm, now=silent).interval
    assert shorter <= auto_interval(rhythm, now=silent + more).interval
    assert shorter >= LONGEST_ALIVE


@given(AGES)
def test_the_order_of_the_rhythm_is_nothing_to_it(ages: list[timedelta]) -> None:
    rhythm = [NOW - age for age in ages]
    assert auto_interval(rhythm, now=NOW) == auto_interval(sorted(rhythm), now=NOW)


@given(st.lists(st.integers(0, 5 * 86_400), min_size=2, max_size=20), st.integers(0, 7 * 86_400))
def test_no_time_of_the_day_is_unlike_another(ages: list[int], later: int) -> None:
    """Midnight least of all: what is true of a feed is true of one with a day that begins some hours
    later."""
    shift = SECOND * later
    rhythm = [NOW - SECOND * age for age in ages]
    shifted = auto_interval([at + shift for at in rhythm], now=NOW + shift)
    assert abs(shifted.interval - auto_interval(rhythm, now=NOW).interval) < SECOND
