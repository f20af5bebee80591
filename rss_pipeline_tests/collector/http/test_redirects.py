"""Redirects: which are followed, how far, and what goes along. A real server."""

from pathlib import Path

import pytest

from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline_tests.collector.fetch.rounds import RSS, feed, fetch
from rss_pipeline_tests.collector.http.exchange import HOST, OTHER, ask, failure
from rss_pipeline_tests.support.server import Answer, FeedServer


class TestRedirects:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize("location", ["/b/feed?x=1", "feed?x=1", "//127.0.0.2:{port}/b/feed?x=1#top"])
    def test_each_is_followed(self, status: int, location: str, server: FeedServer, tmp_path: Path) -> None:
        headers = {"Location": location.format(port=server.port)}
        url = server.route(HOST, "/b/old", Answer(status=status, headers=headers))
        final = server.route(HOST, "/b/feed?x=1", Answer(body=RSS))
        outcome = fetch(feed(url), tmp_path)
        assert isinstance(outcome, Document)
        assert (outcome.response.requested_url, outcome.response.url) == (url, final)

    def chain(self, server: FeedServer, length: int) -> str:
        for number in range(length):
            server.route(HOST, f"/{number}", Answer(status=302, headers={"Location": f"/{number + 1}"}))
        server.route(HOST, f"/{length}", Answer(body=RSS))
        return server.url(HOST, "/0")

    def test_five_are_the_most(self, server: FeedServer, tmp_path: Path) -> None:
        assert isinstance(fetch(feed(self.chain(server, 5)), tmp_path), Document)
        (tmp_path / "feed-0123456789").unlink()
        server.forget()
        failure(fetch(feed(self.chain(server, 6)), tmp_path), "redirect", tmp_path)
        assert len(server.requests) == 6

    @pytest.mark.parametrize(
        ("location", "kind"),
        [
            (None, "redirect"),
            ("", "redirect"),
            ("/feed", "redirect"),
            ("#top", "redirect"),
            ("http://[::1/", "redirect"),
            ("http://", "redirect"),
            ("http://127.0.0.2:99999/", "redirect"),
            ("ftp://127.0.0.2/feed", "bad_url"),
            ("file:///etc/passwd", "bad_url"),
            ("javascript:alert(1)", "bad_url"),
            ("feed:http://127.0.0.2/", "bad_url"),
        ],
    )
    def test_one_that_leads_nowhere(
        self, location: str | None, kind: str, server: FeedServer, tmp_path: Path
    ) -> None:
        headers = {} if location is None else {"Location": location}
        outcome = failure(ask(server, Answer(status=301, headers=headers), tmp_path), kind, tmp_path)
        assert (outcome.status, outcome.answered) == (301, True)
        assert len(server.requests) == 1

    def test_a_circle_is_left(self, server: FeedServer, tmp_path: Path) -> None:
        url = server.route(HOST, "/a", Answer(status=302, headers={"Location": "/b"}))
        server.route(HOST, "/b", Answer(status=302, headers={"Location": "/a"}))
        assert "loop" in failure(fetch(feed(url), tmp_path), "redirect", tmp_path).message
        assert len(server.requests) == 2

    def test_a_location_in_utf8_or_latin1_is_followed_as_its_bytes(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        server.route(HOST, "/%C3%A9", Answer(body=RSS))
        server.route(HOST, "/%E9", Answer(body=RSS))
        for sent in ("/é".encode().decode("latin-1"), "/é"):
            answer = Answer(status=301, headers={"Location": sent})
            assert isinstance(ask(server, answer, tmp_path), Document)

    def test_userinfo_of_a_location_is_used_nowhere(self, server: FeedServer, tmp_path: Path) -> None:
        final = server.route(HOST, "/b", Answer(body=RSS))
        location = final.replace("http://", "http://me:hunter2@")
        outcome = ask(server, Answer(status=301, headers={"Location": location}), tmp_path)
        assert isinstance(outcome, Document)
        assert outcome.response.url == final
        assert "authorization" not in server.requests[1].headers

    def test_credentials_and_headers_go_to_the_registered_origin_only(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        access = Access(headers={"X-Key": "k", "User-Agent": "mine"}, username="me", password="hunter2")
        away = server.route(OTHER, "/away", Answer(status=302, headers={"Location": server.url(HOST, "/b")}))
        server.route(HOST, "/a", Answer(status=302, headers={"Location": away}))
        server.route(HOST, "/b", Answer(body=RSS))
        assert isinstance(fetch(feed(server.url(HOST, "/a")), tmp_path, access=access), Document)
        first, second, third = (request.headers for request in server.requests)
        assert first["authorization"] == third["authorization"] == "Basic bWU6aHVudGVyMg=="
        assert (first["x-key"], first["user-agent"]) == ("k", "mine")
        assert "authorization" not in second
        assert "x-key" not in second
        assert second["user-agent"].startswith("rss_pipeline")

    def test_another_port_is_another_origin(self, server: FeedServer, tmp_path: Path) -> None:
        access = Access(headers={"authorization": "Bearer hunter2"})
        with FeedServer() as elsewhere:
            away = elsewhere.route(HOST, "/feed", Answer(body=RSS))
            url = server.route(HOST, "/feed", Answer(status=302, headers={"Location": away}))
            assert isinstance(fetch(feed(url), tmp_path, access=access), Document)
            assert "authorization" not in elsewhere.requests[0].headers
        assert server.requests[0].headers["authorization"] == "Bearer hunter2"

    def test_a_moved_feed_takes_no_credentials_along(self, server: FeedServer, tmp_path: Path) -> None:
        moved = server.route(OTHER, "/feed", Answer(body=RSS))
        access = Access(username="me", password="hunter2")
        fetch(feed(server.url(HOST, "/feed"), fetch_url=moved), tmp_path, access=access)
        assert "authorization" not in server.requests[0].headers

    def test_headers_of_a_feed_cannot_undo_a_promise(self, server: FeedServer, tmp_path: Path) -> None:
        headers = {"Accept-Encoding": "br", "IF-NONE-MATCH": '"x"', "Referer": "http://x.example/"}
        url = server.route(HOST, "/feed", Answer(body=RSS))
        fetch(feed(url), tmp_path, access=Access(headers=headers))
        assert server.requests[0].headers["accept-encoding"] == "gzip"
        assert not {"if-none-match", "referer"} & set(server.requests[0].headers)

    @pytest.mark.parametrize("owner", ["/old", "/feed", "/elsewhere", None])
    def test_validators_go_to_the_hop_that_gave_them(
        self, owner: str | None, server: FeedServer, tmp_path: Path
    ) -> None:
        url = server.route(HOST, "/old", Answer(status=302, headers={"Location": "/feed"}))
        server.route(HOST, "/feed", Answer(body=RSS, etag='"2"'))
        stored = feed(url, etag='"1"', validators_url=owner and server.url(HOST, owner))
        fetch(stored, tmp_path)
        sent = [request.target for request in server.requests if "if-none-match" in request.headers]
        assert sent == {"/old": ["/old"], "/feed": ["/feed"], "/elsewhere": [], None: ["/old"]}[owner]

    def test_a_304_from_a_hop_that_was_not_requested_conditionally(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        url = server.route(HOST, "/old", Answer(status=302, headers={"Location": "/feed"}))
        server.route(HOST, "/feed", Answer(status=304))
        stored = feed(url, etag='"1"', validators_url=url)
        failure(fetch(stored, tmp_path), "unexpected_304", tmp_path)
