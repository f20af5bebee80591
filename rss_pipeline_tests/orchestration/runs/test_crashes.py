"""A run of the poll job killed at any place reports each item once: the next one reports what it left.

What it stores is proven without Dagster, at more places, in pipeline/visits/faults/test_crashes.py; the
report of a run that had stored all is in downstream/test_downstream.py.
"""

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline_tests.pipeline.visits.faults.test_crashes import FEEDS, serve
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE, soon

POLL = "rss_pipeline_tests.orchestration.runs.dying_poll"


@pytest.mark.slow
def test_a_run_killed_before_its_report_is_reported_by_the_next_one(
    tmp_path: Path, pipeline: DagsterPipeline, server: FeedServer, prepared: Prepared
) -> None:
    serve(server, pipeline)
    assert prepared.start(POLL, str(tmp_path), "store", "2").wait() == -signal.SIGKILL
    assert any(pipeline.items(id) for id in FEEDS)
    assert [pipeline.events(id) for id in FEEDS] == [[], [], []]
    pipeline.lapse_leases()
    pipeline.clock.turn(minutes=10)
    pipeline.poll(all_feeds=True)
    for id, body in FEEDS.items():
        (event,) = pipeline.events(id)
        items = body.count(b"<item>")
        assert (len(pipeline.items(id)), event["items_new"], event["items_seen"]) == (items, items, items)


@pytest.mark.slow
def test_stopping_a_poll_politely_gives_its_claims_back(
    tmp_path: Path, pipeline: DagsterPipeline, server: FeedServer, prepared: Prepared
) -> None:
    """By Ctrl-C, and by SIGTERM."""
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"), etag='"1"')), "quick")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("b"), delay=2 * PATIENCE)), "slow")
    for number in (signal.SIGINT, signal.SIGTERM):
        server.forget()
        poll = prepared.start(POLL, str(tmp_path), "never", quiet=True)
        soon(lambda: len(server.requests) == 2)
        poll.send_signal(number)
        assert poll.wait() not in (0, -number), "it ends by itself, and says that it was not through"
        for id in ("quick", "slow"):
            feed = pipeline.feed(id)
            assert (feed["lease_token"], feed["unclosed_claims"]) == (None, 0)
            assert (feed["consecutive_failures"], feed["last_fetched_at"]) == (0, None)
            assert feed["next_fetch_at"] <= instant(pipeline.clock() + timedelta(seconds=1))
        assert pipeline.rows("SELECT token FROM leases") == []
        assert list(pipeline.settings.spool_path.iterdir()) == []

    server.route("127.0.0.3", "/feed", Answer(body=rss("b")))
    pipeline.poll(all_feeds=True)
    assert (pipeline.guids("quick"), pipeline.guids("slow")) == (["a"], ["b"])
