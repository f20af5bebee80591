"""The job `fetch_articles` and when it starts."""

import dagster as dg
import pytest

from rss_pipeline.features.full_text.dagster import decide_articles
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline_tests.features.full_text.made import article
from rss_pipeline_tests.features.full_text.test_articles import HOST, collect
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.mark.slow
def test_a_run_starts_for_new_items_fetches_their_articles_and_then_nothing_is_due(
    pipeline: Pipeline, server: FeedServer
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"one": "/1"})
    with dg.DagsterInstance.ephemeral() as instance:
        now = pipeline.clock()
        assert isinstance(decide_articles(pipeline.database, instance, now), Start)
        definitions = build_definitions(pipeline.settings, clock=pipeline.clock)
        done = definitions.resolve_job_def("fetch_articles").execute_in_process(instance=instance)
        assert done.success
        [row] = pipeline.rows("SELECT status FROM articles")
        assert row["status"] == "shown"
        assert isinstance(decide_articles(pipeline.database, instance, now), Wait)
