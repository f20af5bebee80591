"""Figures for people: from counts to totals, rankings and means."""

from datetime import UTC, date, datetime, timedelta

from rss_pipeline.features.statistics import figures
from rss_pipeline.storage.subscriptions.activity import Came, Published, VisitDay, Window

FIRST = date(2026, 11, 2)
WINDOW = Window(first=FIRST, step=1, begins=[datetime(2026, 11, 2, tzinfo=UTC)], shifts=[])


def came(feed: str, **counts: int) -> Came:
    """`came("a", d0=2)`: two items on the first day."""
    return Came(feed_id=feed, counts={int(name[1:]): n for name, n in counts.items()})


def test_every_day_until_today_is_there_and_today_is_not_over() -> None:
    found = figures.steps(WINDOW, [came("a", d0=2, d2=1), came("b", d2=4)], today=FIRST + timedelta(days=3))
    assert [step.items for step in found] == [2, 0, 5, 0]
    assert [step.is_over for step in found] == [True, True, True, False]


def test_a_week_is_not_over_until_its_sunday_has_passed() -> None:
    weeks = Window(first=FIRST, step=7, begins=WINDOW.begins, shifts=[])
    for days, over in [(13, False), (14, True)]:
        found = figures.steps(weeks, [], today=FIRST + timedelta(days=days))
        assert (found[1].first, found[1].last) == (date(2026, 11, 9), date(2026, 11, 15))
        assert found[1].is_over == over


def test_a_mean_begins_with_the_first_day_that_has_an_item() -> None:
    today = FIRST + timedelta(days=9)
    found = figures.steps(WINDOW, [came("a", d4=3, d9=9)], today=today)
    assert figures.average_since(found, today=today) == (FIRST + timedelta(days=4), 2.0)
    assert figures.average_since(figures.steps(WINDOW, [], today=today), today=today) == (FIRST, 0.0)


def test_few_feeds_are_all_in_one_list() -> None:
    found = figures.ranking([came("b", d0=1), came("a", d0=5, d1=1)], ["a", "b", "c"], steps=2)
    assert [(feed.feed_id, feed.items, feed.by_step) for feed in found.most] == [
        ("a", 6, [5, 1]),
        ("b", 1, [1, 0]),
    ]
    assert (found.least, found.between, found.silent) == ([], 0, ["c"])


def test_of_many_feeds_the_busiest_and_the_quietest_are_listed_and_the_others_counted() -> None:
    ids = [f"f{number}" for number in range(50)]
    found = figures.ranking([came(id, d0=number + 1) for number, id in enumerate(ids)], ids, steps=1)
    assert [feed.items for feed in found.most] == list(range(50, 30, -1))
    assert [feed.items for feed in found.least] == list(range(1, 11))
    assert found.between == 20


def test_a_feed_that_is_no_longer_subscribed_is_in_no_list() -> None:
    found = figures.ranking([came("gone", d0=5)], ["a"], steps=1)
    assert (found.most, found.silent) == ([], ["a"])


def test_days_without_a_visit_are_there() -> None:
    visit = VisitDay(day=FIRST, news=1, unchanged=2, failed=3)
    found = figures.visits_by_day([visit], until=FIRST + timedelta(days=1), days=3)
    assert [(day.day.day, day.news) for day in found] == [(1, 0), (2, 1), (3, 0)]


def test_the_busiest_hour_is_the_first_of_those_with_most_items() -> None:
    counts = {(4, 9): 7, (1, 9): 7, (0, 20): 3}
    found = Published(counts=counts, undated=0, at_midnight=0)
    assert figures.busiest_hour(found) == (1, 9, 7)
    assert figures.share_by_day(found) == 14 / 17
    nothing = Published(counts={}, undated=3, at_midnight=0)
    assert figures.busiest_hour(nothing) is None
    assert figures.share_by_day(nothing) == 0
