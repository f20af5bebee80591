"""Days of a time zone, and its offsets between two instants."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rss_pipeline.features.statistics.zones import (
    days_until_today,
    midnight,
    shifts_of,
    weeks_until_today,
    zone_named,
)

NOW = datetime(2026, 11, 4, 23, 30, tzinfo=UTC)
HOUR = 3600


@pytest.mark.parametrize(
    "name", [None, "", "Nowhere/City", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 5_000, "a\0b", "ü"]
)
def test_what_is_no_name_of_a_zone_is_utc(name: str | None) -> None:
    assert zone_named(name).key == "UTC"


def test_a_zone_has_its_name() -> None:
    assert zone_named("Asia/Kathmandu").key == "Asia/Kathmandu"


def test_the_days_until_today_are_those_of_the_zone() -> None:
    # In Berlin it is the fifth already.
    window = days_until_today(NOW, ZoneInfo("Europe/Berlin"), days=30)
    assert window.first == date(2026, 10, 7)
    assert window.since == datetime(2026, 10, 6, 22, tzinfo=UTC)


def test_weeks_begin_on_monday_and_the_last_one_has_today_in_it() -> None:
    window = weeks_until_today(NOW, ZoneInfo("UTC"), weeks=2)
    assert (window.first, window.step) == (date(2026, 10, 26), 7)


@pytest.mark.parametrize("name", ["Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe", "UTC"])
def test_the_offset_of_every_half_hour_of_a_year_is_that_of_the_zone(name: str) -> None:
    zone, since = ZoneInfo(name), NOW - timedelta(days=366)
    shifts = shifts_of(zone, since, NOW)
    at = since
    while at < NOW:
        shift = next(seconds for start, seconds in reversed(shifts) if start <= at)
        assert timedelta(seconds=shift) == at.astimezone(zone).utcoffset()
        at += timedelta(minutes=30)


def test_a_change_of_the_clocks_is_found_to_the_minute() -> None:
    zone = ZoneInfo("Europe/Berlin")
    since = midnight(date(2026, 10, 20), zone)
    assert shifts_of(zone, since, NOW) == [(since, 2 * HOUR), (datetime(2026, 10, 25, 1, tzinfo=UTC), HOUR)]
