"""Many feeds at once: pacing, slots, the round's end, interrupts, and what one feed does to the others."""

import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.fetch.pacing import HostTaken, Pace
from rss_pipeline.collector.http.guarded_transport import Network
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotBegun, NotModified
from rss_pipeline.errors import InfrastructureError
from rss_pipeline_tests.collector.fetch.rounds import NOW, POLICY, RSS, InstantPace, feed, now
from rss_pipeline_tests.support.feeds import amend
from rss_pipeline_tests.support.server import Answer, FeedServer, Request
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


def feeds(server: FeedServer, host: str, count: int, answer: Answer) -> list[Feed]:
    urls = [server.route(host, f"/{number}", answer) for number in range(count)]
    return [feed(url, id=f"{host}-{number}") for number, url in enumerate(urls)]


def round_of(jobs: list[Feed], spool: Path, *, pace: Pace | None = None, **policy: Any) -> list[FetchOutcome]:
    return fetch_feeds(
        [(job, Access()) for job in jobs],
        policy=replace(POLICY, **policy),
        spool=spool,
        clock=now,
        pace=pace or InstantPace(),
    )


class Lapsing:
    """Other runs, of which one may have taken over after the second request."""

    def __init__(self, server: FeedServer) -> None:
        self._server = server

    def is_leased(self) -> bool:
        return len(self._server.requests) < 2

    def has_host(self, host: str) -> bool:
        return host in (A, "news.example")

    def take_host(self, host: str) -> HostTaken:
        raise AssertionError(f"no redirect leads to {host}")

    def awaited_hosts(self) -> tuple[()]:
        return ()

    def release_hosts(self, hosts: object, unbegun: object) -> None:
        raise AssertionError("no host is awaited")


def test_a_round_with_a_lease_that_has_lapsed_makes_no_more_requests(
    server: FeedServer, tmp_path: Path
) -> None:
    jobs = feeds(server, A, 5, Answer(body=RSS))
    outcomes = fetch_feeds(
        [(job, Access()) for job in jobs],
        policy=POLICY,
        spool=tmp_path,
        clock=now,
        pace=InstantPace(),
        other_runs=Lapsing(server),
    )
    assert [type(each) for each in outcomes] == [Document, Document, NotBegun, NotBegun, NotBegun]
    assert outcomes[4] == NotBegun(
        reason="this run was stopped for so long that another one may visit its host"
    )
    assert len(server.requests) == 2


def test_a_lease_that_lapses_while_a_connection_is_made_ends_the_request(
    server: FeedServer, tmp_path: Path
) -> None:
    """A run that is stopped there (SIGSTOP, a laptop that sleeps) goes on when another run visits it."""
    server.route(A, "/feed", Answer(body=RSS))
    lapsed: list[str] = []

    class Others(Lapsing):
        def is_leased(self) -> bool:
            return not lapsed

    async def resolve(host: str, port: int) -> list[str]:
        lapsed.append(host)
        return [A]

    (outcome,) = fetch_feeds(
        [(feed(f"http://news.example:{server.port}/feed"), Access())],
        policy=replace(POLICY, network=Network(resolve)),
        spool=tmp_path,
        clock=now,
        pace=InstantPace(),
        other_runs=Others(server),
    )
    assert lapsed == ["news.example"]
    assert isinstance(outcome, NotBegun)
    assert outcome.reason == "this run was stopped for so long that another one may visit its host"
    assert server.requests == []


def test_outcomes_come_in_the_order_of_the_jobs_and_each_is_reported(
    server: FeedServer, tmp_path: Path
) -> None:
    good = server.route(A, "/good", Answer(body=RSS, delay=0.05))
    jobs = [
        feed(good, id="good"),
        feed(server.route(A, "/gone", Answer(status=410)), id="gone"),
        feed(server.route(B, "/same", Answer(body=RSS, etag='"1"')), id="same", etag='"1"'),
        feed("nonsense", id="nonsense"),
    ]
    told: dict[str, FetchOutcome] = {}
    threads = set()

    def note(feed: Feed, outcome: FetchOutcome) -> None:
        told[feed.id] = outcome
        threads.add(threading.current_thread())

    outcomes = fetch_feeds(
        [(job, Access()) for job in jobs],
        policy=POLICY,
        spool=tmp_path,
        clock=now,
        pace=InstantPace(),
        on_done=note,
    )

    assert [type(outcome) for outcome in outcomes] == [Document, Failure, NotModified, Failure]
    assert told == {job.id: outcome for job, outcome in zip(jobs, outcomes, strict=True)}
    assert threads == {threading.current_thread()}
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_no_jobs_no_outcomes(tmp_path: Path) -> None:
    assert round_of([], tmp_path) == []


def test_a_host_is_left_alone_for_a_second_after_each_request(server: FeedServer, tmp_path: Path) -> None:
    pace = InstantPace()
    seen: list[float] = []

    def answer(request: Request) -> Answer:
        seen.append(pace.time)
        pace.time += 5.0  # the request itself takes five seconds: the pause counts from its end
        return Answer(body=RSS)

    jobs = [feed(server.route(A, f"/{number}", answer), id=str(number)) for number in range(4)]
    round_of(jobs, tmp_path, pace=pace)
    assert seen == [1000.0, 1006.0, 1012.0, 1018.0]


@pytest.mark.slow
def test_in_real_time_too_and_one_connection_at_a_time(server: FeedServer, tmp_path: Path) -> None:
    jobs = feeds(server, A, 4, Answer(body=RSS, delay=0.1))
    round_of(jobs, tmp_path, pace=Pace(), host_delay=0.1, concurrency=5)
    arrived = [request.arrived for request in server.requests]
    # From start to start 0.2 s at least: a pause that began with the request would make it 0.1.
    assert all(later - earlier > 0.15 for earlier, later in itertools.pairwise(arrived))
    assert server.most_open[A] == 1


def test_the_pause_holds_from_one_round_to_the_next(server: FeedServer, tmp_path: Path) -> None:
    pace = InstantPace()
    [job] = feeds(server, A, 1, Answer(body=RSS))
    round_of([job], tmp_path, pace=pace)
    round_of([job], tmp_path, pace=pace)
    assert pace.slept == [pytest.approx(1.0)]


def test_all_ports_of_an_address_are_one_host(server: FeedServer, tmp_path: Path) -> None:
    pace = InstantPace()
    with FeedServer() as other:
        jobs = [*feeds(server, A, 1, Answer(body=RSS)), *feeds(other, A, 1, Answer(body=RSS))]
        round_of(jobs, tmp_path, pace=pace)
    assert sum(pace.slept) == pytest.approx(1.0)


def test_no_more_hosts_at_once_than_the_policy_says(server: FeedServer, tmp_path: Path) -> None:
    slow = Answer(body=RSS, delay=0.03)
    jobs = [job for last in range(2, 14) for job in feeds(server, f"127.0.1.{last}", 1, slow)]
    round_of(jobs, tmp_path, concurrency=3)
    assert server.most_open[""] == 3


def test_a_user_with_many_slow_feeds_delays_no_one_elses(server: FeedServer, tmp_path: Path) -> None:
    slow = Answer(body=RSS, delay=0.2)
    quick = [feeds(server, f"127.0.0.{last}", 1, Answer(body=RSS))[0] for last in (90, 91, 92)]
    anns = [feeds(server, f"127.0.1.{last}", 1, slow)[0] for last in range(2, 27)]
    # At one host, ann's come first as well.
    shared = [
        amend(job, brought_by="ben" if n == 5 else "ann") for n, job in enumerate(feeds(server, A, 6, slow))
    ]
    jobs = [*(amend(job, brought_by="ann") for job in anns), *shared]
    jobs += [amend(job, brought_by="ben") for job in quick]
    outcomes = round_of(jobs, tmp_path, concurrency=5)
    assert [type(outcome) for outcome in outcomes] == [Document] * len(jobs)
    order = [(request.host, request.target) for request in server.requests]
    turns = [order.index((f"127.0.0.{last}", "/0")) for last in (90, 91, 92)]
    assert max(turns) < 15, "within the time of two of ann's"
    at_host = [target for host, target in order if host == A]
    assert at_host.index("/5") <= 1
    assert server.most_open[""] == 5, "a user who is alone has all slots"


def test_a_big_host_holds_no_slot_while_it_waits_for_its_turn(server: FeedServer, tmp_path: Path) -> None:
    """With one slot and a pause that never ends, the other hosts still get requests."""
    blocked = threading.Event()
    big = feeds(server, A, 3, Answer(body=RSS))
    small = [job for last in (3, 4, 5) for job in feeds(server, f"127.0.0.{last}", 1, Answer(body=RSS))]

    class Stuck(InstantPace):
        async def _sleep(self, seconds: float) -> None:
            # The big host's pause ends only when all the small ones have had theirs.
            while not blocked.is_set():
                await asyncio.sleep(0)
            await super()._sleep(seconds)

    def note(feed: Feed, outcome: FetchOutcome) -> None:
        done.add(feed.id)
        if {job.id for job in small} <= done:
            blocked.set()

    done: set[str] = set()
    outcomes = fetch_feeds(
        [(job, Access()) for job in [*big, *small]],
        policy=replace(POLICY, concurrency=1),
        spool=tmp_path,
        pace=Stuck(),
        on_done=note,
    )
    assert all(isinstance(outcome, Document) for outcome in outcomes)


def test_feeds_that_redirect_to_each_others_hosts_do_not_block_each_other(
    server: FeedServer, tmp_path: Path
) -> None:
    jobs = []
    for here, there in ((A, B), (B, A)):
        target = server.route(there, "/feed", Answer(body=RSS))
        for number in range(5):
            url = server.route(here, f"/old{number}", Answer(status=302, headers={"Location": target}))
            jobs.append(feed(url, id=f"{here}-{number}"))
    outcomes = round_of(jobs, tmp_path, concurrency=1)
    assert all(isinstance(outcome, Document) for outcome in outcomes)
    assert server.most_open[A] == server.most_open[B] == 1


def test_a_visit_under_way_passes_those_that_have_not_begun(server: FeedServer, tmp_path: Path) -> None:
    jobs = []
    for number in range(4):
        server.route(A, f"/new{number}", Answer(body=RSS))
        hop = Answer(status=301, headers={"Location": f"/new{number}"})
        jobs.append(feed(server.route(A, f"/old{number}", hop), id=str(number)))
    round_of(jobs, tmp_path)
    asked = [request.target for request in server.requests]
    # The second has its turn before the first comes back for its own second hop; then both go first.
    assert asked[:4] == ["/old0", "/old1", "/new0", "/new1"]


class TestTheRoundsEnd:
    def test_what_has_not_begun_is_released(self, server: FeedServer, tmp_path: Path) -> None:
        jobs = feeds(server, A, 10, Answer(body=RSS))
        outcomes = round_of(jobs, tmp_path, host_delay=10.0, round_seconds=25.0)
        kinds = [type(outcome) for outcome in outcomes]
        assert kinds == [Document] * 3 + [NotBegun] * 7
        assert len(server.requests) == 3
        assert isinstance(outcomes[9], NotBegun)
        assert "time" in (outcomes[9].reason or "")

    def test_no_pause_is_waited_for_that_ends_after_the_round(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        pace = InstantPace()
        round_of(
            feeds(server, A, 3, Answer(body=RSS)), tmp_path, pace=pace, host_delay=99.0, round_seconds=50.0
        )
        assert pace.slept == []

    def test_what_waits_for_a_slot_is_released_as_well(self, server: FeedServer, tmp_path: Path) -> None:
        pace = InstantPace()

        def slow(request: Request) -> Answer:
            pace.time += 60.0
            return Answer(body=RSS)

        jobs = [feed(server.route(host, "/feed", slow), id=host) for host in (A, B, C)]
        outcomes = round_of(jobs, tmp_path, pace=pace, concurrency=1, round_seconds=100.0)
        assert [type(outcome) for outcome in outcomes] == [Document, Document, NotBegun]

    def test_a_redirect_that_does_not_get_its_turn_is_released(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        target = server.route(B, "/feed", Answer(body=RSS))
        url = server.route(A, "/feed", Answer(status=302, headers={"Location": target}))
        pace = InstantPace()
        pace.ended[B, 0] = pace.time
        outcomes = round_of([feed(url)], tmp_path, pace=pace, host_delay=60.0, round_seconds=50.0)
        assert [type(outcome) for outcome in outcomes] == [NotBegun]

    def test_without_a_limit_all_are_requested(self, server: FeedServer, tmp_path: Path) -> None:
        jobs = feeds(server, A, 5, Answer(body=RSS))
        outcomes = round_of(jobs, tmp_path, host_delay=9999.0, round_seconds=None)
        assert all(isinstance(outcome, Document) for outcome in outcomes)


def test_after_a_429_its_host_is_not_requested_again_in_this_round(
    server: FeedServer, tmp_path: Path
) -> None:
    refused = feeds(server, A, 3, Answer(status=429, headers={"Retry-After": "600"}))
    others = feeds(server, B, 3, Answer(status=503))
    outcomes = round_of([*refused, *others], tmp_path)
    assert [type(outcome) for outcome in outcomes] == [Failure, OnHold, OnHold, *[Failure] * 3]
    assert len(server.asked(A)) == 1
    assert isinstance(outcomes[1], OnHold)
    assert (outcomes[1].hold.host, outcomes[1].hold.until) == (A, NOW + timedelta(minutes=10))


@pytest.mark.slow
def test_a_slow_feed_does_not_stop_the_others(server: FeedServer, tmp_path: Path) -> None:
    slow = feeds(server, A, 1, Answer(body=RSS, drip=(1, 0.2)))
    quick = [job for last in range(3, 9) for job in feeds(server, f"127.0.0.{last}", 1, Answer(body=RSS))]
    outcomes = round_of([*slow, *quick], tmp_path, deadline=2.0, concurrency=2)
    assert [type(outcome) for outcome in outcomes] == [Failure, *[Document] * 6]


Threads = Callable[[], list[threading.Thread]]


@pytest.fixture
def fetch_threads() -> Threads:
    """The threads of rounds that the test has begun and that have not ended."""
    before = set(threading.enumerate())
    return lambda: [
        thread for thread in threading.enumerate() if thread.name == "fetch" and thread not in before
    ]


@pytest.mark.timeout(PATIENCE)
class TestInterrupts:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_what_on_done_raises_ends_the_round(
        self, error: type[BaseException], server: FeedServer, tmp_path: Path, fetch_threads: Threads
    ) -> None:
        jobs = [
            *feeds(server, A, 1, Answer(body=RSS)),
            *feeds(server, B, 3, Answer(body=RSS * 999, drip=(1, 0.05))),
        ]

        def stop(feed: Feed, outcome: FetchOutcome) -> None:
            raise error

        started = time.monotonic()
        with pytest.raises(error):
            fetch_feeds(
                [(job, Access()) for job in jobs],
                policy=replace(POLICY, deadline=60),
                spool=tmp_path,
                on_done=stop,
            )
        assert time.monotonic() - started < PROMPT
        assert fetch_threads() == []
        assert [path.name for path in tmp_path.iterdir()] == [f"{A}-0"]

    def test_what_a_signal_handler_raises_ends_the_round(
        self, server: FeedServer, tmp_path: Path, fetch_threads: Threads
    ) -> None:
        """As Dagster does: its handler raises an exception that is no Exception."""

        class Interrupted(BaseException):
            pass

        def handler(*_: object) -> None:
            raise Interrupted

        def answer(request: Request) -> Answer:
            os.kill(os.getpid(), signal.SIGUSR1)
            return Answer(delay=60)

        before = signal.signal(signal.SIGUSR1, handler)
        started = time.monotonic()
        try:
            with pytest.raises(Interrupted):
                round_of([feed(server.route(A, "/feed", answer))], tmp_path, deadline=60)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert time.monotonic() - started < PROMPT
        assert fetch_threads() == []
        assert list(tmp_path.iterdir()) == []


def test_a_spool_that_cannot_be_written_stops_the_round(
    server: FeedServer, tmp_path: Path, fetch_threads: Threads
) -> None:
    jobs = [*feeds(server, A, 1, Answer(body=RSS)), *feeds(server, B, 1, Answer(delay=60))]
    with pytest.raises(InfrastructureError, match="spool"):
        round_of(jobs, tmp_path / "missing", deadline=60)
    assert fetch_threads() == []


def test_it_works_where_an_event_loop_runs_already(server: FeedServer, tmp_path: Path) -> None:
    async def inside() -> list[FetchOutcome]:
        return round_of(feeds(server, A, 1, Answer(body=RSS)), tmp_path)

    assert isinstance(asyncio.run(inside())[0], Document)


@pytest.mark.slow
def test_hundreds_of_feeds(server: FeedServer, tmp_path: Path) -> None:
    answer = Answer(body=RSS, etag='"1"')
    jobs = [
        amend(job, etag='"1"', last_body_at=now() - timedelta(days=1))
        for last in range(2, 22)
        for job in feeds(server, f"127.0.2.{last}", 12, answer)
    ]
    outcomes = round_of(jobs, tmp_path, concurrency=10, host_delay=0.0)
    assert all(isinstance(outcome, NotModified) for outcome in outcomes)
    assert max(count for host, count in server.most_open.items() if host) == 1
    assert server.most_open[""] <= 10


@pytest.mark.parametrize(("addresses", "apart"), [(["127.0.0.9"], 1.0), (["127.0.0.9", "127.0.0.8"], 0.0)])
def test_names_of_one_address_are_requested_one_after_the_other_and_those_of_several_at_once(
    addresses: list[str], apart: float, server: FeedServer, tmp_path: Path
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return addresses

    pace = InstantPace()
    came: list[float] = []

    def answer(_: Request) -> Answer:
        came.append(pace.time)
        return Answer(body=RSS)

    for address in addresses:
        server.route(address, "/feed", answer)
    urls = [f"http://{n}.hosting.example:{server.port}/feed" for n in range(6)]
    outcomes = fetch_feeds(
        [(feed(url, id=f"feed-{n}"), Access()) for n, url in enumerate(urls)],
        policy=replace(POLICY, host_delay=1.0, network=Network(resolve=resolve)),
        spool=tmp_path,
        clock=now,
        pace=pace,
    )
    assert [type(each) for each in outcomes] == [Document] * 6
    assert all(b - a >= apart for a, b in itertools.pairwise(sorted(came)))
    assert (max(came) - min(came) > 0) is (apart > 0)
