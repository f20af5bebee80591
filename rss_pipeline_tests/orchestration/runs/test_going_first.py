"""The command waits for a feed and goes first at its host, where a poll of the daemon's is running."""

import pytest

from rss_pipeline.orchestration.in_process import poll_in_process
from rss_pipeline_tests.pipeline.visits.test_going_first import goes_first
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE


def test_a_refresh_by_the_command_goes_before_the_feeds_a_poll_has_not_begun(
    pipeline: DagsterPipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poll(id: str) -> None:
        polls = poll_in_process(
            pipeline.definitions(),
            pipeline.instance,
            pipeline.database,
            clock=pipeline.clock,
            feeds=[id],
            patience=PATIENCE,
        )
        assert [len(round_.visits) for round_ in polls] == [0, 1]

    goes_first(poll, pipeline, server, monkeypatch)
