"""Runs beside each other: none requests from a host that another one requests from, by whatever way.

Each run has a session of its own, with its own pace, as a process on another machine has.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline_tests.support.pictures import PNG
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon

X, Y = "127.0.0.2", "127.0.0.3"


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


@pytest.mark.slow
def test_an_image_that_leads_to_a_host_of_another_download_is_put_off(
    pipeline: Pipeline, server: FeedServer
) -> None:
    image = Answer(body=PNG, headers={"Content-Type": "image/png"})
    server.route(X, "/a.png", leads_to(server.route(Y, "/a.png", image)))
    pipeline.register(
        server.route("127.0.0.4", "/feed", Answer(body=rss("a", image=f"http://{X}:{server.port}"))), "feed"
    )
    pipeline.poll()
    pipeline.database.query(
        """INSERT INTO leases (token, run_id, expires_at, feeds, hosts, image_hosts)
        VALUES ('t', 'another', strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '+1 hour'), '[]', '[]', ?)""",
        [f'["{Y}"]'],
    )
    done = pipeline.download()
    assert (done.archived, done.failed_attempts) == (0, 0)
    assert (len(server.asked(X)), len(server.asked(Y))) == (1, 0)
    pipeline.database.query("DELETE FROM leases WHERE token = 't'")
    assert pipeline.download().archived == 0, "not at once: that would ask the first host again and again"
    pipeline.clock.turn(days=1)
    assert pipeline.download().archived == 1
