"""Cookies: sent back within one chain of redirects, to the host that set them, and never seen again."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.http.cookies import MOST_BYTES, CookieJar, with_cookies
from rss_pipeline.collector.http.headers import Head
from rss_pipeline.collector.http.request_url import request_url
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.outcome import Document, NotModified
from rss_pipeline_tests.collector.fetch import images_at_hosts
from rss_pipeline_tests.collector.fetch.rounds import NOW, POLICY, RSS, InstantPace, feed, fetch, now
from rss_pipeline_tests.collector.http.exchange import HOST, OTHER, ask, failure
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

SECRET = "c00kie-that-nobody-keeps"


def redirect(location: str, *cookies: str, status: int = 302) -> Answer:
    return Answer(
        status=status, headers=(("Location", location), *(("Set-Cookie", each) for each in cookies))
    )


def wall(answer: Answer, cookie: str = f"seen={SECRET}") -> Callable[[Request], Answer]:
    """A server that answers who has its cookie, and sends everybody else to the same address with one."""

    def route(request: Request) -> Answer:
        if cookie in request.headers.get("cookie", ""):
            return answer
        return redirect(request.target, f"{cookie}; Path=/; HttpOnly")

    return route


def sent(server: FeedServer) -> list[str | None]:
    return [request.headers.get("cookie") for request in server.requests]


class TestChains:
    def test_a_server_that_redirects_to_itself_with_a_cookie_is_read(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        url = server.route(HOST, "/feed", wall(Answer(body=RSS)))
        assert isinstance(fetch(feed(url), tmp_path), Document)
        assert sent(server) == [None, f"seen={SECRET}"]

    def test_a_gate_at_another_address_is_passed(self, server: FeedServer, tmp_path: Path) -> None:
        def gated(request: Request) -> Answer:
            if "ticket=42" in request.headers.get("cookie", ""):
                return Answer(body=RSS, etag='"1"')
            return redirect("/gate?back=/feed")

        url = server.route(HOST, "/feed", gated)
        server.route(HOST, "/gate?back=/feed", redirect("/feed", "ticket=42; Path=/; SameSite=Lax"))
        assert isinstance(fetch(feed(url), tmp_path), Document)
        assert sent(server) == [None, None, "ticket=42"]
        server.forget()
        known = feed(url, etag='"1"', validators_url=url)
        assert isinstance(fetch(known, tmp_path), NotModified)
        assert sent(server) == [None, None, "ticket=42"], "the next visit begins without"

    def test_a_feed_gets_none_of_another_feeds_cookies(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(HOST, f"/{n}", wall(Answer(body=RSS))) for n in range(3)]
        urls.append(server.route(HOST, "/open", Answer(body=RSS)))
        jobs = [(feed(url, id=f"feed-{n}"), Access()) for n, url in enumerate(urls)]
        outcomes = fetch_feeds(jobs, policy=POLICY, spool=tmp_path, clock=now, pace=InstantPace())
        assert all(isinstance(outcome, Document) for outcome in outcomes)
        for n in range(3):
            assert [r.headers.get("cookie") for r in server.asked(HOST, f"/{n}")] == [None, f"seen={SECRET}"]
        assert [r.headers.get("cookie") for r in server.asked(HOST, "/open")] == [None]

    def test_no_other_host_and_no_other_port_gets_them(self, server: FeedServer, tmp_path: Path) -> None:
        domain = "a=1; Path=/; Domain=127.0.0.3"
        with FeedServer() as port:
            away = port.route(HOST, "/b", redirect(server.url(OTHER, "/c"), "b=2; Path=/"))
            url = server.route(HOST, "/feed", redirect(away, domain, "a2=1; Path=/"))
            server.route(OTHER, "/c", redirect(server.url(HOST, "/d"), "c=3; Path=/"))
            server.route(HOST, "/d", Answer(body=RSS))
            assert isinstance(fetch(feed(url), tmp_path), Document)
            assert sent(port) == [None]
        assert sent(server) == [None, None, "a=1; a2=1"]

    def test_a_loop_that_cookies_do_not_end_is_a_failure(self, server: FeedServer, tmp_path: Path) -> None:
        outcome = failure(ask(server, redirect("/feed", f"a={SECRET}"), tmp_path), "redirect", tmp_path)
        assert outcome.message == "127.0.0.2 redirects in a loop, also with the cookies that it set."
        assert len(server.requests) == 2

    def test_a_new_cookie_each_time_ends_at_the_most_redirects(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        url = server.route(HOST, "/feed", lambda _: redirect("/feed", f"a={len(server.requests)}; Path=/"))
        assert "More than 5 redirects" in failure(fetch(feed(url), tmp_path), "redirect", tmp_path).message
        assert len(server.requests) == 6

    def test_cookies_of_feeds_yaml_go_along_and_the_servers_own_replace_them(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        access = Access(headers={"Cookie": "key=k; seen=old"})
        url = server.route(HOST, "/feed", wall(Answer(body=RSS), "seen=new"))
        assert isinstance(fetch(feed(url), tmp_path, access=access), Document)
        assert sent(server) == ["key=k; seen=old", "key=k; seen=new"]

    def test_an_address_that_needs_a_cookie_has_not_moved_for_good(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        def route(request: Request) -> Answer:
            known = "cookie" in request.headers
            return Answer(body=RSS) if known else redirect("/feed", "a=1", status=301)

        outcome = fetch(feed(server.route(HOST, "/feed", route)), tmp_path)
        assert isinstance(outcome, Document)
        assert outcome.response.moved_to is None
        url = server.route(HOST, "/a", redirect("/b", "a=1", status=301))
        final = server.route(HOST, "/b", Answer(body=RSS))
        outcome = fetch(feed(url), tmp_path)
        assert isinstance(outcome, Document)
        assert outcome.response.moved_to == final, "what is set on the way and not needed changes nothing"

    def test_images_are_had_in_the_same_way(self, server: FeedServer, tmp_path: Path) -> None:
        urls = [server.route(HOST, f"/{n}.png", wall(Answer(body=pictures.PNG))) for n in range(2)]
        outcomes = images_at_hosts.fetch(urls, tmp_path)
        assert [outcome.value[1] for outcome in outcomes] == [pictures.PNG] * 2
        assert sorted(map(str, sent(server))) == ["None", "None", f"seen={SECRET}", f"seen={SECRET}"]

    def test_nothing_of_them_is_stored_or_logged(
        self, pipeline: Pipeline, server: FeedServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        id = pipeline.register(server.route(HOST, "/feed", wall(Answer(body=rss("a")))), "feed")
        other = pipeline.register(server.route(HOST, "/loop", redirect("/loop", f"a={SECRET}")), "loop")
        visits = pipeline.poll()
        assert pipeline.guids(id) == ["a"]
        assert pipeline.feed(other)["last_error_kind"] == "redirect"
        assert sent(server).count(f"seen={SECRET}") == 1
        kept = [path.read_bytes() for path in pipeline.settings.home.rglob("*") if path.is_file()]
        assert kept
        assert not any(SECRET.encode() in each for each in kept)
        assert SECRET not in caplog.text + repr(visits)


class TestJar:
    def pairs(self, url: str, *cookies: str, then: str) -> list[str]:
        jar = CookieJar()
        jar.take(
            request_url(url), Head([(b"Set-Cookie", each.encode("latin-1")) for each in cookies]), now=NOW
        )
        return jar.pairs(request_url(then))

    @pytest.mark.parametrize(
        ("first", "then", "goes"),
        [
            ("http://a.example/x", "http://a.example/x", True),
            ("http://a.example/x", "http://A.EXAMPLE:80/y", True),
            ("http://a.example/x", "https://a.example/y", True),
            ("https://a.example/x", "https://a.example/y", True),
            ("https://a.example/x", "http://a.example/y", False),
            ("https://a.example/x", "http://a.example:443/y", False),
            ("http://a.example/x", "http://a.example:8080/y", False),
            ("https://a.example:8443/x", "https://a.example/y", False),
            ("http://a.example/x", "http://b.a.example/y", False),
            ("http://b.a.example/x", "http://a.example/y", False),
            ("http://a.example/x", "http://a.example./y", False),
        ],
    )
    @pytest.mark.parametrize("more", ["", "; Domain=example", "; Domain=.a.example"])
    def test_it_goes_to_the_host_that_set_it_and_never_off_tls(
        self, first: str, then: str, goes: bool, more: str
    ) -> None:
        assert self.pairs(first, f"a=1; Path=/{more}", then=then) == ["a=1"] * goes

    @pytest.mark.parametrize(
        ("cookie", "sent"),
        [
            ("a=1", ["a=1"]),
            ("a=1; path=/x", ["a=1"]),
            ("a=1; Path=/x/", ["a=1"]),
            ("a=1; Path=/x/y/z", []),
            ("a=1; Path=/x/yy", []),
            ("a=1; Path=/x; Path=/q", []),
            ("a=1; Path=q", ["a=1"]),
            ("a=1; Secure", []),
            ("a = 1 ;HttpOnly", ["a=1"]),
            ('a="x y"; Max-Age=5', ['a="x y"']),
            ("a=", ["a="]),
            ("a=b=c", ["a=b=c"]),
            ("a=gr\xfcn", ["a=gr\xfcn"]),
            ("=1", []),
            ("a", []),
            ("", []),
            ("a=\x01", []),
            ("a=1; Max-Age=0", []),
            ("a=1; Max-Age=-1; Expires=Wed, 18 Feb 2037 08:30:00 GMT", []),
            ("a=1; Expires=Wed, 18 Feb 2025 08:30:00 GMT", []),
            ("a=1; Max-Age=5; Expires=Wed, 18 Feb 2025 08:30:00 GMT", ["a=1"]),
            ("a=1; Expires=soon", ["a=1"]),
        ],
    )
    def test_its_line_is_read_as_browsers_do(self, cookie: str, sent: list[str]) -> None:
        assert self.pairs("http://a.example/x/feed", cookie, then="http://a.example/x/y") == sent

    def test_a_later_one_replaces_and_removes_the_earlier(self) -> None:
        there = "http://a.example/"
        assert self.pairs(there, "a=1", "b=1", "a=2", then=there) == ["b=1", "a=2"]
        assert self.pairs(there, "a=1", "b=1", "a=; Max-Age=0", then=there) == ["b=1"]

    def test_there_are_at_most_twenty_and_eight_kilobytes_of_them(self) -> None:
        there = "http://a.example/"
        many = self.pairs(there, *(f"a{n}=1" for n in range(5_000)), then=there)
        assert many == [f"a{n}=1" for n in range(20)]
        large = self.pairs(there, *(f"a{n}={'x' * 3_000}" for n in range(9)), "b=1", then=there)
        assert [pair.partition("=")[0] for pair in large] == ["a0", "a1", "b"]
        [(name, value)] = with_cookies([], large)
        assert name == b"Cookie"
        assert len(value) <= MOST_BYTES
        assert self.pairs(there, "a=" + "x" * 9_000, then=there) == []
