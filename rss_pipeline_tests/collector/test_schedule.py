"""When a feed comes back: the rules as tables, and that the reason tells the inputs."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models import (
    FAILURE_KINDS,
    NETWORK_KINDS,
    Failure,
    FailureKind,
    Feed,
    GivenBack,
    NextVisit,
    NotModified,
    Response,
)
from rss_pipeline.collector.schedule import (
    duration,
    host_hold,
    next_after_failure,
    next_after_not_modified,
    next_after_our_outage,
    next_after_success,
    our_network_is_down,
    usual_gap,
)

NOW = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)  # a Wednesday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def feed(**fields: object) -> Feed:
    known: dict[str, object] = {"id": "f", "url": "http://a.example/feed", "host": "a.example"}
    return Feed(**{**known, **fields})  # type: ignore[arg-type]


def every(gap: timedelta, *, count: int = 10, newest: timedelta = MINUTE) -> tuple[datetime, ...]:
    return tuple(NOW - newest - gap * number for number in range(count))


def visit(id: str = "f", **inputs: object) -> NextVisit:
    registered = {"id": id, "interval": inputs.pop("interval", None)}
    known: dict[str, object] = {
        "max_age": None,
        "ttl": None,
        "rhythm": (),
        "skip_hours": frozenset(),
        "skip_days": frozenset(),
    }
    return next_after_success(feed(**registered), now=NOW, **{**known, **inputs})  # type: ignore[arg-type]


def near(delay: timedelta, wanted: timedelta) -> bool:
    return abs(delay - wanted) <= wanted * 0.03 + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("rhythm", "wanted"),
    [
        ((), HOUR),
        (every(HOUR, count=1), HOUR),
        (every(3 * HOUR), 90 * MINUTE),
        (every(HOUR), 30 * MINUTE),
        (every(20 * MINUTE), 15 * MINUTE),
        (every(MINUTE, count=200), 15 * MINUTE),
        (every(DAY), 2 * HOUR),
        (every(3 * HOUR, newest=13 * DAY), 90 * MINUTE),
        (every(3 * HOUR, newest=14 * DAY), 2 * HOUR),
        (every(3 * HOUR, newest=28 * DAY), 4 * HOUR),
        (every(3 * HOUR, newest=84 * DAY), 12 * HOUR),
        (every(3 * HOUR, newest=500 * DAY), DAY),
        (every(3 * HOUR, count=1, newest=28 * DAY), 4 * HOUR),
        # Announcements of the future are neither rhythm nor life.
        ((*every(DAY, count=20, newest=-20 * DAY), *every(3 * HOUR)), 90 * MINUTE),
        ((NOW + 9 * DAY, *every(3 * HOUR, newest=28 * DAY)), 4 * HOUR),
        # Ten at once, once a day, is a daily feed.
        (tuple(at + n * MINUTE for at in every(4 * HOUR, newest=HOUR) for n in range(10)), 2 * HOUR),
    ],
)
def test_auto_is_half_the_usual_gap_within_bounds(rhythm: tuple[datetime, ...], wanted: timedelta) -> None:
    assert near(visit(rhythm=rhythm).at - NOW, wanted)


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        ({"interval": 30 * MINUTE}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "rhythm": every(DAY, newest=300 * DAY)}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "max_age": 600}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "max_age": 0}, 30 * MINUTE),
        ({"interval": 30 * MINUTE, "max_age": 7200}, 2 * HOUR),
        ({"interval": 30 * MINUTE, "ttl": 3 * HOUR}, 3 * HOUR),
        ({"interval": 30 * MINUTE, "ttl": 3 * HOUR, "max_age": 7200}, 3 * HOUR),
        ({"interval": 30 * MINUTE, "ttl": HOUR, "max_age": 7200}, 2 * HOUR),
        ({"interval": 30 * MINUTE, "max_age": 2**31}, DAY),
        ({"interval": 90 * DAY}, DAY),
        ({"rhythm": every(3 * HOUR), "max_age": 7200}, 2 * HOUR),
    ],
)
def test_the_registrys_interval_is_lengthened_by_what_the_server_asks(
    inputs: dict[str, object], wanted: timedelta
) -> None:
    for number in range(50):
        delay = visit(f"feed-{number}", **dict(inputs)).at - NOW
        assert near(delay, wanted)
        assert delay <= DAY
        asked = max(timedelta(seconds=inputs.get("max_age", 0)), inputs.get("ttl", timedelta(0)))  # type: ignore[arg-type, call-overload]
        assert delay >= min(asked, DAY)


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


def test_the_reason_tells_the_inputs() -> None:
    assert visit("feed-1", rhythm=every(3 * HOUR), max_age=7200).reason == (
        "auto: half the usual gap of 3 h between items is 1 h 30 min; the server asks max-age 2 h; "
        "spread +3.0 %"
    )
    assert "feeds.yaml: every 30 min" in visit(interval=30 * MINUTE).reason
    assert "silent for 28 d" in visit(rhythm=every(3 * HOUR, newest=28 * DAY)).reason


def test_a_304_goes_by_what_the_stored_document_said() -> None:
    stored = feed(rhythm=every(3 * HOUR), ttl=5 * HOUR, skip_hours=frozenset({13}))
    got = next_after_not_modified(stored, now=NOW, max_age=None)
    assert datetime(2026, 2, 18, 14, tzinfo=UTC) <= got.at < datetime(2026, 2, 18, 14, 10, tzinfo=UTC)


@given(
    st.integers(0, 2**31) | st.none(),
    st.timedeltas(timedelta(0), timedelta(days=99999)) | st.none(),
    st.lists(st.timedeltas(-365 * DAY, 20_000 * DAY).map(lambda age: NOW - age)),
    st.frozensets(st.integers(0, 23)),
    st.frozensets(st.integers(0, 6)),
    st.text(),
)
def test_it_is_never_more_than_a_day_nor_in_the_past(
    max_age: int | None,
    ttl: timedelta | None,
    rhythm: list[datetime],
    hours: frozenset[int],
    days: frozenset[int],
    id: str,
) -> None:
    got = visit(id, max_age=max_age, ttl=ttl, rhythm=rhythm, skip_hours=hours, skip_days=days)
    assert NOW + 14 * MINUTE < got.at <= NOW + DAY


def test_the_usual_gap_is_the_median() -> None:
    times = [NOW - HOUR * hours for hours in (1, 2, 3, 99)]
    assert usual_gap(times, now=NOW) == HOUR
    assert usual_gap(times[:1], now=NOW) is None


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
    got = next_after_failure(
        feed(consecutive_failures=failures), Failure(kind="timeout", message="x"), now=NOW
    )
    assert got.at - NOW == wanted
    assert got.reason == f"failure {failures + 1} in a row (timeout): {duration(wanted)}"


def test_backoff_after_ten_thousand_failures() -> None:
    got = next_after_failure(feed(consecutive_failures=10_000), Failure(kind="dns", message="x"), now=NOW)
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
    assert next_after_failure(feed(consecutive_failures=failures), failure, now=NOW).at - NOW == wanted


def test_after_our_own_outage_five_minutes() -> None:
    assert next_after_our_outage(NOW).at - NOW == 5 * MINUTE


def failed(kind: FailureKind = "connect") -> Failure:
    return Failure(kind=kind, message="x")


def on(host: str, *, answered: bool = True) -> Feed:
    return feed(host=host, host_answered=answered)


OK = NotModified(
    response=Response(status=304, requested_url="x", url="x", fetched_at=NOW, fetch_ms=1),
)


@pytest.mark.parametrize(
    ("name", "outcomes", "down"),
    [
        ("nothing was asked", [], False),
        ("three hosts", [(on(h), failed()) for h in "abc"], True),
        ("two hosts, three feeds", [(on(h), failed()) for h in "abb"], False),
        ("dead before", [(on(h, answered=False), failed()) for h in "abcd"], False),
        (
            "two alive, many dead",
            [(on(h), failed()) for h in "ab"] + [(on(h, answered=False), failed()) for h in "cdef"],
            False,
        ),
        ("one answered", [*[(on(h), failed()) for h in "abc"], (on("d"), OK)], False),
        ("one 404", [*[(on(h), failed()) for h in "abc"], (on("d"), failed("http_status"))], False),
        (
            "a refused address",
            [*[(on(h), failed()) for h in "abc"], (on("d"), failed("blocked_address"))],
            True,
        ),
        ("only refused addresses", [(on(h), failed("blocked_address")) for h in "abc"], False),
        ("a bad certificate is an answer", [(on(h), failed("tls")) for h in "abc"], False),
        ("given back", [*[(on(h), failed()) for h in "abc"], (on("d"), GivenBack())], True),
        ("all given back", [(on(h), GivenBack()) for h in "abc"], False),
        ("mixed network kinds", [(on(k), failed(k)) for k in sorted(NETWORK_KINDS)], True),  # type: ignore[arg-type]
    ],
)
def test_our_network_is_down_when_living_hosts_fail_all_at_once(
    name: str, outcomes: list[tuple[Feed, NotModified | Failure | GivenBack]], down: bool
) -> None:
    assert our_network_is_down(outcomes) is down


@pytest.mark.parametrize(
    ("retry_after", "wanted"),
    [(None, 15 * MINUTE), (0, 15 * MINUTE), (60, MINUTE), (3600, HOUR), (86_400, HOUR)],
)
def test_a_429_holds_its_host_for_an_hour_at_most(retry_after: int | None, wanted: timedelta) -> None:
    failure = Failure(kind="rate_limited", message="x", status=429, retry_after=retry_after)
    hold = host_hold(failure, host="a.example", now=NOW)
    assert hold is not None
    assert (hold.host, hold.until) == ("a.example", NOW + wanted)
    assert "429" in hold.reason


def test_a_429_after_a_redirect_holds_the_host_that_said_it() -> None:
    failure = Failure(kind="challenge", message="x", status=429, host="b.example")
    hold = host_hold(failure, host="a.example", now=NOW)
    assert hold is not None
    assert hold.host == "b.example"


def test_nothing_else_holds_a_host() -> None:
    for kind in FAILURE_KINDS - {"rate_limited"}:
        failure = Failure(kind=kind, message="x", status=503, retry_after=99)  # type: ignore[arg-type]
        assert host_hold(failure, host="a.example", now=NOW) is None


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
