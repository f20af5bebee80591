"""Items that were probably missed: which documents can show it, and how the interval follows."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rss_pipeline.collector.models.feed import Feed, GapHistory, NextVisit
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.collector.schedule import gaps
from rss_pipeline.collector.schedule.next_visit import next_after_success
from rss_pipeline_tests.collector.fetch.rounds import NOW, feed
from rss_pipeline_tests.support.feeds import amend

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def known(**fields: Any) -> Feed:
    """A feed with a document of ten items that was stored an hour ago, as long as was planned."""
    return feed(
        "http://a.example/",
        **{"items_listed": 10, "last_success_at": NOW - HOUR, "planned_at": NOW, **fields},
    )


def test_a_document_of_new_items_in_its_time_shows_a_gap() -> None:
    assert gaps.may_show_gap(known(), items=10, now=NOW)
    assert gaps.may_show_gap(known(items_listed=2), items=2, now=NOW + HOUR)


@pytest.mark.parametrize(
    ("fields", "items"),
    [
        ({"items_listed": None, "last_success_at": None, "planned_at": None}, 10),
        ({"items_listed": None}, 10),
        ({"items_listed": 0}, 10),
        ({}, 0),
        ({"items_listed": 1}, 1),
        ({"items_listed": 1}, 10),
        ({}, 1),
        ({"in_a_row": 1}, 10),
        ({"last_success_at": NOW - 3 * HOUR, "planned_at": NOW - 2 * HOUR}, 10),
        ({"last_success_at": NOW - 7 * DAY, "planned_at": NOW - 6 * DAY}, 10),
        ({"planned_at": None}, 10),
    ],
    ids=[
        "the first one ever",
        "not known what was before",
        "filled again",
        "emptied",
        "only the latest item, each time",
        "grown from one",
        "shrunk to one",
        "after failures",
        "late",
        "away for a week",
        "restored",
    ],
)
def test_others_show_nothing(fields: dict[str, Any], items: int) -> None:
    assert not gaps.may_show_gap(known(**fields), items=items, now=NOW)


def test_a_visit_by_hand_before_its_time_is_in_time() -> None:
    assert gaps.may_show_gap(known(planned_at=NOW + 20 * HOUR), items=10, now=NOW)


def with_gap(before: Feed, at: datetime) -> Feed:
    """The feed after a document at `at` that shows a gap."""
    return amend(before, gaps=gaps.after_gap(before, now=at), last_success_at=at)


def planned(one: Feed, at: datetime = NOW, updates: tuple[datetime, ...] = ()) -> NextVisit:
    return next_after_success(one, PublisherHints(updates=updates), now=at)


def test_each_gap_in_a_row_halves_the_interval_down_to_15_minutes() -> None:
    one = known()
    delays = [planned(one).at - NOW]
    for hours in range(4):
        one = with_gap(one, NOW + hours * HOUR)
        delays.append(planned(one, NOW + hours * HOUR).at - (NOW + hours * HOUR))
    rounded = [round(delay / timedelta(minutes=1)) for delay in delays]
    assert rounded[0] == pytest.approx(60, abs=2)
    assert rounded[1] == pytest.approx(30, abs=1)
    assert rounded[2:] == pytest.approx([15, 15, 15], abs=0.5)
    assert min(delays) >= timedelta(minutes=15)
    assert one.schedule.gaps.halvings == gaps.MOST_HALVINGS


def test_it_says_so() -> None:
    once = with_gap(known(), NOW)
    assert planned(once).reason == (
        "every 30 min: its rhythm is not known yet; halved once, because items were probably missed"
    )
    twice = with_gap(once, NOW + HOUR)
    assert "every 15 min: its rhythm is not known yet; halved twice, " in planned(twice, NOW + HOUR).reason


def test_a_week_without_a_gap_takes_one_halving_back_and_three_all() -> None:
    one = known()
    for hours in range(5):
        one = with_gap(one, NOW + hours * HOUR)
    last = NOW + 4 * HOUR
    assert [gaps.halvings(one.schedule.gaps, now=last + weeks * 7 * DAY) for weeks in range(5)] == [
        3,
        2,
        1,
        0,
        0,
    ]
    assert gaps.halvings(one.schedule.gaps, now=last + 7 * DAY - HOUR) == 3
    assert planned(one, last + 21 * DAY).reason == planned(known(), last + 21 * DAY).reason


def test_a_clock_that_was_set_back_recovers_nothing() -> None:
    assert gaps.halvings(GapHistory(halvings=2, halved_at=NOW + DAY), now=NOW) == 2


def test_an_edition_that_replaces_everything_once_a_day_is_not_chased() -> None:
    """Halved once, it is visited a dozen times and more between two editions: no visit more would help."""
    one = with_gap(known(), NOW)
    for days in range(1, 7):
        at = NOW + days * DAY
        one = with_gap(amend(one, last_success_at=at - HOUR / 2), at)
        assert (one.schedule.gaps.halvings, one.schedule.gaps.halved_at) == (1, NOW)
        assert one.schedule.gaps.count == days + 1
    assert gaps.halvings(one.schedule.gaps, now=NOW + 7 * DAY) == 0


def test_a_feed_that_is_too_fast_for_its_visits_is_halved_again_also_a_day_later() -> None:
    one = with_gap(known(), NOW)
    again = with_gap(amend(one, last_success_at=NOW + 6 * HOUR), NOW + 8 * HOUR)
    assert again.schedule.gaps.halvings == 2


def test_an_interval_that_feeds_yaml_names_stays() -> None:
    fixed = known(interval=2 * HOUR, halvings=3, halved_at=NOW)
    assert planned(fixed) == planned(amend(fixed, halvings=0))


def test_what_the_server_requests_still_counts() -> None:
    one = with_gap(known(), NOW)
    asked = next_after_success(one, PublisherHints(max_age=7200), now=NOW)
    assert asked.at - NOW >= 2 * HOUR
