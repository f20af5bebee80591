"""The poll job and the asset: the events and data versions of feeds, and which keys turn red.

What a poll stores and schedules is in pipeline/visits/test_visits.py.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from rss_pipeline.orchestration.jobs import poll_feeds
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def outcome(visit: Any) -> type:
    return type(visit.outcome)


def test_a_first_poll_reports_its_feed(pipeline: DagsterPipeline, server: FeedServer) -> None:
    body = rss("a", "b", title="The feed")
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=body)), "feed")
    bad = pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "bad")
    pipeline.poll()
    (event,) = pipeline.events(id)
    assert (event["items_seen"], event["items_new"], event["http_status"]) == (2, 2, 200)
    assert event["body_bytes"] == len(body)
    assert event["charset"].startswith("utf-8")
    assert event["backup_key"] == pipeline.backups(id)[0]
    assert (event["feed"], event["site"]) == (server.url(HOST, "/feed"), "http://example.com/")
    assert event["next_visit_reason"] == pipeline.feed(id)["schedule_reason"]
    assert isinstance(event["fetch_ms"], int)
    assert pipeline.events(bad) == [], "a feed that fails does not fail the run, and has no event"


def test_a_data_version_changes_with_new_items_only(pipeline: DagsterPipeline, server: FeedServer) -> None:
    id = pipeline.register(
        server.route(
            HOST, "/feed", Answer(body=rss("a"), etag='"1"'), Answer(body=rss("a", "b"), etag='"2"')
        ),
        "feed",
    )
    versions = []
    for days in (0, 1, 1, 8):
        pipeline.clock.turn(days=days)
        if days == 8:
            server.route(HOST, "/feed", Answer(body=rss("a", "b"), etag='"2"'))
        pipeline.poll(all_feeds=True)
        record = pipeline.latest_record(id)
        versions.append(record.asset_materialization.tags["dagster/data_version"])
    assert versions[0] != versions[1]
    assert versions[1:] == [versions[1]] * 3
    assert len(pipeline.events(id)) == 3, "none of an unchanged feed, but a heartbeat after a week"


def test_materializing_feeds_by_hand_visits_each_and_turns_exactly_the_failed_ones_red(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    good = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"), etag='"1"')), "good")
    bad = pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=500)), "bad")
    also = pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss("b"), etag='"1"')), "also")
    pipeline.sync()
    result = pipeline.materialize(good, bad, also)
    assert not result.success
    assert [len(pipeline.events(id)) for id in (good, bad, also)] == [1, 0, 1]
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    assert failure.step_key == "feed_items.report"
    assert "1 of 3 feeds were not collected: bad" in str(failure.event_specific_data.error)

    again = pipeline.materialize(good)
    assert again.success
    assert [event["http_status"] for event in pipeline.events(good)] == [304, 200]
    assert server.requests[-1].headers["if-none-match"] == '"1"', "by hand is conditional too"


def test_a_feed_that_another_run_holds_is_waited_for_and_reported_with_that_result(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    """The other run dies meanwhile: its lease lapses, and the feed is visited here."""
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.sync()
    pipeline.hold(id)
    pipeline.after(0.5, pipeline.lapse_leases)
    result = pipeline.materialize(id)
    assert result.success
    assert pipeline.guids(id) == ["a"]


class Unread(list[Any]):
    """A list that must not be walked through."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("Dagster looks at each visit, before and after each op")


def check_types(job: dg.JobDefinition) -> None:
    """Dagster checks the type of each list between two ops of this job, and looks at no visit in it."""
    ops = [node.definition for node in job.nodes_in_topological_order if node.name != "publish"]
    types = [end.dagster_type for op in ops for end in op.input_defs]
    types += [end.dagster_type for op in ops for end in op.output_defs]
    carrying = [type for type in types if not type.is_nothing]
    assert len(carrying) == 2 * (len(ops) - 1)
    context: Any = None
    for type in carrying:
        assert type.type_check(context, Unread([1])).success
        assert not type.type_check(context, ()).success


def test_dagster_checks_the_type_of_a_list_of_visits_and_of_none_of_them() -> None:
    check_types(poll_feeds)
