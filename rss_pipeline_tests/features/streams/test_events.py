"""Streams in Dagster: their partitions, the events of a poll and of a changed selector, a judgement by hand.

Which items belong to a stream is in features/streams.
"""

from typing import Any

import dagster as dg
import pytest

from rss_pipeline.orchestration.reporting.asset_keys import STREAM_ITEMS
from rss_pipeline_tests.orchestration.downstream.test_external_assets import DEPLOYMENTS, where
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

HOST = "127.0.0.2"


def serve(server: FeedServer, *guids: str) -> str:
    """The author of an item is the first letter of its guid."""
    body = rss(*guids)
    for guid in guids:
        title = f"<title>Title of {guid}</title>".encode()
        body = body.replace(title, title + f"<category>{guid[0]}</category>".encode())
    return server.route(HOST, "/feed", Answer(body=body, etag=etag_of(body)))


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    """A feed with a stream of two items, one of one, and one of none."""
    pipeline = dagster_pipeline
    streams = {"a": {"category": "a"}, "b": {"xpath": "//item[category='b']"}, "c": {"category": "c"}}
    pipeline.register(serve(server, "a1", "a2", "b1"), "feed", interval="30m", streams=streams)
    pipeline.sync()
    return pipeline


def launch(pipeline: DagsterPipeline, job: str = "poll_feeds", **run: Any) -> dg.ExecuteInProcessResult:
    """A run as the daemon starts it, half an hour and more after the one before."""
    pipeline.clock.turn(minutes=40)
    definition = pipeline.definitions().resolve_job_def(job)
    return definition.execute_in_process(instance=pipeline.instance, raise_on_error=False, **run)


def materialize(pipeline: DagsterPipeline, key: str) -> dg.ExecuteInProcessResult:
    job = pipeline.definitions().resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=pipeline.instance, asset_selection=[STREAM_ITEMS], partition_key=key, raise_on_error=False
    )


def change(pipeline: DagsterPipeline, **streams: Any) -> None:
    pipeline.feeds[0]["streams"] |= streams
    pipeline.write_registry()
    pipeline.sync()


def keys(pipeline: DagsterPipeline) -> list[str]:
    return list(pipeline.instance.get_dynamic_partitions("streams"))


def events(pipeline: DagsterPipeline, stream: str) -> list[tuple[int, int]]:
    """New items and members of the stream's events, newest first."""
    found = pipeline.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=STREAM_ITEMS, asset_partitions=[f"feed/{stream}"]), limit=20
    )
    metadata = [
        record.asset_materialization.metadata for record in found.records if record.asset_materialization
    ]
    return [(int(each["items_new"].value), int(each["members"].value)) for each in metadata]  # type: ignore[arg-type]


def counts(pipeline: DagsterPipeline) -> dict[str, int]:
    return {stream: len(events(pipeline, stream)) for stream in ("a", "b", "c")}


def test_a_poll_yields_an_event_for_each_stream_in_which_items_came_in(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    assert keys(pipeline) == ["feed/a", "feed/b", "feed/c"]
    assert launch(pipeline).success
    assert [events(pipeline, stream) for stream in "abc"] == [[(2, 2)], [(1, 1)], []]
    [record] = pipeline.instance.fetch_materializations(STREAM_ITEMS, limit=1).records
    assert record.asset_materialization is not None
    metadata = {name: value.value for name, value in record.asset_materialization.metadata.items()}
    assert metadata["newest_item"] == 1772438400.0, "as published, 2 March 2026, 08:00 UTC"
    assert metadata["last_match"] == pipeline.clock().timestamp()

    serve(server, "a1", "a2", "b1", "b2")
    assert launch(pipeline).success
    assert [events(pipeline, stream) for stream in "abc"] == [[(2, 2)], [(1, 2), (1, 1)], []]
    assert launch(pipeline).success, "nothing came"
    assert counts(pipeline) == {"a": 1, "b": 2, "c": 0}


def test_a_changed_selector_is_applied_at_the_next_poll_with_an_event_where_members_changed(
    pipeline: DagsterPipeline,
) -> None:
    assert launch(pipeline).success
    change(pipeline, c={"title": "*b1"}, d={"title": "*1"})
    assert keys(pipeline) == ["feed/a", "feed/b", "feed/c", "feed/d"]
    assert launch(pipeline).success
    assert counts(pipeline) == {"a": 1, "b": 1, "c": 1}
    assert events(pipeline, "c") == [(1, 1)]
    assert events(pipeline, "d") == [(2, 2)]


def test_a_stream_without_items_has_no_event_whatever_its_selector(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    server.route(HOST, "/feed", Answer(status=404))
    assert launch(pipeline).success
    change(pipeline, c={"title": "*1"})
    assert launch(pipeline).success
    assert counts(pipeline) == {"a": 0, "b": 0, "c": 0}


def test_a_stream_that_left_feeds_yaml_has_no_partition_any_more(pipeline: DagsterPipeline) -> None:
    del pipeline.feeds[0]["streams"]["b"]
    run = pipeline.instance.create_run_for_job(
        pipeline.definitions().resolve_implicit_global_asset_job_def(), status=dg.DagsterRunStatus.STARTED
    )
    change(pipeline)
    assert keys(pipeline) == ["feed/a", "feed/b", "feed/c"], (
        "a key that is removed under a run fails that run"
    )
    pipeline.instance.report_run_canceled(run)
    pipeline.sync()
    assert keys(pipeline) == ["feed/a", "feed/c"]


def test_a_stream_by_hand_is_judged_again_and_one_by_a_changed_xpath_is_not(
    pipeline: DagsterPipeline,
) -> None:
    assert launch(pipeline).success
    pipeline.rows("DELETE FROM item_streams WHERE stream = 'a'")
    assert materialize(pipeline, "feed/a").success
    assert events(pipeline, "a") == [(0, 2), (2, 2)]
    assert materialize(pipeline, "feed/b").success
    assert events(pipeline, "b") == [(0, 1), (1, 1)]

    change(pipeline, b={"xpath": "//item"})
    failed = materialize(pipeline, "feed/b")
    [failure] = [event for event in failed.all_node_events if event.is_step_failure]
    sentence = "feed/b: selector changed; run `rss-pipeline replay feed` to judge stored items."
    assert sentence in str(failure.event_specific_data.error)


def test_the_graph_says_where_streams_are(pipeline: DagsterPipeline) -> None:
    known = where(pipeline, "stream_items")
    assert known == {"stream_items": ({"rss", "sqlite"}, "item_streams", "sqlite", None)}
    pipeline.set(**DEPLOYMENTS["cloudflare"])
    known = where(pipeline, "stream_items")
    assert known == {"stream_items": ({"rss", "cloudflare"}, "item_streams", "d1", None)}
