"""Subscribing by an address, from the user's request to the items: the steps of a run, without Dagster."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.http.address_policy import AddressPolicy
from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import PRIVATE
from rss_pipeline.reader.refresh import Queued, Task
from rss_pipeline.reader.refresh_run import Requests
from rss_pipeline.reader.searches import search
from rss_pipeline.reader.subscribe import (
    Address,
    AddressRefused,
    KnownFeed,
    TooManyFeeds,
    read_address,
    subscribe_address,
)
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.reader.requests import read_task
from rss_pipeline_tests.support.kept_parsers import KeptParsers
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
SECRET = {"headers": {"X-Token": "sesame"}, "allow_private": False}


@pytest.fixture
def open_pipeline(tmp_path: Path, server: FeedServer, kept_parsers: KeptParsers) -> Iterator[Pipeline]:
    """An installation for which the test's servers are public."""
    pipeline = Pipeline(
        tmp_path,
        parser_pool=kept_parsers,
        allow_networks=(ip_network("127.0.0.0/8"),),
        allow_ports=frozenset({server.port}),
    )
    yield pipeline
    pipeline.close()


@pytest.fixture
def ann(open_pipeline: Pipeline) -> Caller:
    return signed_in(open_pipeline.database, "ann", clock=open_pipeline.clock)


def run(pipeline: Pipeline) -> None:
    with pipeline.session() as session:
        requests = Requests(session, accesses={}, search=search, stay_seconds=5)
        requests.claim()
        requests.visit_the_rest()


def task(pipeline: Pipeline, caller: Caller, id: str) -> Task:
    found = read_task(pipeline.database, caller.user_id, id, now=pipeline.clock())
    assert found is not None
    return found


def found(pipeline: Pipeline, caller: Caller, address: str, **options: Any) -> Task:
    """The end of the search for an address."""
    answer = subscribe_address(caller, pipeline.settings, address, **options)
    assert isinstance(answer, Queued), answer
    run(pipeline)
    return task(pipeline, caller, answer.task_id)


def subscriptions(pipeline: Pipeline, caller: Caller) -> list[str]:
    rows = pipeline.rows(
        "SELECT feed_id FROM subscriptions WHERE user_id = ? ORDER BY feed_id", caller.user_id
    )
    return [row["feed_id"] for row in rows]


def test_an_unknown_feed_is_requested_once_and_its_items_are_there(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a", "b")))
    done = found(open_pipeline, ann, url, wishes=Wishes(title="Mine", folder="News", wished_interval=3600))
    assert done.result is not None
    assert (done.result.outcome, done.result.items_new, done.state) == ("subscribed", 2, "done")
    assert len(server.requests) == 1
    [row] = open_pipeline.rows("SELECT * FROM subscriptions")
    assert (row["feed_id"], row["title"], row["folder"], row["wished_interval"]) == (
        done.feed_id,
        "Mine",
        "News",
        3600,
    )
    assert open_pipeline.guids(str(done.feed_id)) == ["a", "b"]
    feed = open_pipeline.feed(str(done.feed_id))
    assert (feed["registered"], feed["listed"], feed["url"]) == (1, 0, url)


def test_a_web_page_is_searched_for_its_feed(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    feed = server.route(HOST, "/feed.xml", Answer(body=rss("a")))
    page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{feed}"></head></html>'
    url = server.route(HOST, "/", Answer(body=page.encode(), headers={"Content-Type": "text/html"}))
    done = found(open_pipeline, ann, url)
    assert done.result is not None
    assert done.result.outcome == "subscribed"
    assert open_pipeline.feed(str(done.feed_id))["url"] == feed


def test_a_known_feed_is_subscribed_at_once_in_any_form_of_its_address_and_requested_by_no_one(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    id = open_pipeline.register(url, "feed", allow_private=False)
    open_pipeline.poll()
    server.forget()
    for form in (url, url.replace("http", "HTTP"), url + "#news", url):
        assert subscribe_address(ann, open_pipeline.settings, form) == KnownFeed(feed_id=id)
    assert (subscriptions(open_pipeline, ann), server.requests) == ([id], [])


def test_the_second_reader_of_a_new_feed_gets_what_the_first_one_brought(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    done = found(open_pipeline, ann, url)
    bob = signed_in(open_pipeline.database, "bob", clock=open_pipeline.clock)
    assert subscribe_address(bob, open_pipeline.settings, url) == KnownFeed(feed_id=str(done.feed_id))
    assert len(server.requests) == 1


def test_a_closed_feed_is_answered_as_an_unknown_one_and_never_joined(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    closed = server.route(HOST, "/closed", Answer(body=rss("secret")))
    unknown = server.route(HOST, "/unknown", Answer(body=rss("open")))
    id = open_pipeline.register(closed, "closed", **SECRET)
    open_pipeline.poll()
    assert open_pipeline.guids(id) == ["secret"]
    assert [request.headers.get("x-token") for request in server.requests] == ["sesame"]
    server.route(HOST, "/closed", Answer(status=401))
    server.route(HOST, "/unknown", Answer(status=401))
    results = []
    for url in (closed, unknown):
        done = found(open_pipeline, ann, url)
        assert done.result is not None
        results.append((done.result.outcome, done.result.error_kind, str(done.result.error).replace(url, "")))
    assert results[0] == results[1]
    assert subscriptions(open_pipeline, ann) == []
    assert [request.headers.get("x-token") for request in server.requests[-2:]] == [None, None]


def test_what_a_closed_feeds_server_shows_to_everybody_is_a_feed_of_its_own(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("secret")))
    id = open_pipeline.register(url, "closed", **SECRET)
    open_pipeline.poll()
    server.route(HOST, "/feed", Answer(body=rss("public")))
    done = found(open_pipeline, ann, url)
    assert done.result is not None
    assert (done.result.outcome, done.result.items_new) == ("subscribed", 1)
    assert done.feed_id != id
    assert open_pipeline.guids(str(done.feed_id)) == ["public"]
    assert server.requests[-1].headers.get("x-token") is None
    open_pipeline.sync()
    assert open_pipeline.feed(id)["registered"] == 1


def test_a_shared_feed_is_joined_although_it_has_headers(
    open_pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    id = open_pipeline.register(url, "feed", **SECRET, shared=True)
    open_pipeline.poll()
    assert subscribe_address(ann, open_pipeline.settings, url) == KnownFeed(feed_id=id)


def test_a_user_has_a_bound_of_feeds_and_of_searches(open_pipeline: Pipeline, ann: Caller) -> None:
    # Ann is the owner: nothing of hers waits.
    open_pipeline.clock.now += timedelta(seconds=1)
    bob = signed_in(open_pipeline.database, "bob", clock=open_pipeline.clock)
    for caller, waiting in ((ann, 0), (bob, 1)):
        for n in range(61):
            answer = subscribe_address(caller, open_pipeline.settings, f"http://127.0.0.1:80/{n}")
            assert isinstance(answer, Queued)
        assert answer.queue.waiting == waiting
        assert (answer.begins_at == answer.queue.until) is True
    open_pipeline.database.query(
        """INSERT INTO feeds (id, url, host, next_fetch_at, created_at)
        SELECT value, value, 'x', '', '' FROM json_each(?)""",
        [str([f"{n}" for n in range(MAX_SUBSCRIPTIONS)]).replace("'", '"')],
    )
    open_pipeline.database.query(
        "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) SELECT ?, id, 0, '' FROM feeds",
        [ann.user_id],
    )
    assert subscribe_address(ann, open_pipeline.settings, "http://127.0.0.1:80/y") == TooManyFeeds()


def test_a_private_feed_that_feeds_yaml_shares_is_subscribed_by_its_address_and_no_other_is(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Here loopback is private, as it is everywhere."""
    bob = signed_in(pipeline.database, "bob", clock=pipeline.clock)
    shared = server.route(HOST, "/shared", Answer(body=rss("a")))
    own = server.route(HOST, "/own", Answer(body=rss("b")))
    pipeline.register(shared, "shared", shared=True)
    pipeline.register(own, "own")
    pipeline.poll()
    server.forget()
    assert subscribe_address(bob, pipeline.settings, shared) == KnownFeed(feed_id="shared")
    for unknown in (own, f"{shared}/2"):
        assert subscribe_address(bob, pipeline.settings, unknown) == AddressRefused(
            kind="blocked_address", message=PRIVATE
        )
    assert (subscriptions(pipeline, bob), server.requests) == (["shared"], [])


@pytest.mark.slow
@pytest.mark.parametrize("leads", ["by a redirect", "by a link"])
def test_what_leads_into_a_private_network_is_not_followed_and_shows_nothing(
    pipeline: Pipeline, server: FeedServer, leads: str
) -> None:
    """Here loopback is private, as it is everywhere."""
    bob = signed_in(pipeline.database, "bob", clock=pipeline.clock)
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    assert subscribe_address(bob, pipeline.settings, url) == AddressRefused(
        kind="blocked_address", message=PRIVATE
    )
    public = Pipeline(
        pipeline.settings.home,
        allow_networks=(ip_network("127.0.0.3"),),
        allow_ports=frozenset({server.port}),
    )
    page = f'<html><head><link rel="alternate" type="application/rss+xml" href="{url}"></head></html>'
    answers = {
        "by a redirect": Answer(status=302, headers={"Location": url}),
        "by a link": Answer(body=page.encode(), headers={"Content-Type": "text/html"}),
    }
    with closing(public):
        done = found(public, bob, server.route("127.0.0.3", "/feed", answers[leads]))
    assert done.result is not None
    assert (done.result.error_kind, done.result.error) == ("blocked_address", PRIVATE)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org/feed", "https://example.org/feed"),
        ("feed:https://example.org/feed", "https://example.org/feed"),
        ("https://example.org/${HOME}", "https://example.org/${HOME}"),
        ("https://example.org/feed#top", "https://example.org/feed"),
        ("https://ann:pw@example.org/feed", "bad_url"),
        ("ftp://example.org/feed", "bad_url"),
        ("https://example.org/" + "x" * 2_000, "bad_url"),
        ("", "bad_url"),
        ("https://exa mple.org/", "bad_url"),
        ("http://127.0.0.1/feed", "blocked_address"),
        ("http://0x7f.1/feed", "blocked_address"),
        ("http://[::1]/feed", "blocked_address"),
        ("http://localhost/feed", "blocked_address"),
        ("http://169.254.169.254/latest", "blocked_address"),
        ("http://10.1.2.3/feed", "blocked_address"),
        ("http://example.org:22/feed", "blocked_address"),
    ],
)
def test_an_address_is_checked_before_anything_is_requested(text: str, expected: str) -> None:
    address = read_address(text, AddressPolicy())
    refusal = address if isinstance(address, AddressRefused) else address.refusal
    if refusal is not None:
        assert refusal.kind == expected
        assert "pw" not in refusal.message
    else:
        assert isinstance(address, Address)
        assert address.url == expected
