"""The holds that hosts request: how long they are, whom they hold, and that no request is made before."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.fetch.holds import Holds, next_hold
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.hold import FeedHold, HostHold, OnHold
from rss_pipeline.collector.schedule.next_visit import next_after_failure, next_after_hold
from rss_pipeline_tests.collector.fetch.rounds import NOW, POLICY, RSS, InstantPace, feed
from rss_pipeline_tests.support.server import Answer, FeedServer

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
A, B = "127.0.0.2", "127.0.0.3"


@dataclass
class Turned:
    """A clock."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


def before(times: int, until: datetime = NOW) -> HostHold:
    return HostHold(host="a", until=until, reason="before", times=times)


@pytest.mark.parametrize(
    ("retry_after", "times", "wanted"),
    [
        (60, 0, MINUTE),
        (3600, 0, HOUR),
        (86_400, 0, HOUR),
        (86_400, 1, DAY),
        (7200, 1, 2 * HOUR),
        (60, 9, MINUTE),
        (None, 0, 15 * MINUTE),
        (0, 0, 15 * MINUTE),
        (None, 1, 30 * MINUTE),
        (None, 2, HOUR),
        (None, 6, 16 * HOUR),
        (None, 7, DAY),
        (None, 5000, DAY),
    ],
)
def test_a_pause_is_an_hour_at_most_unless_it_comes_again(
    retry_after: int | None, times: int, wanted: timedelta
) -> None:
    known = before(times) if times else None
    hold = next_hold("a", 429, retry_after, before=known, now=NOW)
    assert (hold.host, hold.until, hold.times) == ("a", NOW + wanted, times + 1)
    assert hold.reason.startswith("429 Too Many Requests with")


def test_an_answer_within_a_pause_is_the_same_pause_and_never_shortens_it() -> None:
    """Two connections to a host of images, or another run: neither says it a second time."""
    holds = Holds(lambda: NOW)
    holds.load([before(1, NOW + HOUR)])
    holds.feed_answered("f", "a", 429, 60)
    assert holds.active("a") == before(1, NOW + HOUR)
    holds.feed_answered("f", "a", 429, 7200)
    assert holds.active("a") == before(1, NOW + HOUR), "an hour at most: it did not come again"


def test_an_instant_is_rounded_up_for_the_stores_cut_it() -> None:
    late = NOW + timedelta(microseconds=1)
    assert next_hold("a", 429, 60, before=None, now=late).until == NOW + 61 * SECOND
    failure = Failure(kind="http_status", message="x", retry_after=7200)
    assert next_after_failure(feed("http://a/"), failure, now=late).at == NOW + 7201 * SECOND


def test_a_503_that_says_how_long_holds_its_feed_and_the_host_when_two_feeds_say_so() -> None:
    clock = Turned()
    holds = Holds(clock)
    holds.feed_answered("one", "a", 503, 600)
    holds.feed_answered("one", "a", 503, 600)
    assert holds.active("a") is None, "the same feed twice is one feed"
    clock.now += 10 * MINUTE
    holds.feed_answered("two", "a", 503, 600)
    assert holds.active("a") is None, "the first one's time was over"
    clock.now += 9 * MINUTE
    holds.feed_answered("three", "b", 503, 600)
    assert holds.active("b") is None, "another host's"
    holds.feed_answered("one", "a", 503, 7200)
    hold = holds.active("a")
    assert hold is not None
    assert hold.until == clock.now + HOUR
    news = holds.changes()
    assert news.hosts == [hold]
    assert [(each.feed_id, each.until) for each in news.feeds][-1] == ("one", clock.now + 2 * HOUR)
    assert holds.changes().is_empty


def test_a_503_of_another_round_counts() -> None:
    holds = Holds(lambda: NOW)
    holds.load([], [FeedHold(feed_id="one", host="a", until=NOW + MINUTE, reason="503")])
    holds.feed_answered("two", "a", 503, 600)
    assert holds.active("a") is not None


@pytest.mark.parametrize("status", [200, 301, 304, 403, 404, 410, 500, 502, 503])
def test_nothing_else_holds_a_host(status: int) -> None:
    holds = Holds(lambda: NOW)
    retry_after = None if status == 503 else 600
    for id in "xyz":
        holds.feed_answered(id, "a", status, retry_after)
    assert holds.active("a") is None
    assert holds.changes().is_empty


@pytest.mark.parametrize(("status", "recovered"), [(200, ["a"]), (301, ["a"]), (404, ["a"]), (500, [])])
def test_a_host_that_answers_as_usual_after_its_pause_has_recovered(
    status: int, recovered: list[str]
) -> None:
    clock = Turned()
    holds = Holds(clock)
    holds.load([before(3, NOW + HOUR)])
    holds.feed_answered("f", "a", 200, None)
    assert holds.changes().is_empty, "what was asked before does not end its pause"
    clock.now += HOUR
    holds.feed_answered("f", "a", status, None)
    assert holds.changes().recovered == recovered
    holds.feed_answered("f", "a", 429, 86_400)
    hold = holds.active("a")
    assert hold is not None
    assert hold.times == (2 if recovered else 4), "one good answer does not make it the first again"
    assert hold.until == clock.now + DAY


def test_holds_of_feeds_are_obeyed_by_images_and_not_the_other_way_round() -> None:
    images = Holds(lambda: NOW)
    images.load([], foreign=[before(1, NOW + HOUR)])
    assert images.active("a") is not None
    images.image_answered("b", 503, 60, first_host="c")
    assert [hold.host for hold in images.changes().hosts] == ["b", "c"]
    assert images.changes().feeds == []


def test_a_feed_that_was_not_requested_is_next_when_the_hold_is_over_and_says_so() -> None:
    hold = next_hold("a.example", 429, 3600, before=None, now=NOW)
    later = next_after_hold(feed("http://b/", id="x"), hold, now=NOW)
    assert NOW + HOUR <= later.at <= NOW + HOUR + 2 * MINUTE
    assert later.reason == (
        "a.example is on hold until 2026-02-18T09:30:00Z: 429 Too Many Requests with a wait of 1 h: on "
        "hold for 1 h"
    )
    assert len({next_after_hold(feed("http://b/", id=str(n)), hold, now=NOW).at for n in range(40)}) > 10


def test_a_feed_of_a_host_that_is_held_for_longer_than_its_backoff_comes_after_it() -> None:
    failure = Failure(kind="rate_limited", message="x", status=429, host="a")
    hold = before(3, NOW + 4 * HOUR)
    later = next_after_failure(feed("http://a/"), failure, now=NOW, hold=hold)
    assert later.at == hold.until
    assert "a is on hold until" in later.reason


def test_a_host_that_answers_429_gets_no_other_request_whatever_way_it_comes(
    server: FeedServer, tmp_path: Path
) -> None:
    busy = server.route(B, "/busy", Answer(status=429, headers={"Retry-After": "600"}))
    fine = server.route(B, "/fine", Answer(body=RSS))
    direct = [feed(busy, id="direct"), feed(fine, id="other")]
    led = [
        feed(server.route(A, f"/{n}", Answer(status=302, headers={"Location": fine})), id=f"led-{n}")
        for n in range(2)
    ]
    holds = Holds(lambda: NOW)

    def ask(feeds: list[Feed]) -> list[object]:
        jobs = [(one, Access()) for one in feeds]
        return [
            *fetch_feeds(
                jobs, policy=POLICY, spool=tmp_path, clock=lambda: NOW, pace=InstantPace(), holds=holds
            )
        ]

    [first] = ask(direct[:1])
    assert isinstance(first, Failure)
    asked = len(server.asked(B))
    outcomes = ask([*led, direct[1]])
    assert [outcome for outcome in outcomes if isinstance(outcome, OnHold)] == outcomes
    assert {outcome.hold.until for outcome in outcomes if isinstance(outcome, OnHold)} == {NOW + 10 * MINUTE}
    assert len(server.asked(B)) == asked
    assert len(server.asked(A)) == 2


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry-After": "600"}, 10 * MINUTE),
        (429, {}, 15 * MINUTE),
        (429, {"Retry-After": "86400"}, DAY),
        (503, {"Retry-After": "600"}, 10 * MINUTE),
    ],
)
def test_a_feed_that_leads_to_another_host_s_refusal_is_held_itself_and_that_host_is_not(
    server: FeedServer, tmp_path: Path, status: int, headers: dict[str, str], wait: timedelta
) -> None:
    """Otherwise whoever writes a redirect decides which hosts no one visits."""
    busy = server.route(B, "/busy", Answer(status=status, headers=headers))
    led = server.route(A, "/led", Answer(status=302, headers={"Location": busy}))
    again = server.route(A, "/again", Answer(status=302, headers={"Location": busy}))
    holds = Holds(lambda: NOW)
    # Another feed of that host has to wait: with a direct 503 the host would be on hold.
    holds.load([], [FeedHold(feed_id="other", host=B, until=NOW + MINUTE, reason="503")])
    jobs = [(feed(url, id=id), Access()) for id, url in (("led", led), ("again", again))]
    fetch_feeds(jobs, policy=POLICY, spool=tmp_path, clock=lambda: NOW, pace=InstantPace(), holds=holds)
    assert (holds.active(A), holds.active(B)) == (None, None)
    changes = holds.changes()
    assert list(changes.hosts) == []
    # The second one waits by the address to which both lead, without a request.
    assert {(hold.feed_id, hold.until - NOW) for hold in changes.feeds} == {("led", wait)}
    assert len(server.asked(B)) == 1


H = TypeVar("H", HostHold, FeedHold)


def stored(hold: H) -> H:
    """As it comes back from the stores, which cut fractions of a second."""
    return replace(hold, until=datetime.fromisoformat(instant(hold.until)))


ANSWERS = st.sampled_from(
    [
        (200, None),
        (304, None),
        (404, None),
        (500, None),
        (429, None),
        (429, 0),
        (429, 90),
        (429, 4000),
        (429, 86_400),
        (503, None),
        (503, 30),
        (503, 10_000),
    ]
)
VISITS = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from("ab"),
        ANSWERS,
        st.integers(0, 50_000_000_000),
        st.booleans(),
    ),
    max_size=30,
)


@given(VISITS)
def test_no_request_comes_before_its_host_s_pause_is_over_whatever_they_answer(
    visits: list[tuple[str, str, tuple[int, int | None], int, bool]],
) -> None:
    """The rule in other words: after a 429 its host gets no request for as long as it says, an hour at most;
    the run's memory is lost and read again at any moment."""
    clock = Turned()
    holds = Holds(clock)
    kept_hosts: dict[str, HostHold] = {}
    kept_feeds: dict[str, FeedHold] = {}
    told: dict[str, datetime] = {}
    told_feeds: dict[str, datetime] = {}
    for id, host, (status, retry_after), passed, restarts in visits:
        clock.now += timedelta(microseconds=passed)
        if restarts:
            holds = Holds(clock)
            holds.load(kept_hosts.values(), kept_feeds.values())
        mine = kept_feeds.get(id)
        if holds.active(host) is not None or (mine is not None and mine.until > clock.now):
            continue
        assert clock.now >= told.get(host, NOW)
        assert clock.now >= told_feeds.get(id, NOW)
        holds.feed_answered(id, host, status, retry_after)
        if status == 429:
            wait = timedelta(seconds=min(retry_after, 3600)) if retry_after else 15 * MINUTE
            told[host] = clock.now + wait
        if status in {429, 503} and retry_after:
            told_feeds[id] = clock.now + timedelta(seconds=retry_after)
        news = holds.changes()
        kept_hosts.update((hold.host, stored(hold)) for hold in news.hosts)
        kept_feeds.update((hold.feed_id, stored(hold)) for hold in news.feeds)
        for gone in news.recovered:
            del kept_hosts[gone]
        in_force = [hold for hold in kept_hosts.values() if hold.until > clock.now]
        assert all(hold.until <= clock.now + DAY + SECOND for hold in in_force)
