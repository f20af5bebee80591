"""The search for a feed beside runs on other machines: one of them at a time requests from a host."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.pipeline.adding import find_feed as find
from rss_pipeline.pipeline.adding.find_feed import Found, find_feed
from rss_pipeline.pipeline.adding.offer import Offer
from rss_pipeline.storage.feeds import claims
from rss_pipeline.storage.feeds.claimable import Due, Named
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon

HOST = "127.0.0.2"


def search(pipeline: Pipeline, url: str) -> Found | Offer | Failure:
    with pipeline.session() as session, session.step():
        return find_feed(session, url, access=Access(), allow_private=True)


@pytest.mark.slow
def test_a_search_begins_once_the_run_that_requests_from_the_host_has_ended(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "LOOKS", 1_000)
    answer = threading.Event()
    known = server.route(HOST, "/known", Answer(body=rss("a"), wait_for=answer))
    pipeline.register(known, "known")
    pipeline.sync()
    with ThreadPoolExecutor(2) as threads:
        poll = threads.submit(pipeline.run, Due(now=pipeline.clock()))
        soon(lambda: bool(server.asked(HOST)))
        searching = threads.submit(search, pipeline, server.route(HOST, "/new", Answer(body=rss("b"))))
        soon(lambda: bool(pipeline.rows("SELECT 1 FROM leases WHERE awaited <> '[]'")))
        during = server.asked(HOST, "/new")
        answer.set()
        poll.result()
        found = searching.result()
    assert during == []
    assert isinstance(found, Found)
    assert server.most_open[HOST] == 1


@pytest.mark.slow
def test_a_search_at_a_host_that_another_run_does_not_free_says_so(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "LOOKS", 1)
    pipeline.register(server.route(HOST, "/known", Answer(body=rss("a"))), "known")
    pipeline.sync()
    wanted = Due(now=pipeline.clock())
    claims.claim(pipeline.database, wanted, run_id="elsewhere", lease_seconds=60, limit=1)
    found = search(pipeline, server.route(HOST, "/new", Answer(body=rss("b"))))
    assert isinstance(found, Failure)
    assert found.message == f"Another run requests from {HOST} at this moment. Try again in a minute."
    assert server.requests == []


def test_no_run_claims_a_host_while_a_search_requests_from_it(pipeline: Pipeline, server: FeedServer) -> None:
    pipeline.register(server.route(HOST, "/known", Answer(body=rss("a"))), "known")
    pipeline.sync()
    answer = threading.Event()
    url = server.route(HOST, "/new", Answer(body=rss("b"), wait_for=answer))

    def claimed() -> int:
        wanted = Named(ids=["known"], now=pipeline.clock())
        claim = claims.claim(pipeline.database, wanted, run_id="elsewhere", lease_seconds=60, limit=1)
        return len(claim.feeds)

    with ThreadPoolExecutor(1) as threads:
        searching = threads.submit(search, pipeline, url)
        soon(lambda: bool(server.asked(HOST)))
        during = claimed()
        answer.set()
        assert isinstance(searching.result(), Found)
    assert (during, claimed()) == (0, 1)
