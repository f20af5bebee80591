"""Images over real HTTP: what is kept, what is a failure and why, whose turn it is, what ends a round."""

import itertools
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.fetch.image import ImageOutcome, ImageRequest, KeptImage
from rss_pipeline.collector.fetch.image_body import Image
from rss_pipeline.collector.fetch.images import fetch_images, image_policy
from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.errors import InfrastructureError, ObjectStoreUnavailable, StorageRejected
from rss_pipeline_tests.collector.fetch.rounds import LOOPBACK, InstantPace, now
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer, Request
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"
POLICY = replace(image_policy(user_agent="rss_pipeline tests (tests@example.org)"), deadline=30.0)
GOOD = Answer(body=pictures.PNG)
LARGE = pictures.png(padded_to=1_500_000)

Stored = tuple[str, bytes, bool]
"""Extension, body, and whether it lay in a file."""


def store(request: ImageRequest, image: Image) -> Stored:
    in_file = isinstance(image.body, Path)
    body = image.body.read_bytes() if isinstance(image.body, Path) else image.body
    assert image.size == len(body)
    return image.type.extension, body, in_file


def wanted(urls: list[str], item_link: str | None = None, **more: Any) -> list[ImageRequest]:
    return [
        ImageRequest(id=f"task-{n}", url=url, item_link=item_link, private=LOOPBACK, **more)
        for n, url in enumerate(urls)
    ]


def fetch(
    urls: list[str],
    spool: Path,
    *,
    keep: Callable[[ImageRequest, Image], Any] = store,
    pace: Pace | None = None,
    item_link: str | None = None,
    sends_referer: bool = True,
    **policy: Any,
) -> list[ImageOutcome[Any]]:
    outcomes = fetch_images(
        wanted(urls, item_link, sends_referer=sends_referer),
        policy=replace(POLICY, **policy),
        spool=spool,
        keep=keep,
        clock=now,
        pace=pace or InstantPace(),
    )
    assert list(spool.iterdir()) == []
    return outcomes


def fetch_one(server: FeedServer, answer: Answer, spool: Path, **more: Any) -> ImageOutcome[Any]:
    [outcome] = fetch([server.route(A, "/image", answer)], spool, **more)
    return outcome


def failure(outcome: ImageOutcome[Any], kind: str) -> Failure:
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert outcome.message.endswith(".")
    assert "feeds.yaml" not in outcome.message
    return outcome


Threads = Callable[[], list[threading.Thread]]


@pytest.fixture
def fetch_threads() -> Threads:
    """The threads of rounds that the test has begun and that have not ended."""
    before = set(threading.enumerate())
    return lambda: [
        thread for thread in threading.enumerate() if thread.name.startswith("fetch") and thread not in before
    ]


class TestWhatIsKept:
    @pytest.mark.parametrize(
        ("extension", "body"),
        [
            ("png", pictures.PNG),
            ("jpg", pictures.JPEG),
            ("webp", pictures.WEBP),
            ("avif", pictures.AVIF),
            ("gif", pictures.GIF),
            ("svg", pictures.SVG),
            ("bmp", pictures.BMP),
            ("ico", pictures.ICO),
        ],
    )
    @pytest.mark.parametrize("content_type", [None, "text/html; charset=utf-8", "image/x-whatever"])
    def test_bytes_decide_whatever_the_server_calls_them(
        self, extension: str, body: bytes, content_type: str | None, server: FeedServer, tmp_path: Path
    ) -> None:
        headers = {} if content_type is None else {"Content-Type": content_type}
        outcome = fetch_one(server, Answer(body=body, headers=headers), tmp_path)
        assert outcome == KeptImage((extension, body, False))

    @pytest.mark.slow
    @pytest.mark.parametrize(("size", "in_file"), [(900_000, False), (1_000_001, True), (14_000_000, True)])
    def test_a_large_image_waits_in_a_file_which_is_removed(
        self, size: int, in_file: bool, server: FeedServer, tmp_path: Path
    ) -> None:
        body = pictures.png(padded_to=size)
        assert fetch_one(server, Answer(body=body), tmp_path) == KeptImage(("png", body, in_file))

    def test_gzip_is_undone(self, server: FeedServer, tmp_path: Path) -> None:
        assert fetch_one(server, Answer(body=pictures.SVG, gzip=True), tmp_path) == KeptImage(
            ("svg", pictures.SVG, False)
        )

    def test_a_coding_left_over_from_an_upload_is_none(self, server: FeedServer, tmp_path: Path) -> None:
        answer = Answer(body=pictures.PNG, headers={"Content-Encoding": "aws-chunked"})
        assert isinstance(fetch_one(server, answer, tmp_path), KeptImage)

    def test_an_image_that_comes_byte_by_byte(self, server: FeedServer, tmp_path: Path) -> None:
        answer = Answer(body=b"<!-- a long one -->" * 40 + pictures.SVG, drip=(7, 0.0))
        assert isinstance(fetch_one(server, answer, tmp_path), KeptImage)

    def test_where_redirects_led_is_told(self, server: FeedServer, tmp_path: Path) -> None:
        target = server.route(B, "/there.png", GOOD)
        url = server.route(A, "/image", Answer(status=302, headers={"Location": target}))
        [outcome] = fetch([url], tmp_path, keep=lambda _, image: image.url)
        assert outcome == KeptImage(target)

    def test_what_is_sent(self, server: FeedServer, tmp_path: Path) -> None:
        cookie = Answer(body=pictures.PNG, headers={"Set-Cookie": "a=b"}, keep_alive=True)
        urls = [server.route(A, f"/{n}?x=%20&y=1", cookie) for n in range(3)]
        fetch([urls[0].replace("//", "//user:password@"), *urls[1:]], tmp_path, item_link="http://b.example/")
        for request in server.requests:
            assert request.headers["accept"].startswith("image/avif,image/webp,")
            assert request.headers["user-agent"] == POLICY.user_agent
            assert request.headers["accept-encoding"] == "gzip"
            assert not request.headers.keys() & {"cookie", "authorization", "referer", "if-none-match"}


class TestWhatIsNone:
    def test_a_web_page(self, server: FeedServer, tmp_path: Path) -> None:
        answer = Answer(body=pictures.HTML, headers={"Content-Type": "image/jpeg"})
        outcome = failure(fetch_one(server, answer, tmp_path), "not_an_image")
        assert outcome.message == f"{A} answered 200 with a web page instead of an image."
        assert (outcome.status, outcome.answered, outcome.host) == (200, True, A)

    def test_a_long_web_page_is_not_read_to_its_end(self, server: FeedServer, tmp_path: Path) -> None:
        page = Answer(body=pictures.HTML + b"<p>and so on" * 900_000, drip=(65_536, 0.0))
        failure(fetch_one(server, page, tmp_path), "not_an_image")
        assert server.bytes_sent < 8_000_000

    def test_nothing(self, server: FeedServer, tmp_path: Path) -> None:
        outcome = failure(fetch_one(server, Answer(body=b""), tmp_path), "empty_body")
        assert "with nothing instead of an image" in outcome.message

    @pytest.mark.parametrize(
        ("status", "kind", "words"),
        [
            (204, "no_content", "without an image"),
            (304, "http_status", "304 Not Modified"),
            (404, "http_status", "404 Not Found: the image is not, or no longer, at its address."),
            (410, "gone", "removed the image"),
            (500, "http_status", "internal error"),
            (503, "http_status", "internal error"),
        ],
    )
    def test_a_status_that_brings_no_image(
        self, status: int, kind: str, words: str, server: FeedServer, tmp_path: Path
    ) -> None:
        outcome = failure(fetch_one(server, Answer(status=status), tmp_path), kind)
        assert words in outcome.message
        assert outcome.status == status
        assert len(server.requests) == 1

    def test_a_host_that_refuses_connections(self, server: FeedServer, tmp_path: Path) -> None:
        [outcome] = fetch([server.url("127.9.9.9", "/image")], tmp_path)
        assert "connection refused" in failure(outcome, "connect").message

    @pytest.mark.parametrize("url", ["nonsense", "ftp://a.example/x.png", "http://a b/", "http://xn--/x.png"])
    def test_no_url_to_ask(self, url: str, server: FeedServer, tmp_path: Path) -> None:
        good = server.route(A, "/image", GOOD)
        bad, kept = fetch([url, good], tmp_path)
        failure(bad, "bad_url")
        assert isinstance(kept, KeptImage)

    @pytest.mark.slow
    def test_a_server_that_drips(self, server: FeedServer, tmp_path: Path) -> None:
        started = time.monotonic()
        answer = Answer(body=LARGE, drip=(1, 0.02))
        outcome = failure(fetch_one(server, answer, tmp_path, deadline=0.4), "timeout")
        assert time.monotonic() - started < PROMPT
        assert "0.4 s" in outcome.message

    @pytest.mark.slow
    def test_the_deadline_is_for_all_requests_together(self, server: FeedServer, tmp_path: Path) -> None:
        slow = Answer(status=403, delay=0.3)
        outcome = failure(fetch_one(server, slow, tmp_path, deadline=0.5), "timeout")
        assert len(server.requests) == 2
        assert 400 < (outcome.fetch_ms or 0) < 2000

    @pytest.mark.slow
    @pytest.mark.parametrize("chunked", [False, True])
    def test_forty_megabytes_are_not_read(self, chunked: bool, server: FeedServer, tmp_path: Path) -> None:
        answer = Answer(body=pictures.JPEG.ljust(40_000_000, b"."), chunked=chunked, drip=(65_536, 0.0))
        outcome = failure(fetch_one(server, answer, tmp_path), "too_large")
        assert ("more than 15,000,000" if chunked else "has 40,000,000 bytes") in outcome.message
        assert server.bytes_sent < (25_000_000 if chunked else 8_000_000)

    def test_a_gzip_bomb(self, server: FeedServer, tmp_path: Path) -> None:
        bomb = Answer(body=pictures.PNG.ljust(30_000_000, b"\0"), gzip=True)
        assert "decompresses to more than" in failure(fetch_one(server, bomb, tmp_path), "too_large").message

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(body=LARGE, cut_after=1_200_000),
            Answer(body=LARGE, cut_after=900_000, chunked=True),
            Answer(body=pictures.PNG, cut_after=40),
            Answer(body=LARGE, cut_after=1_000, gzip=True, headers={"Content-Length": "1000"}),
        ],
        ids=["in a file", "chunked", "short", "gzip"],
    )
    def test_a_body_cut_short(self, answer: Answer, server: FeedServer, tmp_path: Path) -> None:
        failure(fetch_one(server, answer, tmp_path), "truncated")

    def test_a_circle(self, server: FeedServer, tmp_path: Path) -> None:
        there = server.url(A, "/there")
        url = server.route(A, "/here", Answer(status=302, headers={"Location": there}))
        server.route(A, "/there", Answer(status=302, headers={"Location": url}))
        [outcome] = fetch([url], tmp_path)
        assert "in a loop" in failure(outcome, "redirect").message
        assert len(server.requests) == 2

    def test_redirects_without_end(self, server: FeedServer, tmp_path: Path) -> None:
        for n in range(9):
            server.route(A, f"/{n}", Answer(status=301, headers={"Location": f"/{n + 1}"}))
        [outcome] = fetch([server.url(A, "/0")], tmp_path)
        assert "More than 5" in failure(outcome, "redirect").message
        assert len(server.requests) == 6


class TestTheRefererLadder:
    PAGE = "http://blog.example/post?a=1"
    SITE = "http://blog.example/"

    def wants(self, *referers: str | None, refusal: int = 403) -> Callable[[Request], Answer]:
        return lambda request: (
            GOOD if request.headers.get("referer") in referers else Answer(status=refusal, body=b"no")
        )

    def climb(self, server: FeedServer, spool: Path, route: Any, item_link: str | None) -> Any:
        [outcome] = fetch([server.route(A, "/image", route)], spool, item_link=item_link)
        return outcome, [request.headers.get("referer") for request in server.requests]

    @pytest.mark.parametrize("refusal", [401, 403])
    def test_each_rung_is_tried_and_no_further_one(
        self, refusal: int, server: FeedServer, tmp_path: Path
    ) -> None:
        rungs = [None, f"http://{A}:{server.port}/", self.SITE]
        for number, rung in enumerate(rungs):
            server.forget()
            outcome, sent = self.climb(
                server, tmp_path, self.wants(rung, refusal=refusal), self.PAGE + "#top"
            )
            assert isinstance(outcome, KeptImage)
            assert sent == rungs[: number + 1]

    def test_the_last_answer_is_the_failure_and_says_what_was_tried(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        outcome, sent = self.climb(server, tmp_path, self.wants(), self.PAGE)
        assert len(sent) == 3
        assert failure(outcome, "http_status").message == (
            f"403 Forbidden: {A} refuses the image, requested without Referer, with its own address "
            "and with the address of the item's site."
        )

    def test_nothing_of_a_feed_that_only_its_readers_know_is_sent(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        url = server.route(A, "/image", self.wants())
        [outcome] = fetch([url], tmp_path, item_link=self.PAGE, sends_referer=False)
        assert [request.headers.get("referer") for request in server.requests] == [None]
        assert "requested without Referer." in failure(outcome, "http_status").message

    def test_a_private_feed_s_link_is_never_told(self, server: FeedServer, tmp_path: Path) -> None:
        outcome, sent = self.climb(server, tmp_path, self.wants(), None)
        assert sent == [None, f"http://{A}:{server.port}/"]
        assert "page" not in failure(outcome, "http_status").message

    def test_a_page_read_over_tls_is_not_told_in_the_clear(self, server: FeedServer, tmp_path: Path) -> None:
        _, sent = self.climb(server, tmp_path, self.wants(), "https://blog.example/secret")
        assert len(sent) == 2

    @pytest.mark.parametrize("link", ["nonsense", "mailto:a@b.example", "http://[/"])
    def test_a_link_that_is_no_page_is_no_rung(self, link: str, server: FeedServer, tmp_path: Path) -> None:
        _, sent = self.climb(server, tmp_path, self.wants(), link)
        assert len(sent) == 2

    def test_no_password_and_no_fragment_goes_out(self, server: FeedServer, tmp_path: Path) -> None:
        _, sent = self.climb(server, tmp_path, self.wants(), "http://me:secret@blog.example:81/é?x=y#x")
        assert sent[2] == "http://blog.example:81/"

    def test_a_challenge_is_not_climbed(self, server: FeedServer, tmp_path: Path) -> None:
        challenge = Answer(status=403, headers={"cf-mitigated": "challenge"})
        outcome, sent = self.climb(server, tmp_path, challenge, self.PAGE)
        failure(outcome, "challenge")
        assert sent == [None]

    def test_another_answer_ends_it(self, server: FeedServer, tmp_path: Path) -> None:
        url = server.route(A, "/image", Answer(status=403), Answer(status=404))
        [outcome] = fetch([url], tmp_path, item_link=self.PAGE)
        assert failure(outcome, "http_status").status == 404
        assert len(server.requests) == 2

    def test_each_rung_waits_its_turn(self, server: FeedServer, tmp_path: Path) -> None:
        pace = InstantPace()
        url = server.route(A, "/image", self.wants())
        fetch([url], tmp_path, item_link=self.PAGE, pace=pace, connections_per_host=1)
        assert pace.slept == [pytest.approx(0.2)] * 2

    def test_the_rung_is_kept_over_a_redirect(self, server: FeedServer, tmp_path: Path) -> None:
        target = server.route(B, "/image", self.wants(self.SITE))
        url = server.route(A, "/image", Answer(status=302, headers={"Location": target}))
        [outcome] = fetch([url], tmp_path, item_link=self.PAGE)
        assert isinstance(outcome, KeptImage)
        assert [r.headers.get("referer") for r in server.asked(B)] == [
            None,
            f"http://{B}:{server.port}/",
            self.SITE,
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
    def test_a_host_that_asks_for_a_pause_is_left_alone(
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


def test_feeds_are_asked_as_before() -> None:
    policy = FetchPolicy(user_agent="x")
    assert (policy.connections_per_host, policy.keep_alive, policy.concurrency) == (1, False, 5)
    assert "atom" in policy.accept
