"""A feed on hold that is materialized says on its key until when.

How holds are kept is in pipeline/visits/test_holds.py.
"""

from datetime import timedelta

import dagster as dg

from rss_pipeline.collector.models.clock import instant
from rss_pipeline_tests.pipeline.visits.test_holds import busy, to
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"


def test_materializing_a_feed_of_a_host_on_hold_says_on_its_key_until_when(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route(B, "/1", busy()), "first")
    pipeline.register(server.route(B, "/2", Answer(body=rss("a"))), "second")
    pipeline.register(server.route(A, "/3", to(server.url(B, "/2"))), "third")
    pipeline.poll("first")
    until = pipeline.clock() + timedelta(minutes=10)
    result = pipeline.materialize("first", "second", "third")
    assert not result.success
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    said = f"{B} is on hold until {instant(until)} (429 Too Many Requests with a wait of 10 min"
    assert said in str(failure.event_specific_data.error)
    table = failure.step_failure_data.user_failure_data.metadata["failed"].md_str
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    assert sorted((row[0], row[3]) for row in rows) == [
        (f"| [{id}](/assets/feed_items?view=events&partitions%5B0%5D={id})", "host_on_hold")
        for id in ("first", "second", "third")
    ]
    for id in ("first", "second", "third"):
        observed = pipeline.instance.fetch_observations(
            dg.AssetRecordsFilter(asset_key=dg.AssetKey("feed_items"), asset_partitions=[id]), limit=5
        ).records
        observation = observed[0].asset_observation
        assert observation is not None
        assert observation.metadata["held_until"].value == until.timestamp()
        assert said in (observation.description or "")
        assert pipeline.events(id) == []
    assert len(server.asked(B)) == 1
    pipeline.clock.turn(minutes=11)
    assert pipeline.materialize("second", "third").success
