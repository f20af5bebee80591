"""A round of images: how many requests a host gets and when, and what ends the round."""

import itertools
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.fetch.image_body import Image
from rss_pipeline.collector.fetch.image_round import fetch_images
from rss_pipeline.collector.fetch.image_visit import ImageOutcome, ImageRequest, KeptImage
from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.http.guarded_transport import Network
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.errors import InfrastructureError, ObjectStoreUnavailable, StorageRejected
from rss_pipeline_tests.collector.fetch.images_at_hosts import (
    GOOD,
    LARGE,
    POLICY,
    A,
    B,
    C,
    failure,
    fetch,
    fetch_one,
    store,
    wanted,
)
from rss_pipeline_tests.collector.fetch.rounds import InstantPace, now
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer, Request
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT

Threads = Callable[[], list[threading.Thread]]


@pytest.fixture
def fetch_threads() -> Threads:
    """The threads of rounds that the test has begun and that have not ended."""
    before = set(threading.enumerate())
    return lambda: [
        thread for thread in threading.enumerate() if thread.name.startswith("fetch") and thread not in before
    ]


class TestPoliteness:
    @pytest.mark.slow
    def test_two_connections_a_host_and_sixteen_in_all(self, server: FeedServer, tmp_path: Path) -> None:
        slow = Answer(body=pictures.PNG, delay=0.03, keep_alive=True)
        urls = [server.route(f"127.0.3.{n % 12 + 1}", f"/{n}", slow) for n in range(72)]
        outcomes = fetch(urls, tmp_path, host_delay=0.0)
        assert all(isinstance(outcome, KeptImage) for outcome in outcomes)
        most = {host: count for host, count in server.most_open.items() if host}
        assert set(most.values()) == {2}

    def test_no_more_at_once_than_the_policy_says(self, server: FeedServer, tmp_path: Path) -> None:
        slow = Answer(body=pictures.PNG, delay=0.03)
        urls = [server.route(f"127.0.3.{n + 1}", "/", slow) for n in range(12)]
        fetch(urls, tmp_path, concurrency=3)
        assert server.most_open[""] == 3

    def test_connections_are_used_again_and_closed_with_the_last_image(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        answer = Answer(body=pictures.PNG, keep_alive=True)
        urls = [server.route(A, f"/{n}", answer) for n in range(20)]
        fetch(urls, tmp_path)
        assert len({request.connection for request in server.requests}) == 2
        assert [request.headers["connection"] for request in server.requests][-1] == "close"

    def test_a_short_refusal_does_not_cost_the_connection(self, server: FeedServer, tmp_path: Path) -> None:
        missing = Answer(status=404, body=b"no such image", keep_alive=True)
        urls = [server.route(A, f"/{n}", missing) for n in range(9)]
        fetch(urls, tmp_path, connections_per_host=1)
        assert {request.connection for request in server.requests} == {1}

    def test_a_kept_connection_that_is_closed_under_the_request_costs_nothing(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        used: set[int] = set()

        def once_a_connection(request: Request) -> Answer:
            if request.connection in used:
                return Answer(raw=b"")
            used.add(request.connection)
            return Answer(body=pictures.PNG, keep_alive=True)

        urls = [server.route(A, f"/{n}", once_a_connection) for n in range(4)]
        outcomes = fetch(urls, tmp_path, connections_per_host=1)
        assert all(isinstance(outcome, KeptImage) for outcome in outcomes)
        asked = [request.target for request in server.requests]
        assert asked == ["/0", "/1", "/1", "/2", "/2", "/3", "/3"]

    def test_a_new_connection_that_is_closed_is_not_tried_again(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        failure(fetch_one(server, Answer(raw=b""), tmp_path), "connect")
        assert len(server.requests) == 1

    @pytest.mark.slow
    def test_the_pause_is_each_connection_s_own(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(A, f"/{n}", Answer(body=pictures.PNG, delay=0.05)) for n in range(6)]
        fetch(urls, tmp_path, pace=Pace(), host_delay=0.15)
        arrived = [request.arrived for request in server.requests]
        # From start to start on one connection 0.2 s at least; two run beside each other.
        assert all(arrived[n + 2] - arrived[n] > 0.18 for n in range(4))
        assert server.most_open[A] == 2

    def test_the_pause_begins_before_the_image_is_kept(self, server: FeedServer, tmp_path: Path) -> None:
        """A slow store takes a slot, not the host."""
        urls = [server.route(A, f"/{n}", GOOD) for n in range(4)]
        everyone = threading.Barrier(4)
        fetch(urls, tmp_path, keep=lambda *_: everyone.wait(PATIENCE))
        assert len(server.requests) == 4

    @pytest.mark.parametrize(
        "answer", [Answer(status=429), Answer(status=503, headers={"Retry-After": "60"})]
    )
    def test_a_host_that_requests_a_hold_is_left_alone(
        self, answer: Answer, server: FeedServer, tmp_path: Path
    ) -> None:
        answer = replace(answer, headers={"Retry-After": "60"})
        refused = [server.route(A, f"/{n}", answer) for n in range(5)]
        others = [server.route(B, f"/{n}", GOOD) for n in range(3)]
        outcomes = fetch([*refused, *others], tmp_path, connections_per_host=1)
        first, *rest = outcomes
        assert isinstance(first, Failure)
        assert (first.status, first.retry_after, first.host) == (answer.status, 60, A)
        assert [type(outcome) for outcome in rest] == [OnHold] * 4 + [KeptImage] * 3
        assert isinstance(rest[0], OnHold)
        assert str(answer.status) in rest[0].hold.reason
        assert len(server.asked(A)) == 1

    def test_what_has_not_begun_in_time_is_released(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(A, f"/{n}", GOOD) for n in range(10)]
        outcomes = fetch(urls, tmp_path, connections_per_host=1, host_delay=10.0, round_seconds=25.0)
        assert [type(outcome) for outcome in outcomes] == [KeptImage] * 3 + [NotBegun] * 7
        assert len(server.requests) == 3

    def test_who_waits_for_a_host_holds_no_slot(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(A, f"/{n}", GOOD) for n in range(6)]
        urls += [server.route(f"127.0.3.{n + 1}", "/", GOOD) for n in range(6)]
        started = time.monotonic()
        fetch(urls[:1] + urls[6:], tmp_path, concurrency=1, pace=Pace(), host_delay=60.0)
        assert time.monotonic() - started < PROMPT


def test_kept_connections_over_tls(tmp_path: Path) -> None:
    tls = Path(__file__).parents[2] / "support" / "tls"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls / "good.pem")
    with FeedServer(tls=context) as server:
        answer = Answer(body=pictures.PNG, keep_alive=True)
        urls = [server.route(A, f"/{n}", answer) for n in range(6)]
        outcomes = fetch(urls, tmp_path, ca_file=tls / "authority.pem", connections_per_host=1)
        assert all(isinstance(outcome, KeptImage) for outcome in outcomes)
        assert {request.connection for request in server.requests} == {1}


class TestTheRound:
    def test_outcomes_come_to_the_caller_s_thread_in_the_order_of_the_requests(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        urls = [server.route(A, "/a", Answer(body=pictures.PNG, delay=0.1)), server.route(B, "/b", GOOD)]
        told: list[str] = []

        def note(request: ImageRequest, outcome: ImageOutcome[str]) -> None:
            assert threading.current_thread() is threading.main_thread()
            told.append(request.id)

        outcomes = fetch_images(
            wanted(urls), policy=POLICY, spool=tmp_path, keep=lambda request, _: request.id, on_done=note
        )
        assert outcomes == [KeptImage("task-0"), KeptImage("task-1")]
        assert told == ["task-1", "task-0"]

    def test_no_requests_no_outcomes(self, tmp_path: Path) -> None:
        assert fetch([], tmp_path) == []

    @pytest.mark.slow
    def test_no_more_bodies_at_once_than_slots(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(f"127.0.3.{n % 30 + 1}", f"/{n}", GOOD) for n in range(120)]
        held, most = set[str](), list[int]()

        def slowly(request: ImageRequest, image: Image) -> None:
            held.add(request.id)
            most.append(len(held))
            time.sleep(0.005)
            held.discard(request.id)

        fetch(urls, tmp_path, keep=slowly, concurrency=4)
        assert max(most) == 4

    def test_data_the_store_refuses_is_that_image_s_failure(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(A, f"/{n}", Answer(body=LARGE)) for n in range(3)]

        def keep(request: ImageRequest, image: Image) -> str:
            if request.id == "task-1":
                raise StorageRejected("object key of 2,000 bytes; 1 to 1,024 fit.")
            return request.id

        first, refused, last = fetch(urls, tmp_path, keep=keep)
        assert (first, last) == (KeptImage("task-0"), KeptImage("task-2"))
        assert "2,000 bytes" in failure(refused, "storage_rejected").message

    @pytest.mark.timeout(PATIENCE)
    def test_a_store_that_is_down_ends_the_round(
        self, server: FeedServer, tmp_path: Path, fetch_threads: Threads
    ) -> None:
        urls = [server.route(A, f"/{n}", Answer(body=LARGE)) for n in range(9)]
        urls.append(server.route(B, "/slow", Answer(body=LARGE, drip=(9, 0.05))))
        calls = itertools.count(1)

        def keep(request: ImageRequest, image: Image) -> None:
            if next(calls) == 3:
                raise ObjectStoreUnavailable("the object store is down")

        kept = []
        with pytest.raises(ObjectStoreUnavailable, match="down"):
            fetch_images(
                wanted(urls),
                policy=replace(POLICY, deadline=PATIENCE),
                spool=tmp_path,
                keep=keep,
                on_done=lambda _, outcome: kept.append(outcome),
                pace=InstantPace(),
            )
        assert 0 < len(kept) < 9
        assert all(isinstance(outcome, KeptImage) for outcome in kept)
        assert fetch_threads() == []
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.timeout(PATIENCE)
    def test_a_spool_that_cannot_be_written_ends_the_round(
        self, server: FeedServer, tmp_path: Path, fetch_threads: Threads
    ) -> None:
        url = server.route(A, "/image", Answer(body=LARGE))
        with pytest.raises(InfrastructureError, match="spool"):
            fetch_images(
                wanted([url]), policy=POLICY, spool=tmp_path / "missing", keep=store, pace=InstantPace()
            )
        assert fetch_threads() == []

    @pytest.mark.slow
    @pytest.mark.timeout(PATIENCE)
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_an_interrupt_ends_the_round_when_what_is_being_kept_has_been(
        self, error: type[BaseException], server: FeedServer, tmp_path: Path, fetch_threads: Threads
    ) -> None:
        urls = [server.route(A, "/first", GOOD), server.route(B, "/second", Answer(body=LARGE))]
        urls.append(server.route(C, "/slow", Answer(body=LARGE, drip=(9, 0.05))))
        interrupted, keeping, kept = threading.Event(), threading.Event(), list[str]()

        def keep(request: ImageRequest, image: Image) -> None:
            if request.id == "task-0":
                keeping.wait(PATIENCE)
                return
            keeping.set()
            interrupted.wait(PATIENCE)
            kept.append(store(request, image)[0])

        def interrupt(request: ImageRequest, outcome: ImageOutcome[None]) -> None:
            threading.Timer(0.2, interrupted.set).start()
            raise error

        started = time.monotonic()
        with pytest.raises(error):
            fetch_images(
                wanted(urls),
                policy=replace(POLICY, deadline=PATIENCE),
                spool=tmp_path,
                keep=keep,
                on_done=interrupt,
                pace=InstantPace(),
            )
        assert time.monotonic() - started < PROMPT
        assert kept == ["png"]
        assert fetch_threads() == []
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.slow
    def test_hundreds_of_images(self, server: FeedServer, tmp_path: Path) -> None:
        answer = Answer(body=pictures.PNG, keep_alive=True)
        urls = [server.route(f"127.0.4.{n % 50 + 1}", f"/{n}", answer) for n in range(250)]
        outcomes = fetch(urls, tmp_path, host_delay=0.0)
        assert all(isinstance(outcome, KeptImage) for outcome in outcomes)
        assert max(count for host, count in server.most_open.items() if host) <= 2


def test_feeds_are_requested_as_before() -> None:
    policy = FetchPolicy(user_agent="x")
    assert (policy.connections_per_host, policy.keep_alive, policy.concurrency) == (1, False, 5)
    assert "atom" in policy.accept


@pytest.mark.parametrize("answers", [0, 1], ids=["nothing was sent", "a redirect was answered"])
def test_an_image_with_a_lease_that_lapses_at_a_connection_is_due_at_once_or_after_its_redirect_tomorrow(
    answers: int, server: FeedServer, tmp_path: Path
) -> None:
    """A run that is stopped there (SIGSTOP, a laptop that sleeps) has lost its claims as it goes on."""
    server.route(A, "/image", Answer(status=302, headers={"Location": "/other"}))
    resolved: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        resolved.append(host)
        return [A]

    [outcome] = fetch_images(
        wanted([f"http://images.example:{server.port}/image"]),
        policy=replace(POLICY, network=Network(resolve)),
        spool=tmp_path,
        keep=store,
        is_leased=lambda: len(server.requests) < answers or not resolved,
        clock=now,
        pace=InstantPace(),
    )
    assert len(server.requests) == answers
    assert isinstance(outcome, NotBegun)
    assert outcome.not_before == (now() + timedelta(days=1) if answers else None)
