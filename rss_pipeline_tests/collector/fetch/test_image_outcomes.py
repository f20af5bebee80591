"""The outcome of an image over real HTTP: which answers are kept, and which are a failure of what kind."""

import time
from pathlib import Path

import pytest

from rss_pipeline.collector.fetch.image_visit import KeptImage
from rss_pipeline_tests.collector.fetch.images_at_hosts import (
    GOOD,
    LARGE,
    POLICY,
    A,
    B,
    failure,
    fetch,
    fetch_one,
)
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PROMPT


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

    def test_where_redirects_led_is_reported(self, server: FeedServer, tmp_path: Path) -> None:
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
    def test_no_url_to_request(self, url: str, server: FeedServer, tmp_path: Path) -> None:
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
        there = Answer(status=302, headers={"Location": "/there"}, delay=0.3)
        server.route(A, "/there", Answer(status=404, delay=0.3))
        outcome = failure(fetch_one(server, there, tmp_path, deadline=0.5), "timeout")
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
        assert (
            "decompresses to 30,000,000 bytes"
            in failure(fetch_one(server, bomb, tmp_path), "too_large").message
        )

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
