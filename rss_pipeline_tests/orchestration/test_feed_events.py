"""The event of a feed says where it is requested, where it redirects to, and what was probably missed."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.reporting.feeds import heartbeats, report_changes, report_named
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Visit
from rss_pipeline.storage.database import Database, Result, Value
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline_tests.pipeline.visits.test_gaps import undated
from rss_pipeline_tests.storage.values import claim_one, item, store
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE, soon


def test_a_feed_that_moved_says_so_in_its_events(pipeline: DagsterPipeline, server: FeedServer) -> None:
    new = server.route("127.0.0.3", "/rss", Answer(body=rss("a"), etag='"new"'))
    pipeline.register(
        server.route("127.0.0.2", "/feed", Answer(status=301, headers={"Location": new})), "moved"
    )
    for days in (0, 6.9, 1, 1):
        pipeline.clock.turn(days=days)
        pipeline.poll()
    newest, *_, first = pipeline.events("moved")
    assert (newest["asked_at"], newest["items_new"]) == (new, 0)
    assert first["redirects_for_good_to"] == new
    assert "asked_at" not in first


def test_items_that_were_probably_missed_are_reported_once(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    answers = [undated("a", "b", "c"), undated("b", "c", "d"), undated("e", "f", "g"), undated("g", "h", "i")]
    pipeline.register(server.route("127.0.0.2", "/feed", *answers), "fast")
    for _ in answers:
        pipeline.clock.turn(hours=1)
        pipeline.poll(all_feeds=True)
    after, event, *before = pipeline.events("fast")
    assert event["gaps"] == 1
    assert event["gap"].startswith("no item in common with the document before")
    assert not any("gap" in other for other in (after, *before))


def observations(pipeline: DagsterPipeline, id: str) -> list[dict[str, Any]]:
    """Metadata and description of the feed's observations, newest first."""
    found = pipeline.instance.fetch_observations(
        dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=[id]), limit=100
    )
    return [
        {
            "description": each.description,
            **{name: value.value for name, value in each.metadata.items()},
        }
        for record in found.records
        if (each := record.asset_observation) is not None
    ]


def test_a_feed_that_fails_has_an_observation_on_its_key(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    """Which failures have one is tested without Dagster in pipeline/visits/test_failure_reports.py."""
    url = server.route("127.0.0.2", "/feed", Answer(status=404))
    pipeline.register(url, "broken", title="The Broken Gazette")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("a"))), "fine")
    for _ in range(2):
        pipeline.clock.turn(hours=1)
        pipeline.poll(all_feeds=True)
    row = pipeline.feed("broken")
    assert row["consecutive_failures"] == 2
    [observed] = observations(pipeline, "broken")
    assert observed["title"] == "The Broken Gazette"
    assert observed["kind"] == "http_status"
    assert observed["reason"] == row["last_error"]
    assert observed["description"] == f"Failed (http_status): {row['last_error']}"
    assert observed["failures_in_a_row"] == 1
    assert observed["last_success"] == "never"
    assert observed["feed"] == url

    # The asset's own runs report as the poll job's do.
    server.route("127.0.0.2", "/feed", Answer(status=410))
    pipeline.clock.turn(hours=1)
    assert not pipeline.materialize("broken").success
    newest, _ = observations(pipeline, "broken")
    next_visit = from_instant(pipeline.feed("broken")["next_fetch_at"])
    assert next_visit is not None
    assert (newest["kind"], newest["failures_in_a_row"]) == ("gone", 3)
    assert newest["next_visit"] == next_visit.timestamp()
    assert newest["next_visit_reason"] == pipeline.feed("broken")["schedule_reason"]
    # A visit by hand has one each time.
    assert not pipeline.materialize("broken").success
    assert [each["failures_in_a_row"] for each in observations(pipeline, "broken")] == [4, 3, 1]
    assert observations(pipeline, "fine") == []


def turns(pipeline: DagsterPipeline) -> list[dict[str, Any]]:
    """The leases of runs that report."""
    return pipeline.rows("SELECT token FROM leases WHERE awaited <> '[]'")


class Watched:
    """A database that notes the names of its queries."""

    def __init__(self, real: Database, names: list[str]) -> None:
        self._real = real
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        found = self._real.query(sql, params, name=name)
        self._names.append(name)
        return found


def test_runs_that_report_at_once_record_each_change_once(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "a")
    pipeline.sync()
    feed, token = claim_one(pipeline.database, now=pipeline.clock())
    store(pipeline.database, feed, token, [item("1"), item("2")], at=pipeline.clock())
    looks: list[str] = []
    with pipeline.session() as one, pipeline.session() as other, ThreadPoolExecutor() as pool:
        watched = replace(other.run, database=Watched(other.run.database, looks))
        first = report_changes(one.run, pipeline.instance, [])
        assert [event.partition for event in next(first)] == ["a"]
        second = pool.submit(lambda: [*report_changes(watched, pipeline.instance, [])])
        soon(lambda: looks.count("begin a turn") > 1)
        assert next(first, None) is None
        assert not any(second.result(timeout=PATIENCE))
        visit = Visit(feed=feed, token="", outcome=HeldElsewhere())
        named: Iterator[Any] = report_named(one.run, [visit])
        for report, items_new in ((named, 2), (heartbeats(one.run, ["a"]), 0)):
            [only] = next(report)
            assert only.metadata["items_new"].value == items_new
            assert len(turns(pipeline)) == 1
            assert next(report, None) is None


def test_a_run_says_what_it_or_the_run_it_waited_for_stored(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    """Also where another run has recorded the change: it said 0 of a feed that had just been stored."""
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"))), "feed")
    with pipeline.session() as other:
        [stored] = pipeline.run(Named(ids=["feed"], now=pipeline.clock()))
        waited = Visit(feed=stored.feed, token="", outcome=HeldElsewhere())
        assert [said(other.run, each) for each in (stored, waited)] == [2, 2]
        # A visit that finds nothing new stores nothing, whoever waited for it.
        pipeline.clock.turn(minutes=10)
        [unchanged] = pipeline.run(Named(ids=["feed"], now=pipeline.clock()))
        assert [said(other.run, each) for each in (unchanged, waited)] == [0, 0]


def said(run: RunContext, visit: Visit) -> Any:
    """The new items of the event of a visit by hand."""
    [[event]] = report_named(run, [visit])
    return event.metadata["items_new"].value


def test_a_run_reports_what_there_was_and_not_what_others_bring_meanwhile(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "a")
    pipeline.sync()

    def visit_elsewhere() -> None:
        feed, token = claim_one(pipeline.database, now=pipeline.clock())
        store(pipeline.database, feed, token, [item("1")], at=pipeline.clock())

    visit_elsewhere()
    with pipeline.session() as session:
        first = report_changes(session.run, pipeline.instance, [])
        assert len(next(first)) == 1
        visit_elsewhere()
        assert next(first, None) is None
        assert turns(pipeline) == [], "nobody waits for it"
        assert len(next(report_changes(session.run, pipeline.instance, []))) == 1
