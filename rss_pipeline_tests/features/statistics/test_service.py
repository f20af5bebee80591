"""Figures for people, from counts to totals, rankings and means; and days of a time zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rss_pipeline.features.statistics import service
from rss_pipeline.features.statistics.service import (
    days_until_today,
    midnight,
    shifts_of,
    weeks_until_today,
    zone_named,
)
from rss_pipeline.features.statistics.sql import Came, DayWindow, PublishedHours, VisitDay

FIRST = date(2026, 11, 2)
WINDOW = DayWindow(first=FIRST, step=1, begins=[datetime(2026, 11, 2, tzinfo=UTC)], shifts=[])


def came(feed: str, **counts: int) -> Came:
    """`came("a", d0=2)`: two items on the first day."""
    return Came(feed_id=feed, counts={int(name[1:]): n for name, n in counts.items()})


def test_every_day_until_today_is_there_and_today_is_not_over() -> None:
    found = service.steps(WINDOW, [came("a", d0=2, d2=1), came("b", d2=4)], today=FIRST + timedelta(days=3))
    assert [step.items for step in found] == [2, 0, 5, 0]
    assert [step.is_over for step in found] == [True, True, True, False]


def test_a_week_is_not_over_until_its_sunday_has_passed() -> None:
    weeks = DayWindow(first=FIRST, step=7, begins=WINDOW.begins, shifts=[])
    for days, over in [(13, False), (14, True)]:
        found = service.steps(weeks, [], today=FIRST + timedelta(days=days))
        assert (found[1].first, found[1].last) == (date(2026, 11, 9), date(2026, 11, 15))
        assert found[1].is_over == over


def test_a_mean_begins_with_the_first_day_that_has_an_item() -> None:
    today = FIRST + timedelta(days=9)
    found = service.steps(WINDOW, [came("a", d4=3, d9=9)], today=today)
    assert service.average_since(found, today=today) == (FIRST + timedelta(days=4), 2.0)
    assert service.average_since(service.steps(WINDOW, [], today=today), today=today) == (FIRST, 0.0)


def test_few_feeds_are_all_in_one_list() -> None:
    found = service.ranking([came("b", d0=1), came("a", d0=5, d1=1)], ["a", "b", "c"], steps=2)
    assert [(feed.feed_id, feed.items, feed.by_step) for feed in found.most] == [
        ("a", 6, [5, 1]),
        ("b", 1, [1, 0]),
    ]
    assert (found.least, found.between, found.silent) == ([], 0, ["c"])


def test_of_many_feeds_the_busiest_and_the_quietest_are_listed_and_the_others_counted() -> None:
    ids = [f"f{number}" for number in range(50)]
    found = service.ranking([came(id, d0=number + 1) for number, id in enumerate(ids)], ids, steps=1)
    assert [feed.items for feed in found.most] == list(range(50, 30, -1))
    assert [feed.items for feed in found.least] == list(range(1, 11))
    assert found.between == 20


def test_a_feed_that_is_no_longer_subscribed_is_in_no_list() -> None:
    found = service.ranking([came("gone", d0=5)], ["a"], steps=1)
    assert (found.most, found.silent) == ([], ["a"])


def test_days_without_a_visit_are_there() -> None:
    visit = VisitDay(day=FIRST, news=1, unchanged=2, failed=3)
    found = service.visits_by_day([visit], until=FIRST + timedelta(days=1), days=3)
    assert [(day.day.day, day.news) for day in found] == [(1, 0), (2, 1), (3, 0)]


def test_the_busiest_hour_is_the_first_of_those_with_most_items() -> None:
    counts = {(4, 9): 7, (1, 9): 7, (0, 20): 3}
    found = PublishedHours(counts=counts, undated=0, at_midnight=0)
    assert service.busiest_hour(found) == (1, 9, 7)
    assert service.share_by_day(found) == 14 / 17
    nothing = PublishedHours(counts={}, undated=3, at_midnight=0)
    assert service.busiest_hour(nothing) is None
    assert service.share_by_day(nothing) == 0


# Days of a time zone, and its offsets between two instants.

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
