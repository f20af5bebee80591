"""The next visit of a feed: the rules as tables, and that the reason has the inputs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import duration, rough
from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.models.feed import Feed, NextVisit
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.collector.schedule.next_visit import (
    after_skipped_hours,
    next_after_failure,
    next_after_our_outage,
    next_after_success,
    next_after_unreadable_registry,
)
from rss_pipeline_tests.support.feeds import make_feed

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)  # a Wednesday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def feed(**fields: Any) -> Feed:
    known = {"id": "f", "url": "http://a.example/feed", "host": "a.example"}
    return make_feed(**{**known, **fields})


def every(gap: timedelta, *, count: int = 10, newest: timedelta = MINUTE) -> tuple[datetime, ...]:
    return tuple(NOW - newest - gap * number for number in range(count))


def visit(id: str = "f", **inputs: object) -> NextVisit:
    """The next visit of a feed with these hints, `interval` and `retry_after`."""
    names = ("interval", "wished_interval", "auto_is_wished")
    registered = {"id": id, **{name: inputs.pop(name) for name in names if name in inputs}}
    retry_after = inputs.pop("retry_after", None)
    hints = PublisherHints(**inputs)  # type: ignore[arg-type]
    return next_after_success(feed(**registered), hints, now=NOW, retry_after=retry_after)  # type: ignore[arg-type]


def near(delay: timedelta, wanted: timedelta) -> bool:
    return abs(delay - wanted) <= wanted * 0.03 + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        ({"interval": 30 * MINUTE}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "updates": every(DAY, newest=300 * DAY)}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "max_age": 600}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "max_age": 0}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "max_age": 7200}, 2 * HOUR),
        ({"interval": 30 * MINUTE, "ttl": 3 * HOUR}, 3 * HOUR),
        ({"interval": 30 * MINUTE, "ttl": 3 * HOUR, "max_age": 7200}, 3 * HOUR),
        ({"interval": 30 * MINUTE, "ttl": HOUR, "max_age": 7200}, 2 * HOUR),
        ({"interval": 30 * MINUTE, "max_age": 2**31}, DAY),
        ({"interval": 30 * MINUTE, "retry_after": 7200}, 2 * HOUR),
        ({"interval": 30 * MINUTE, "retry_after": 7200, "ttl": 3 * HOUR}, 3 * HOUR),
        ({"interval": 90 * DAY}, DAY),
        ({"updates": every(3 * HOUR), "max_age": 7200}, 2 * HOUR),
        ({"updates": every(3 * HOUR), "max_age": 10_000}, timedelta(seconds=10_000)),
        ({"updates": every(30 * DAY, newest=2 * HOUR), "max_age": 7200}, 2 * HOUR),
        # Nor does the spread lead below a wish that the interval is only just longer than.
        ({"interval": 60 * MINUTE, "max_age": 3599}, HOUR),
        ({"interval": 60 * MINUTE, "ttl": HOUR}, HOUR),
    ],
)
def test_an_interval_is_lengthened_by_what_the_server_requests(
    inputs: dict[str, object], wanted: timedelta
) -> None:
    for number in range(50):
        delay = visit(f"feed-{number}", **dict(inputs)).at - NOW
        assert near(delay, wanted)
        assert delay <= DAY
        asked = max(timedelta(seconds=inputs.get("max_age", 0)), inputs.get("ttl", timedelta(0)))  # type: ignore[arg-type, call-overload]
        assert delay >= min(asked, DAY)


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        ({"wished_interval": 30 * MINUTE}, 30 * MINUTE),
        ({"wished_interval": DAY}, DAY),
        ({"wished_interval": MINUTE}, 15 * MINUTE),
        ({"wished_interval": 30 * MINUTE, "max_age": 7200}, 2 * HOUR),
        ({"wished_interval": 30 * MINUTE, "retry_after": 7200}, 2 * HOUR),
        ({"wished_interval": 30 * MINUTE, "interval": 10 * MINUTE}, 10 * MINUTE),
        ({"wished_interval": 30 * MINUTE, "interval": DAY}, 30 * MINUTE),
        ({"wished_interval": DAY, "auto_is_wished": True}, HOUR),
        ({"wished_interval": 30 * MINUTE, "auto_is_wished": True}, 30 * MINUTE),
    ],
)
def test_the_shortest_interval_that_anybody_wishes_counts_and_the_server_is_above_it(
    inputs: dict[str, Any], wanted: timedelta
) -> None:
    """`auto` visits a feed of an unknown rhythm each hour."""
    assert near(visit(**inputs).at - NOW, wanted)


def test_the_spread_is_a_few_per_cent_of_its_own_for_each_feed() -> None:
    delays = [visit(f"feed-{number}", interval=100 * MINUTE).at - NOW for number in range(300)]
    assert delays == [visit(f"feed-{number}", interval=100 * MINUTE).at - NOW for number in range(300)]
    assert min(delays) >= 97 * MINUTE
    assert max(delays) <= 103 * MINUTE
    assert len(set(delays)) > 40


@pytest.mark.parametrize(
    ("hours", "days", "wanted"),
    [
        ({9}, set(), NOW),
        ({10}, set(), datetime(2026, 2, 18, 11, tzinfo=UTC)),
        ({10, 11, 12}, set(), datetime(2026, 2, 18, 13, tzinfo=UTC)),
        (set(range(10, 24)), set(), datetime(2026, 2, 19, 0, tzinfo=UTC)),
        (set(), {2}, datetime(2026, 2, 19, 0, tzinfo=UTC)),
        ({0, 1}, {2}, datetime(2026, 2, 19, 2, tzinfo=UTC)),
        (set(), {2, 3, 4}, NOW + DAY),
        (set(range(24)), set(), NOW),
        (set(), set(range(7)), NOW),
    ],
)
def test_hours_and_days_to_skip_move_it_to_the_next_allowed_hour(
    hours: set[int], days: set[int], wanted: datetime
) -> None:
    """At 08:30, due two hours later at about 10:30."""
    got = visit(interval=2 * HOUR, skip_hours=frozenset(hours), skip_days=frozenset(days))
    if wanted == NOW:
        assert near(got.at - NOW, 2 * HOUR)
    elif wanted == NOW + DAY:
        assert got.at == wanted
    else:
        assert wanted <= got.at < wanted + 10 * MINUTE
        assert "skipHours" in got.reason


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"interval": 30 * MINUTE}, "every 30 min: set by the operator"),
        ({"interval": HOUR}, "every hour: set by the operator"),
        ({"interval": HOUR, "wished_interval": 30 * MINUTE}, "every 30 min: wished by a subscriber"),
        ({}, "every hour: its rhythm is not known yet"),
        ({"updates": every(3 * HOUR)}, "every 16 min at this hour: 10 items in the last 27 h"),
        (
            {"updates": every(3 * HOUR), "max_age": 7200},
            "every 2 h: the server requests max-age 2 h; without that every 16 min at this hour:"
            " 10 items in the last 27 h",
        ),
        ({"updates": every(MINUTE)}, "every 15 min (the shortest): 10 items in the last 10 min"),
        (
            {"updates": every(7 * DAY, newest=5 * HOUR)},
            "every 2 h (the longest while items come): 10 items in the last 2 months",
        ),
        ({"updates": every(3 * HOUR, newest=28 * DAY)}, "every 4 h: nothing new for 28 days"),
        ({"updates": every(3 * HOUR, newest=6 * 366 * DAY)}, "once a day: nothing new for 6 years"),
        (
            {"interval": HOUR, "ttl": 90 * DAY, "retry_after": 7200},
            "once a day: the server requests ttl 90 d and Retry-After 2 h, but no feed waits longer;"
            " without that every hour: set by the operator",
        ),
        (
            {"interval": 2 * HOUR, "skip_hours": frozenset({10})},
            "every 2 h: set by the operator; skipHours/skipDays of the feed",
        ),
    ],
)
def test_the_reason_is_a_plain_sentence_with_the_inputs(inputs: dict[str, object], reason: str) -> None:
    assert visit("feed-1", **inputs).reason == reason


def test_the_spread_leads_away_from_the_bounds_of_auto() -> None:
    for number in range(100):
        assert visit(f"feed-{number}", updates=every(MINUTE)).at - NOW >= 15 * MINUTE
        assert visit(f"feed-{number}", updates=every(30 * DAY)).at - NOW <= 2 * HOUR
        assert visit(f"feed-{number}", updates=every(HOUR, newest=400 * DAY)).at - NOW <= DAY


def test_the_reason_is_a_line_that_status_and_the_event_have_room_for() -> None:
    for gap in (MINUTE, HOUR, 5 * HOUR, DAY, 30 * DAY):
        reason = visit(
            updates=every(gap),
            max_age=86_399,
            ttl=23 * HOUR,
            skip_hours=frozenset({7}),
            skip_days=frozenset({3}),
        ).reason
        assert reason.isascii()
        assert reason.isprintable()
        assert len(reason) < 250


def test_a_304_goes_by_what_the_stored_document_said() -> None:
    stored = PublisherHints(updates=every(3 * HOUR), ttl=5 * HOUR, skip_hours=frozenset({13}))
    got = next_after_success(feed(hints=stored), replace(stored, max_age=None), now=NOW)
    assert datetime(2026, 2, 18, 14, tzinfo=UTC) <= got.at < datetime(2026, 2, 18, 14, 10, tzinfo=UTC)


@given(
    st.integers(0, 2**31) | st.none(),
    st.timedeltas(timedelta(0), timedelta(days=99999)) | st.none(),
    st.lists(st.timedeltas(-365 * DAY, 20_000 * DAY).map(lambda age: NOW - age)),
    st.frozensets(st.integers(0, 23)),
    st.frozensets(st.integers(0, 6)),
    st.text(),
)
def test_the_bounds_hold_for_every_feed_and_no_wish_is_ignored(
    max_age: int | None,
    ttl: timedelta | None,
    updates: list[datetime],
    hours: frozenset[int],
    days: frozenset[int],
    id: str,
) -> None:
    got = visit(id, max_age=max_age, ttl=ttl, updates=tuple(updates), skip_hours=hours, skip_days=days)
    assert NOW + 15 * MINUTE <= got.at <= NOW + DAY
    asked = max(timedelta(seconds=max_age or 0), ttl or timedelta(0))
    assert got.at >= NOW + min(asked, DAY) - timedelta(seconds=1)
    if asked:
        assert got.not_before is not None
        assert timedelta(0) <= got.not_before - (NOW + min(asked, DAY)) < timedelta(seconds=1)
    else:
        assert got.not_before is None
    if got.at < NOW + DAY and len(hours) < 24 and len(days) < 7:
        assert got.at.hour not in hours
        assert got.at.weekday() not in days
    # Nothing of it but a wish or silence makes a feed wait for more than two hours.
    explained = ("nothing new for", "the server requests", "skipHours")
    assert got.at <= NOW + 2 * HOUR or any(said in got.reason for said in explained)
    assert got.reason.startswith(("every ", "once a day"))


@pytest.mark.parametrize(
    ("failures", "wanted"),
    [
        (0, HOUR / 2),
        (1, HOUR),
        (2, 2 * HOUR),
        (3, 4 * HOUR),
        (4, 8 * HOUR),
        (5, 16 * HOUR),
        (6, DAY),
        (7, DAY),
    ],
)
def test_backoff_doubles_from_half_an_hour_to_a_day_exactly(failures: int, wanted: timedelta) -> None:
    got = next_after_failure(feed(in_a_row=failures), Failure(kind="timeout", message="x"), now=NOW)
    assert got.at - NOW == wanted
    assert got.reason == f"failure {failures + 1} in a row: {duration(wanted)}"


def test_backoff_after_ten_thousand_failures() -> None:
    got = next_after_failure(feed(in_a_row=10_000), Failure(kind="dns", message="x"), now=NOW)
    assert got.at - NOW == DAY


@pytest.mark.parametrize(
    ("kind", "failures", "retry_after", "wanted"),
    [
        ("http_status", 0, 7200, 2 * HOUR),
        ("http_status", 0, 60, HOUR / 2),
        ("http_status", 3, 7200, 4 * HOUR),
        ("rate_limited", 0, 86_400, DAY),
        ("rate_limited", 0, 999_999, DAY),
        ("gone", 0, None, DAY),
        ("challenge", 0, None, 6 * HOUR),
        ("challenge", 4, None, 8 * HOUR),
        ("challenge", 0, 36_000, 10 * HOUR),
    ],
)
def test_what_lengthens_a_backoff(
    kind: FailureKind, failures: int, retry_after: int | None, wanted: timedelta
) -> None:
    failure = Failure(kind=kind, message="x", retry_after=retry_after)
    assert next_after_failure(feed(in_a_row=failures), failure, now=NOW).at - NOW == wanted


def test_after_our_own_outage_pauses_double_up_to_an_hour() -> None:
    pauses = [next_after_our_outage(feed(outage_pauses=n), NOW).at - NOW for n in (0, 1, 2, 3, 4, 5, 5000)]
    assert pauses == [5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 40 * MINUTE, HOUR, HOUR, HOUR]
    after_redirect = next_after_our_outage(feed(), NOW, retry_after=7200)
    assert after_redirect.at == NOW + 2 * HOUR


def test_while_feeds_yaml_cannot_be_read_a_feed_with_a_password_comes_again_in_five_minutes() -> None:
    later = next_after_unreadable_registry(NOW)
    assert (later.at - NOW, later.kind) == (5 * MINUTE, "unreadable_registry")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(0), "0 s"),
        (45 * timedelta(seconds=1), "45 s"),
        (90 * MINUTE, "1 h 30 min"),
        (DAY, "24 h"),
        (DAY + HOUR, "25 h"),
        (14 * DAY, "14 d"),
        (HOUR + timedelta(seconds=5), "1 h 5 s"),
    ],
)
def test_durations_read_like_sentences(value: timedelta, text: str) -> None:
    assert duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-HOUR, "0 min"),
        (119 * MINUTE, "119 min"),
        (2 * HOUR, "2 h"),
        (47 * HOUR, "47 h"),
        (2 * DAY, "2 days"),
        (59 * DAY, "59 days"),
        (60 * DAY, "2 months"),
        (729 * DAY, "24 months"),
        (730 * DAY, "2 years"),
        (6 * 366 * DAY, "6 years"),
    ],
)
def test_rough_durations_have_one_unit(value: timedelta, text: str) -> None:
    assert rough(value) == text


def test_no_instant_is_cut_to_a_second_that_comes_before_it() -> None:
    """Stores keep whole seconds: a day after 08:30:00.7 is not 08:30:00."""
    now = NOW + timedelta(milliseconds=700)
    failure = Failure(kind="http_status", message="x", status=500)
    for at in (
        next_after_failure(feed(), failure, now=now).at,
        next_after_success(feed(interval=HOUR), PublisherHints(max_age=86_400), now=now).at,
    ):
        assert at.microsecond == 0
        assert at - now >= 30 * MINUTE


@pytest.mark.parametrize(
    ("planned", "wanted"),
    [
        (None, 30 * MINUTE),
        (-HOUR, 30 * MINUTE),
        (10 * MINUTE, 30 * MINUTE),
        (5 * HOUR, 5 * HOUR),
        # From a wrong clock: it heals at the claim, and must not be prolonged here.
        (30 * DAY, 30 * MINUTE),
    ],
)
def test_a_refresh_by_hand_that_fails_brings_the_next_visit_no_nearer(
    planned: timedelta | None, wanted: timedelta
) -> None:
    failure = Failure(kind="http_status", message="x", status=500)
    known = feed(next_fetch_at=None if planned is None else NOW + planned)
    got = next_after_failure(known, failure, now=NOW)
    assert got.at - NOW == wanted
    assert ("not before it was due" in got.reason) is (wanted == planned)


@pytest.mark.parametrize(
    ("hours", "days", "visited", "wanted"),
    [
        ({}, {}, HOUR, None),
        ({7, 9}, {1}, HOUR, None),
        ({8}, {}, HOUR, 30 * MINUTE),
        ({8, 9, 10}, {}, HOUR, 150 * MINUTE),
        ({}, {2}, HOUR, 15 * HOUR + 30 * MINUTE),
        ({}, {2}, 20 * HOUR, 4 * HOUR),
        ({8}, {}, 24 * HOUR, None),
        (set(range(24)), {}, HOUR, None),
        ({8}, {}, None, None),
    ],
)
def test_a_late_visit_is_after_skipped_hours_where_it_would_come_in_an_hour_to_be_skipped(
    hours: set[int], days: set[int], visited: timedelta | None, wanted: timedelta | None
) -> None:
    """It is Wednesday, 08:30. At most until 24 h after the last visit."""
    known = feed(
        hints=PublisherHints(skip_hours=frozenset(hours), skip_days=frozenset(days)),
        last_visited_at=None if visited is None else NOW - visited,
    )
    got = after_skipped_hours(known, now=NOW)
    if wanted is None:
        assert got is None
    else:
        assert got is not None
        assert timedelta(0) <= got.at - NOW - wanted < 10 * MINUTE
