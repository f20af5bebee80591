"""Polls by shard over a real instance: the sensor's requests, the runs they make, and what those report."""

import dagster as dg
import pytest

from rss_pipeline.collector.models.shard import bucket_of, shard_of
from rss_pipeline_tests.orchestration.test_poll_sensor import launched, says, tick
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOSTS = [f"127.0.0.{n}" for n in range(2, 6)]


@pytest.fixture
def feeds(pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    """A feed on each of HOSTS, new, where there are two shards."""
    for host in HOSTS:
        pipeline.register(
            server.route(host, "/feed", Answer(body=rss(host))), f"feed-{host[-1]}", interval="1h"
        )
    pipeline.sync()
    pipeline.set(shards=2)
    return pipeline


def of_shard(number: int) -> list[str]:
    return [host for host in HOSTS if shard_of(bucket_of(host), 2) == number]


def run(pipeline: DagsterPipeline, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    job = pipeline.definitions().resolve_job_def("poll_feeds")
    result = job.execute_in_process(
        instance=pipeline.instance, run_config=request.run_config, tags=request.tags
    )
    assert result.success
    return result


def asked(server: FeedServer) -> list[str]:
    hosts = sorted(request.host for request in server.requests)
    server.forget()
    return hosts


@pytest.mark.slow
def test_one_tick_starts_a_poll_of_each_shard_and_each_visits_its_own_hosts(
    feeds: DagsterPipeline, server: FeedServer
) -> None:
    requests = tick(feeds)
    assert [request.tags["rss_pipeline/shard"] for request in requests] == ["1 of 2", "2 of 2"]
    assert [request.tags["rss_pipeline/reason"] for request in requests] == [
        f"Shard {number} of 2: {len(of_shard(number))} feeds were never visited." for number in (1, 2)
    ]
    for number, request in enumerate(requests, 1):
        result = run(feeds, request)
        assert asked(server) == of_shard(number)
        [poll] = [
            event.step_materialization_data.materialization
            for event in result.get_asset_materialization_events()
            if event.asset_key == dg.AssetKey("polls")
        ]
        assert poll.metadata["shard"].value == f"{number} of 2"
        assert poll.metadata[f"shard_{number}_due"].value == len(of_shard(number))
        assert poll.metadata[f"shard_{number}_lag_seconds"].value == 0
    assert says(tick(feeds)) == "No feed is due."


@pytest.mark.slow
def test_a_run_with_a_full_claim_claims_again_until_nothing_of_its_shard_is_due(
    feeds: DagsterPipeline, server: FeedServer
) -> None:
    feeds.set(batch_size=1)
    for number, request in enumerate(tick(feeds), 1):
        result = run(feeds, request)
        assert asked(server) == of_shard(number)
        [output] = [
            event.step_output_data.metadata
            for event in result.all_node_events
            if event.event_type_value == "STEP_OUTPUT" and event.node_name == "report"
        ]
        assert output["stored"].value == len(of_shard(number))
        assert len(result.output_for_node("extract_images")) == 1, "the first claim"
        assert len(result.output_for_node("visit_more")) == len(of_shard(number)), "before the report"
    assert feeds.rows("SELECT token FROM leases") == []
    assert feeds.rows("SELECT id FROM feeds WHERE change_count <> reported_count") == []
    assert says(tick(feeds)) == "No feed is due."


@pytest.mark.slow
def test_a_poll_without_a_shard_is_of_all_feeds_and_its_rest_goes_on_by_shard(
    feeds: DagsterPipeline, server: FeedServer
) -> None:
    feeds.set(batch_size=2)
    assert launched(feeds, all=True).success
    done = asked(server)
    assert len(done) == 2
    feeds.clock.turn(seconds=1)
    for request in tick(feeds):
        assert run(feeds, request).success
    assert sorted(done + asked(server)) == HOSTS
    assert says(tick(feeds)) == "No feed is due."


@pytest.mark.slow
def test_a_shard_that_there_is_not_is_a_sentence(feeds: DagsterPipeline, server: FeedServer) -> None:
    result = launched(feeds, shard=3, shards=2)
    [event] = [event for event in result.all_events if event.event_type_value == "STEP_FAILURE"]
    said = str(event.step_failure_data.user_failure_data)
    assert "shard 3 of 2: there are 1 to 1024 shards; set both `shard` and `shards`" in said
    assert asked(server) == []
