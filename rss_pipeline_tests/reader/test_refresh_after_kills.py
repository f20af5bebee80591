"""Refreshes of feeds that a poll held when it was killed."""

import signal

import pytest

from rss_pipeline.reader.refresh import VisitRunning
from rss_pipeline_tests.pipeline.visits.faults.test_crashes import POLL
from rss_pipeline_tests.reader.test_refresh import is_waiting, request, run, task
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.mark.slow
def test_each_feed_of_a_killed_poll_that_users_wait_for_is_visited_once_when_its_lease_has_lapsed(
    pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    """Two of them have one host, for which the poll would have made way."""
    ids = ["a", "b", "c"]
    for id, host in zip(ids, ["127.0.0.2", "127.0.0.2", "127.0.0.3"], strict=True):
        pipeline.register(server.route(host, f"/{id}", Answer(body=rss(id))), id, interval="12h")
    killed = prepared.start(POLL, str(pipeline.settings.home), "fetch")
    assert killed.wait() == -signal.SIGKILL
    subscribe(pipeline.database, "ann", *ids)
    answers = [request(pipeline, id) for id in ids]
    tasks = [answer.task_id for answer in answers if isinstance(answer, VisitRunning)]
    assert len(tasks) == 3
    assert is_waiting(pipeline) == (3, 3), "a poll that is alive would make way"
    run(pipeline)
    assert server.requests == []

    def lapse() -> None:
        assert server.requests == []
        [poll] = pipeline.rows("SELECT DISTINCT lease_token AS token FROM feeds")
        expired = "UPDATE leases SET expires_at = '2000-01-01T00:00:00Z' WHERE token = ?"
        pipeline.database.query(expired, [poll["token"]])

    run(pipeline, stay=20, before_the_rest=lapse)
    assert {task(pipeline, id).state for id in tasks} == {"done"}
    run(pipeline)
    assert sorted(asked.target for asked in server.requests) == ["/a", "/b", "/c"]
    assert {id: pipeline.guids(id) for id in ids} == {"a": ["a"], "b": ["b"], "c": ["c"]}
    assert pipeline.rows("SELECT id FROM feeds WHERE unclosed_claims > 0 OR lease_token IS NOT NULL") == []
