"""Topics in Dagster: their partitions, the last step of a poll, the sensor, a materialization by hand.

What is published is in test_publish.py.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.features.topics.sql import mark_topics_stale
from rss_pipeline.orchestration.reporting.asset_keys import REGISTRY, TOPICS
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline_tests.orchestration.downstream.test_external_assets import DEPLOYMENTS, where
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of


def serve(server: FeedServer, host: str, *guids: str) -> str:
    body = rss(*guids)
    return server.route(host, "/feed", Answer(body=body, etag=etag_of(body)))


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    """Two feeds on a host each, a topic of each of them, and one of both."""
    pipeline = dagster_pipeline
    for number, id in enumerate(("a", "b"), start=2):
        pipeline.register(serve(server, f"127.0.0.{number}", f"{id}1"), id, interval="30m")
    pipeline.topics = {
        "both": {"of": ["a", "b"], "public": True},
        "only-a": {"of": ["a"], "public": True},
        "only-b": {"of": ["b"], "public": True},
    }
    pipeline.write_registry()
    pipeline.sync()
    return pipeline


def launch(
    pipeline: DagsterPipeline, job: str = "poll_feeds", *, resources: Any = None, **run: Any
) -> dg.ExecuteInProcessResult:
    """A run as the daemon starts it, half an hour and more after the one before."""
    pipeline.clock.turn(minutes=40)
    definition = pipeline.definitions(resources=resources).resolve_job_def(job)
    return definition.execute_in_process(instance=pipeline.instance, raise_on_error=False, **run)


def keys(pipeline: DagsterPipeline) -> list[str]:
    return list(pipeline.instance.get_dynamic_partitions("topics"))


def events(pipeline: DagsterPipeline, topic: str) -> list[dg.AssetMaterialization]:
    """The topic's events, newest first."""
    found = pipeline.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=TOPICS, asset_partitions=[topic]), limit=20
    )
    return [record.asset_materialization for record in found.records if record.asset_materialization]


def counts(pipeline: DagsterPipeline) -> dict[str, int]:
    return {topic: len(events(pipeline, topic)) for topic in ("only-a", "only-b", "both")}


def warnings(pipeline: DagsterPipeline, run_id: str) -> list[str]:
    return [entry.user_message for entry in pipeline.instance.all_logs(run_id) if entry.level == 30]


def tick(pipeline: DagsterPipeline) -> Any:
    definition = pipeline.definitions().resolve_sensor_def("publish_when_changed")
    with dg.build_sensor_context(instance=pipeline.instance) as context:
        return definition(context)


class Watched(SqliteDatabase):
    """The database, with the names of its statements."""

    names: list[str]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self.names += [statement.name for statement in statements]
        return super().batch(statements)


def watched(pipeline: DagsterPipeline, names: list[str]) -> dict[str, dg.ResourceDefinition]:
    def open_database(_: dg.InitResourceContext) -> Iterator[Watched]:
        database = Watched(pipeline.settings.database_path)
        database.names = names
        yield database
        database.close()

    return {"database": dg.ResourceDefinition(open_database)}


class Full(FolderStore):
    """A store that takes no topic, but their list."""

    def put(self, key: str, *args: Any, **named: Any) -> bool:
        if key.startswith("topics/") and not key.startswith("topics/index"):
            raise ObjectStoreUnavailable("no room for topics")
        return super().put(key, *args, **named)


def full(pipeline: DagsterPipeline) -> dict[str, dg.ResourceDefinition]:
    store = Full(pipeline.settings.objects_path)
    return {"objects": dg.ResourceDefinition.hardcoded_resource(store)}


def test_a_poll_publishes_and_yields_an_event_for_each_topic_with_changed_bytes(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    assert launch(pipeline).success
    assert counts(pipeline) == {"only-a": 1, "only-b": 1, "both": 1}
    [both] = events(pipeline, "both")
    metadata = {name: value.value for name, value in both.metadata.items()}
    assert (metadata["entries"], metadata["feeds"]) == (2, 2)
    files = [pipeline.settings.objects_path / f"topics/both.{kind}" for kind in ("json", "atom")]
    assert [metadata["json"], metadata["atom"]] == [str(path) for path in files]
    assert metadata["bytes"] == sum(path.stat().st_size for path in files)
    assert metadata["changed"] == "topics/both.json, topics/both.atom"

    serve(server, "127.0.0.2", "a1", "a2")
    assert launch(pipeline).success
    assert counts(pipeline) == {"only-a": 2, "only-b": 1, "both": 2}
    versions = [event.tags["dagster/data_version"] for event in events(pipeline, "both") if event.tags]
    assert len(set(versions)) == 2

    mark_topics_stale(pipeline.database, ["only-a", "both"])
    written = [path.stat().st_mtime_ns for path in files]
    assert launch(pipeline).success
    assert [path.stat().st_mtime_ns for path in files] == written
    assert counts(pipeline) == {"only-a": 2, "only-b": 1, "both": 2}, "the same bytes are no event"

    names: list[str] = []
    assert launch(pipeline, resources=watched(pipeline, names)).success
    assert [name for name in names if "topic" in name] == ["read topics", "find topics to publish"]
    assert counts(pipeline) == {"only-a": 2, "only-b": 1, "both": 2}


def test_a_store_that_takes_no_topic_is_a_warning_of_the_poll_and_the_sensor_makes_it_good(
    pipeline: DagsterPipeline,
) -> None:
    result = launch(pipeline, resources=full(pipeline))
    assert result.success
    assert pipeline.guids("a") == ["a1"]
    assert "The topic both was not published: no room for topics" in warnings(pipeline, result.run_id)
    assert counts(pipeline) == {"only-a": 0, "only-b": 0, "both": 0}

    request = tick(pipeline)
    assert isinstance(request, dg.RunRequest)
    failed = launch(pipeline, "publish_topics", resources=full(pipeline))
    assert not failed.success, "here it is red: the sensor waits longer and longer"

    assert launch(pipeline, "publish_topics").success
    assert counts(pipeline) == {"only-a": 1, "only-b": 1, "both": 1}
    assert str(tick(pipeline).skip_message) == "No topic is due."


def test_a_bug_in_a_publication_does_not_fail_the_poll(pipeline: DagsterPipeline) -> None:
    pipeline.rows("INSERT INTO topics (id, definition, removed) VALUES ('broken', '{}', 1)")
    result = launch(pipeline)
    assert result.success
    [warning] = [each for each in warnings(pipeline, result.run_id) if "KeyError" in each]
    assert warning.startswith("Topics were not published; the next run tries again.")


def test_the_sensor_leaves_it_to_a_poll_that_runs_and_starts_one_run_at_a_time(
    pipeline: DagsterPipeline,
) -> None:
    pipeline.visit()
    pipeline.clock.turn(minutes=40)

    def made(job: str, status: dg.DagsterRunStatus) -> dg.DagsterRun:
        definition = pipeline.definitions().resolve_job_def(job)
        return pipeline.instance.create_run_for_job(definition, status=status)

    poll = made("poll_feeds", dg.DagsterRunStatus.NOT_STARTED)
    assert str(tick(pipeline).skip_message) == f"The poll {poll.run_id[:8]} publishes at its end."
    pipeline.instance.report_run_canceled(poll)
    request = tick(pipeline)
    assert isinstance(request, dg.RunRequest)
    assert request.tags["dagster/priority"] == "-1"
    assert request.tags["rss_pipeline/reason"] == "3 topics changed: both, only-a, only-b."
    publication = made("publish_topics", dg.DagsterRunStatus.NOT_STARTED)
    assert str(tick(pipeline).skip_message) == f"Run {publication.run_id[:8]} is about to start."


def test_a_topic_by_hand_is_published_now_and_one_that_fails_is_red(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    def materialize(*topics: str, resources: Any = None) -> dg.ExecuteInProcessResult:
        definitions = pipeline.definitions(resources=resources)
        job = definitions.resolve_implicit_global_asset_job_def()
        tags = {
            "dagster/asset_partition_range_start": topics[0],
            "dagster/asset_partition_range_end": topics[-1],
        }
        return job.execute_in_process(
            instance=pipeline.instance, asset_selection=[TOPICS], tags=tags, raise_on_error=False
        )

    assert launch(pipeline).success
    serve(server, "127.0.0.2", "a1", "a2")
    pipeline.clock.turn(minutes=40)
    pipeline.visit()
    assert materialize("both", "only-b").success, "before their `every` has passed"
    assert counts(pipeline) == {"only-a": 2, "only-b": 2, "both": 2}
    changed = {topic: events(pipeline, topic)[0].metadata["changed"].value for topic in counts(pipeline)}
    assert changed["only-b"] == "nothing"
    assert changed["only-a"] == "topics/only-a.json, topics/only-a.atom"

    pipeline.rows("DELETE FROM published_files WHERE key = 'topics/only-a.json'")
    failed = materialize("both", "only-b", resources=full(pipeline))
    [failure] = [event for event in failed.all_node_events if event.is_step_failure]
    assert "only-a: no room for topics. 1 of 3 topics were not published." in str(
        failure.event_specific_data.error
    )
    assert counts(pipeline) == {"only-a": 2, "only-b": 3, "both": 3}


def test_partitions_follow_the_registry_and_a_lost_home_gets_its_events_again(
    pipeline: DagsterPipeline,
) -> None:
    assert keys(pipeline) == ["both", "only-a", "only-b"]
    assert launch(pipeline).success
    del pipeline.topics["only-b"]
    pipeline.write_registry()
    pipeline.sync()
    assert keys(pipeline) == ["both", "only-a"]
    event = pipeline.instance.get_latest_materialization_event(REGISTRY)
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["topics"].value == 2
    # As in a home that knows nothing of it: its key goes and comes, and nothing else changed.
    pipeline.instance.delete_dynamic_partition("topics", "both")
    pipeline.instance.wipe_assets([TOPICS])
    pipeline.sync()
    assert launch(pipeline).success
    assert counts(pipeline) == {"only-a": 0, "only-b": 0, "both": 1}


def test_a_poll_in_the_terminal_publishes_after_its_last_round(pipeline: DagsterPipeline) -> None:
    pipeline.set(batch_size=1)
    rounds = pipeline.poll()
    assert [list(round_.published) for round_ in rounds] == [[], [], ["both", "only-a", "only-b"]]
    assert counts(pipeline) == {"only-a": 1, "only-b": 1, "both": 1}
    pipeline.clock.turn(minutes=40)
    assert [list(round_.published) for round_ in pipeline.poll()] == [[], []], "nothing came"


def test_a_purge_of_the_history_leaves_no_topic_grey(pipeline: DagsterPipeline) -> None:
    assert launch(pipeline).success
    pipeline.clock.now += timedelta(days=900)
    before = set(pipeline.instance.get_run_ids())
    job = pipeline.definitions().resolve_job_def("purge_history")
    assert job.execute_in_process(instance=pipeline.instance).success
    assert not before & set(pipeline.instance.get_run_ids())
    assert counts(pipeline) == {"only-a": 1, "only-b": 1, "both": 1}
    [both] = events(pipeline, "both")
    assert both.metadata["entries"].value == 2
    assert both.tags


def test_a_topic_waits_for_the_first_document_of_its_feeds(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    """Published empty, it would have its first items a quarter of an hour later."""
    server.route("127.0.0.2", "/feed", Answer(status=404))
    assert str(tick(pipeline).skip_message) == "No topic is due."
    assert launch(pipeline).success
    assert counts(pipeline) == {"only-a": 0, "only-b": 1, "both": 1}
    pipeline.clock.turn(minutes=1)
    serve(server, "127.0.0.2", "a1")
    pipeline.visit("a")
    request = tick(pipeline)
    assert isinstance(request, dg.RunRequest)
    assert request.tags["rss_pipeline/reason"] == "1 topics changed: only-a."


def test_no_partition_is_unsynced_because_another_feed_has_news(pipeline: DagsterPipeline) -> None:
    """Dagster compares the time of a topic's event with those of all feeds."""
    assert launch(pipeline).success
    pipeline.rows("UPDATE feeds SET change_count = change_count + 1 WHERE id = 'b'")
    assert launch(pipeline).success
    assert counts(pipeline) == {"only-a": 1, "only-b": 1, "both": 1}
    graph = pipeline.definitions().resolve_asset_graph()
    resolver = CachingStaleStatusResolver(pipeline.instance, graph, LoadingContextForTest(pipeline.instance))
    assert {resolver.get_status(TOPICS, topic) for topic in counts(pipeline)} == {StaleStatus.FRESH}


def test_the_graph_says_where_topics_are(pipeline: DagsterPipeline) -> None:
    uri = f"file://{pipeline.settings.objects_path}/topics"
    known = where(pipeline, "topics")
    assert known == {"topics": ({"atom", "json", "sqlite"}, "topics", "sqlite", uri)}
    pipeline.set(**DEPLOYMENTS["cloudflare"])
    known = where(pipeline, "topics")
    assert known == {"topics": ({"atom", "json", "cloudflare", "r2"}, "topics", "d1", "s3://b/topics/")}
