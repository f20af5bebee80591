"""Runs beside each other: none requests from a host that another one requests from, by whatever way.

Each run has a session of its own, with its own pace, as a process on another machine has.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon

X, Y = "127.0.0.2", "127.0.0.3"
THERE = Answer(status=302)


def leads_to(url: str) -> Answer:
    return Answer(status=302, headers={"Location": url})


def test_a_redirect_to_a_host_that_another_run_requests_from_is_put_off(
    pipeline: Pipeline, server: FeedServer
) -> None:
    answer = threading.Event()
    target = server.route(Y, "/feed", Answer(body=rss("y"), wait_for=answer), Answer(body=rss("y")))
    pipeline.register(target, "y")
    pipeline.register(server.route(X, "/feed", leads_to(server.route(Y, "/x", Answer(body=rss("x"))))), "x")
    pipeline.sync()
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(pipeline.run, Named(ids=["y"], now=pipeline.clock()))
        soon(lambda: bool(server.asked(Y)))
        [visit] = pipeline.run(Named(ids=["x"], now=pipeline.clock()))
        during = server.asked(Y, "/x")
        answer.set()
        other.result()
    assert during == [], "two runs asked one host at once"
    assert isinstance(visit.outcome, OnHold)
    assert str(visit.outcome).endswith("(another run requests from it at this moment)")


@pytest.mark.slow
def test_a_run_keeps_the_pace_after_the_last_request_of_another(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(host_delay_seconds=1.0)
    for id in ("a", "b"):
        pipeline.register(server.route(Y, f"/{id}", Answer(body=rss(id))), id)
    pipeline.sync()
    for id in ("a", "b"):
        pipeline.run(Named(ids=[id], now=pipeline.clock()))
    first, second = server.asked(Y)
    assert second.arrived - first.arrived >= 1.0
