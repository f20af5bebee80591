"""A feed added by the address of its site: found, written into feeds.yaml, collected with one request."""

import shutil
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.hold import HostGap
from rss_pipeline.errors import ObjectStoreUnavailable, RegistryError
from rss_pipeline.pipeline.adding.add_feed import Added, AlreadyListed, NotAdded, add, prepare
from rss_pipeline.pipeline.adding.find_feed import usual_places
from rss_pipeline.pipeline.registry.write_entries import registered
from rss_pipeline.storage.feeds.stored_holds import keep_holds
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST, OTHER = "127.0.0.2", "127.0.0.3"
COMMENTED = "# my feeds\nfeeds:\n  - url: https://a.example/   # the first\n    enabled: false\n"


def page(*links: str, head: str = "") -> Answer:
    named = "".join(
        f'<link rel="alternate" type="application/rss+xml" title="Feed" href="{link}">' for link in links
    )
    return Answer(
        body=f"<!DOCTYPE html><html><head><title>A site</title>{head}{named}</head><p>Hello</html>".encode(),
        headers={"Content-Type": "text/html"},
    )


def added(
    pipeline: Pipeline,
    *urls: str,
    allow_private: bool = True,
    environ: Mapping[str, str] | None = None,
    **parts: Any,
) -> list[Added | AlreadyListed | NotAdded]:
    pipeline.clock.turn(seconds=1)
    with pipeline.session(**parts) as session, session.step():
        prepare(session, environ=environ or {})
        return [add(session, url, environ=environ or {}, allow_private=allow_private) for url in urls]


def text(pipeline: Pipeline) -> str:
    return pipeline.settings.feeds_file.read_text("utf-8")


@pytest.fixture
def mine(pipeline: Pipeline) -> Pipeline:
    """A pipeline with a feeds.yaml that a person wrote."""
    pipeline.settings.feeds_file.write_text(COMMENTED, "utf-8")
    return pipeline


@pytest.mark.slow
def test_a_feed_is_written_visited_once_and_collected(mine: Pipeline, server: FeedServer) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a", "b", title="A & B"), etag='"1"'))
    [result] = added(mine, url)
    assert isinstance(result, Added)
    assert text(mine) == f"{COMMENTED}  - url: {url}\n    id: {result.id}\n    allow_private: true\n"
    assert (result.title, result.url, result.items) == ("A & B", url, 2)
    assert mine.guids(result.id) == ["a", "b"]
    assert len(mine.backups(result.id)) == 1
    feed = mine.feed(result.id)
    assert result.next_at is not None
    assert (feed["next_fetch_at"], feed["last_etag"]) == (instant(result.next_at), '"1"')
    assert (feed["lease_token"], feed["move_url"]) == (None, None)
    assert len(server.requests) == 1
    mine.poll()
    assert len(server.requests) == 1, "it is not due again, and nothing but its entry changed"


def test_the_first_feed_of_a_file_with_comments_only_is_added(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.settings.feeds_file.write_text("# later\nfeeds:\n  # - https://old.example/\n", "utf-8")
    url = server.route(HOST, "/a%20b", Answer(body=rss("a")))
    [result] = added(pipeline, url.replace("%20", " "))
    assert isinstance(result, Added)
    assert result.url == url
    assert "feeds:\n  - url: " in text(pipeline)
    assert text(pipeline).endswith("\n  # - https://old.example/\n")


def test_of_a_web_page_the_first_feed_that_it_names_is_added(mine: Pipeline, server: FeedServer) -> None:
    site = server.route(HOST, "/blog/", page("broken.xml", "posts.xml", "/comments.xml"))
    server.route(HOST, "/blog/posts.xml", Answer(body=rss("a")))
    server.route(HOST, "/comments.xml", Answer(body=rss("b")))
    [result] = added(mine, site)
    assert isinstance(result, Added)
    assert result.url == f"{site}posts.xml"
    assert result.others == (f"{site}broken.xml", site.replace("/blog/", "/comments.xml"))
    assert [request.target for request in server.requests] == [
        "/blog/",
        "/blog/broken.xml",
        "/blog/posts.xml",
    ]


def test_a_page_that_names_none_has_its_feed_in_a_usual_place(mine: Pipeline, server: FeedServer) -> None:
    site = server.route(HOST, "/blog/post", page())
    server.route(HOST, "/blog/rss.xml", Answer(body=rss("a")))
    [result] = added(mine, site)
    assert isinstance(result, Added)
    assert result.url == site.replace("post", "rss.xml")


def test_usual_places_are_few_and_begin_beside_the_page() -> None:
    assert list(usual_places("https://a.example/"))[:2] == [
        "https://a.example/feed/",
        "https://a.example/feed.xml",
    ]
    assert next(usual_places("https://a.example/b/c")) == "https://a.example/b/feed/"
    assert "https://a.example/feed/" in usual_places("https://a.example/b/c")
    assert len(list(usual_places("https://a.example/b/c"))) == 8


def test_a_host_that_wants_fewer_requests_gets_no_more_guesses(mine: Pipeline, server: FeedServer) -> None:
    site = server.route(HOST, "/", page())
    server.route(HOST, "/feed/", Answer(status=429, headers={"Retry-After": "600"}))
    [result] = added(mine, site)
    assert isinstance(result, NotAdded)
    assert "usual places" in result.message
    assert len(server.requests) == 2
    [again] = added(mine, site)
    assert isinstance(again, NotAdded)
    assert again.kind == "host_on_hold"
    assert len(server.requests) == 2, "its hold is known to the next command"


def test_a_host_that_wants_no_robots_gets_no_more_guesses(mine: Pipeline, server: FeedServer) -> None:
    site = server.route(HOST, "/", page())
    server.route(HOST, "/feed/", Answer(status=403, headers={"cf-mitigated": "challenge"}))
    [result] = added(mine, site)
    assert isinstance(result, NotAdded)
    assert len(server.requests) == 2


def test_an_address_that_moved_for_good_is_written_as_it_is_now(mine: Pipeline, server: FeedServer) -> None:
    new = server.route(HOST, "/new", Answer(body=rss("a")))
    for status, path in ((301, "/old"), (302, "/away")):
        server.route(HOST, path, Answer(status=status, headers={"Location": new}))
    [moved] = added(mine, server.url(HOST, "/old"))
    assert isinstance(moved, Added)
    assert moved.url == new
    assert mine.feed(moved.id)["fetch_url"] is None
    [known] = added(mine, server.url(HOST, "/old"))
    assert isinstance(known, AlreadyListed)
    [away] = added(mine, server.url(HOST, "/away"))
    assert isinstance(away, Added)
    assert away.url == server.url(HOST, "/away"), "a temporary redirect is none of our address"


def test_what_cannot_be_added_leaves_the_file_and_the_others_go_on(
    mine: Pipeline, server: FeedServer
) -> None:
    fine = server.route(HOST, "/feed", Answer(body=rss("a")))
    gone = server.url(HOST, "/404")
    empty = server.route(OTHER, "/", page())
    broken = server.route(OTHER, "/blog/", page("/404"))
    results = added(mine, gone, "ftp://a.example/", "https://A.example:443/", empty, broken, fine, fine)
    assert [type(each).__name__ for each in results] == [
        *("NotAdded", "NotAdded", "AlreadyListed", "NotAdded", "NotAdded", "Added", "AlreadyListed")
    ]
    messages = [each.message for each in results if isinstance(each, NotAdded)]
    assert "404" in messages[0]
    assert "not an http or https URL" in messages[1]
    assert "a web page that names no feed, and there is none in the usual places (/feed/, " in messages[2]
    assert f"The web page names the feed {server.url(OTHER, '/404')}, but: " in messages[3]
    [one] = [each for each in results if isinstance(each, Added)]
    assert text(mine) == f"{COMMENTED}  - url: {fine}\n    id: {one.id}\n    allow_private: true\n"


def test_a_private_address_is_requested_only_if_that_was_said(mine: Pipeline, server: FeedServer) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    [result] = added(mine, url, allow_private=False)
    assert isinstance(result, NotAdded)
    assert result.kind == "blocked_address"
    assert "--allow-private" in result.message
    assert (text(mine), server.requests) == (COMMENTED, [])


def test_a_page_cannot_send_a_secret_of_ours_to_its_feed(mine: Pipeline, server: FeedServer) -> None:
    site = server.route(HOST, "/", page("/feed?${TOKEN}"))
    server.route(HOST, "/feed?${TOKEN}", Answer(body=rss("a")))
    environ = {"TOKEN": "secret"}
    [result] = added(mine, site, environ=environ)
    assert isinstance(result, Added)
    assert "secret" not in " ".join(request.target for request in server.requests)
    assert registered(mine.settings.feeds_file, environ=environ)[1].url.endswith("/feed?${TOKEN}")


def test_a_password_stays_a_variable_and_is_sent(mine: Pipeline, server: FeedServer) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    [result] = added(mine, url.replace("//", "//me:${PASSWORD}@"), environ={"PASSWORD": "geheim"})
    assert isinstance(result, Added)
    assert "me:${PASSWORD}@" in text(mine)
    assert "geheim" not in text(mine)
    assert all("authorization" in request.headers for request in server.requests)


def test_a_feed_that_was_removed_comes_back_with_its_history(mine: Pipeline, server: FeedServer) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a"), etag='"1"'))
    mine.register(url, "own-id")
    mine.poll()
    mine.settings.feeds_file.write_text(COMMENTED, "utf-8")
    mine.sync()
    [result] = added(mine, url)
    assert isinstance(result, Added)
    assert result.id == "own-id"
    assert len(mine.backups("own-id")) == 1, "its document is the one that it had"
    assert mine.guids("own-id") == ["a"]


def test_a_feeds_yaml_with_mistakes_is_refused_with_them_before_any_request(
    mine: Pipeline, server: FeedServer
) -> None:
    mine.settings.feeds_file.write_text("feeds:\n  - title: x\n", "utf-8")
    with pytest.raises(RegistryError, match=r"line 2: feeds\[0\].url: is missing"):
        added(mine, server.route(HOST, "/feed", Answer(body=rss("a"))))
    assert server.requests == []


def test_without_a_store_nothing_is_requested_and_nothing_written(mine: Pipeline, server: FeedServer) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    shutil.rmtree(mine.settings.objects_path)
    mine.settings.objects_path.write_text("a file in place of the folder", "utf-8")
    with pytest.raises(ObjectStoreUnavailable):
        added(mine, url)
    assert (text(mine), server.requests) == (COMMENTED, [])


def test_a_host_that_limits_the_rate_of_requests_is_not_searched_faster(
    mine: Pipeline, server: FeedServer
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    now = mine.clock()
    gap = HostGap(host=HOST, gap=timedelta(minutes=10), since=now, asked_at=now)
    mine.sync()
    keep_holds(mine.database, "hosts", gaps=[gap], now=now)
    [result] = added(mine, url)
    assert isinstance(result, NotAdded)
    assert (result.kind, server.requests) == ("host_on_hold", [])
    mine.clock.turn(minutes=10)
    [result] = added(mine, url)
    assert isinstance(result, Added)
