"""The gap that a host with a limit by rate needs is found from its 429, kept, and eased slowly."""

import asyncio
import heapq
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from rss_pipeline.collector.fetch.holds import Holds, LearnedGaps
from rss_pipeline.collector.fetch.pacing import Turns
from rss_pipeline.collector.models.hold import HostGap
from rss_pipeline_tests.collector.fetch.rounds import NOW, POLICY, InstantPace
from rss_pipeline_tests.support.pipeline import Clock

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def visited(
    hosts: list[str], *, every: timedelta, most: int, says_when: bool, days: int = 7
) -> Counter[tuple[int, bool]]:
    """By feed, its visits and refusals of all days but the first two. A feed is requested every two hours,
    after the hold and the gap of its host; all hosts together are allowed `most` requests in `every`."""
    clock = Clock(NOW)
    holds = Holds(clock)
    let_in = [NOW - DAY]
    due = [(NOW, number) for number in range(len(hosts))]
    found: Counter[tuple[int, bool]] = Counter()
    while clock() < NOW + days * DAY:
        at, number = heapq.heappop(due)
        host = hosts[number]
        free = [at, clock() + SECOND]
        if (learned := holds.gaps.of(host)) is not None:
            free.append(learned.asked_at + learned.gap)
        if (hold := holds.active(host)) is not None:
            free.append(hold.until)
        if max(free) > at:
            heapq.heappush(due, (max(free), number))
            continue
        clock.now = at
        let_in = [before for before in let_in if at - before < every]
        refused = len(let_in) >= most
        wait = None if not refused or not says_when else int((every - (at - let_in[0])).total_seconds()) + 1
        if not refused:
            let_in.append(at)
        holds.feed_answered(str(number), host, 429 if refused else 200, wait)
        holds.gaps.asked(host, now=at)
        again = max(30 * MINUTE, (wait or 0) * SECOND) if refused else 2 * HOUR
        heapq.heappush(due, (at + again, number))
        if at > NOW + 2 * DAY:
            found[number, refused] += 1
    return found


@pytest.mark.parametrize("says_when", [True, False])
@pytest.mark.parametrize(
    ("hosts", "every", "most"),
    [
        (["one.example"] * 20, MINUTE, 1),
        (["127.0.0.1"] * 20, MINUTE, 1),
        ([f"{n}.service.example" for n in range(20)], MINUTE, 2),
        (["one.example"] * 10, HOUR, 12),
    ],
    ids=["a host", "an address", "names of a domain", "a burst"],
)
def test_a_host_with_a_limit_refuses_little_once_it_is_known_and_serves_all_feeds_alike(
    hosts: list[str], every: timedelta, most: int, says_when: bool
) -> None:
    found = visited(hosts, every=every, most=most, says_when=says_when)
    refusals = sum(count for (_, refused), count in found.items() if refused)
    visits = [found[number, False] for number in range(len(hosts))]
    assert refusals < 0.05 * (sum(visits) + refusals)
    assert max(visits) < 3 * min(visits)
    assert min(visits) > 20


Answer = tuple[float, str, int, int | None]
"""Seconds, host, status, wait."""
FIRST: Answer = (0, "a.example", 200, None)
BUSY: Answer = (1, "a.example", 503, 60)


@pytest.mark.parametrize(
    ("name", "answers", "wanted"),
    [
        ("alone", [(0, "a.example", 429, None)], {}),
        ("long after another", [FIRST, (7200, "a.example", 429, None)], {}),
        ("right after another", [FIRST, (1, "a.example", 429, None)], {"a.example": 20}),
        ("that says when", [FIRST, (1, "a.example", 429, 60)], {"a.example": 66}),
        (
            "after ten",
            [*((n, "a.example", 200, None) for n in range(10)), (11, "a.example", 429, 600)],
            {"a.example": 66},
        ),
        (
            "of another name",
            [(0, "a.b.example", 200, None), (1, "c.b.example", 429, None)],
            {},
        ),
        ("of another domain", [FIRST, (1, "c.example", 429, None)], {}),
        ("of another address", [(0, "127.0.0.1", 200, None), (1, "127.0.0.2", 429, None)], {}),
        (
            "twice at once",
            [FIRST, (1, "a.example", 429, None), (2, "a.example", 429, None)],
            {"a.example": 20},
        ),
        (
            "503 between answers",
            [FIRST, BUSY, (70, "a.example", 200, None), (71, *BUSY[1:])],
            {"a.example": 66},
        ),
        ("503 once", [(1, *FIRST[1:]), BUSY], {}),
        ("503 that goes on", [FIRST, BUSY, (70, *BUSY[1:])], {}),
        (
            "503 for half an hour",
            [FIRST, *((n, "a.example", status, 1800) for n, status in ((1, 503), (1802, 200), (1803, 503)))],
            {},
        ),
        ("again", [FIRST, (1, "a.example", 429, None), (99, "a.example", 429, None)], {"a.example": 60}),
    ],
)
def test_a_gap_is_learned_from_a_429_that_other_requests_brought_about(
    name: str, answers: list[Answer], wanted: dict[str, float]
) -> None:
    gaps = LearnedGaps()
    for seconds, host, status, wait in answers:
        gaps.answered(host, status, wait, now=NOW + seconds * SECOND)
    assert {gap.host: pytest.approx(gap.gap.total_seconds()) for gap in gaps.changes()} == wanted


def test_a_gap_that_worked_is_kept_for_days_and_eased_by_a_tenth_a_day() -> None:
    gaps = LearnedGaps()
    gaps.load([HostGap(host="a", gap=100 * SECOND, since=NOW, asked_at=NOW)])
    seen = []
    for hours in range(0, 24 * 5, 2):
        gaps.answered("a", 200, None, now=NOW + hours * HOUR)
        gaps.asked("a", now=NOW + hours * HOUR)
        seen += [gap.gap.total_seconds() for gap in [gaps.of("a")] if gap]
    assert seen[:24] == [100] * 24
    assert seen[-1] == pytest.approx(72.9)
    gaps.answered("a", 429, None, now=NOW + 6 * DAY)
    gap = gaps.of("a")
    assert gap is not None
    assert gap.gap.total_seconds() == pytest.approx(72.9 * 1.25)
    for hours in range(7 * 24, 100 * 24, 2):
        gaps.answered("a", 200, None, now=NOW + hours * HOUR)
        gaps.asked("a", now=NOW + hours * HOUR)
    assert gaps.of("a") is None, "it is forgotten in the end"


def test_a_gap_of_a_host_with_few_requests_is_eased_by_them_and_not_by_the_time_between() -> None:
    """A burst of five every thirty hours, as of images that new items show, at a host that allows one a
    minute: each step of the easing that goes too far would be one answer in ten."""
    gaps, at, refusals = LearnedGaps(), NOW, 0
    gaps.load([HostGap(host="a", gap=MINUTE, since=NOW, asked_at=NOW)])
    for _ in range(200):
        for _ in range(5):
            gap = gaps.of("a")
            assert gap is not None
            gaps.answered("a", 429 if gap.gap < MINUTE else 200, None, now=(at := at + gap.gap))
            refusals += gap.gap < MINUTE
            gaps.asked("a", now=at)
        at += 30 * HOUR
    assert 0 < refusals < 0.05 * 1000


def test_a_redirect_from_elsewhere_slows_no_feed_of_a_host_that_answers_it() -> None:
    holds = Holds(Clock(NOW))
    holds.feed_answered("own", "big.example", 200, None)
    holds.feed_answered("led", "big.example", 429, 7200, url="https://big.example/", is_led=True)
    assert holds.gaps.of("big.example") is None
    for number in range(2):
        holds.feed_answered(f"led-{number}", "only-led.example", 200, None, is_led=True)
    holds.feed_answered("led", "only-led.example", 429, 7200, url="https://only-led.example/", is_led=True)
    assert holds.gaps.of("only-led.example") is not None


def test_one_name_that_refuses_slows_no_other_of_its_domain_and_two_do() -> None:
    clock = Clock(NOW)
    holds = Holds(clock)
    for visit in range(60):
        clock.turn(hours=1)
        for name in ("a", "b", "c"):
            holds.feed_answered(name, f"{name}.blogs.example", 200, None)
        holds.feed_answered("bad", "bad.blogs.example", 429 if visit % 2 else 200, None)
    assert holds.gaps.of("a.blogs.example") is None

    holds.feed_answered("worse", "worse.blogs.example", 429, None)
    learned = holds.gaps.of("a.blogs.example")
    assert learned is not None
    assert learned.is_shared
    clock.turn(hours=3)
    holds.feed_answered("a", "a.blogs.example", 200, None)
    holds.feed_answered("bad", "bad.blogs.example", 429, None)
    after = holds.gaps.of("a.blogs.example")
    assert after is not None
    assert after.gap == learned.gap, "one alone makes it no longer"


@pytest.mark.parametrize(("is_daily", "seconds"), [(False, 3600), (True, 60)])
def test_a_feed_gets_its_daily_visit_whatever_other_names_of_its_domain_say(
    is_daily: bool, seconds: float
) -> None:
    pace = InstantPace()
    holds = Holds(lambda: NOW)
    holds.load((), gaps=[HostGap(host=".blogs.example", gap=HOUR, since=NOW, asked_at=NOW)])
    turns = Turns(pace, policy=replace(POLICY, round_seconds=None), holds=holds, clock=lambda: NOW)

    async def take() -> None:
        async with turns.turn("a.blogs.example", begun=False, is_daily=is_daily):
            pass

    asyncio.run(take())
    assert sum(pace.slept) == seconds
