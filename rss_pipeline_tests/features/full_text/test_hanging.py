"""A host with pages that hang: polls go on meanwhile, and its own feeds are visited afterwards."""

import threading
from concurrent.futures import ThreadPoolExecutor

from rss_pipeline_tests.features.full_text.made import article
from rss_pipeline_tests.features.full_text.test_articles import HOST, collect, document, ended, fetched
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon

HANGS = "127.0.0.3"


def test_a_page_that_hangs_delays_and_fails_no_poll(pipeline: Pipeline, server: FeedServer) -> None:
    released = threading.Event()
    server.route(HANGS, "/1", Answer(wait_for=released, body=article().encode()))
    collect(pipeline, server, {"1": server.url(HANGS, "/1")})
    pipeline.register(server.route(HANGS, "/feed", Answer(body=rss("a"))), "beside")
    server.route(HOST, "/feed", Answer(body=document(server, {"2": "/2"})))
    with ThreadPoolExecutor(1) as pool:
        try:
            fetching = pool.submit(fetched, pipeline)
            soon(lambda: [each for each in server.asked(HANGS) if each.target == "/1"])
            pipeline.clock.turn(hours=3)
            assert [each.error for each in pipeline.poll()] == [None]
            assert "2" in pipeline.guids("feed"), "while the page hangs"
            assert not fetching.done()
            assert pipeline.guids("beside") == [], "one request at a time to a host"
        finally:
            released.set()
        assert fetching.result().shown == 1
    pipeline.poll()
    assert pipeline.guids("beside") == ["a"]
    assert [pipeline.feed(id)["consecutive_failures"] for id in ("feed", "beside")] == [0, 0]
    assert ended(pipeline) == {"1": ("shown", "article")}
