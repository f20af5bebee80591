"""The first poll of `up`, which warms the process from which others are forked."""

from rss_pipeline.orchestration.in_process import poll_of_nothing
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def test_it_visits_no_feed_that_waits_and_leaves_no_trace(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    pipeline.sync()
    poll_of_nothing(pipeline.definitions())
    assert server.requests == []
    assert pipeline.instance.get_runs() == []
    assert pipeline.rows("SELECT token FROM leases") == []
    assert pipeline.rows("SELECT 1 FROM feeds WHERE last_fetched_at IS NOT NULL") == []
