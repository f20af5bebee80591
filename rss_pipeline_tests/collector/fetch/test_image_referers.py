"""The Referer of an image request: none first, then the host's own address, then the item's site."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.fetch.image import KeptImage
from rss_pipeline_tests.collector.fetch.images_at_hosts import GOOD, A, B, failure, fetch
from rss_pipeline_tests.collector.fetch.rounds import InstantPace
from rss_pipeline_tests.support.server import Answer, FeedServer, Request


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
