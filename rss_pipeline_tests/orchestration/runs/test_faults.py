"""Faults of the stores in runs of Dagster: the run fails with a sentence, and no item is reported twice.

Faults at every place of a poll are made without Dagster in pipeline/visits/faults/test_faults.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest

from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline_tests.pipeline.visits.faults.test_faults import (
    FEEDS,
    PLACES,
    SENTENCES,
    Fault,
    assert_complete,
    assert_nothing_lost_yet,
    serve,
    statement,
    trap,
)
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

MARK = statement("mark reported")


@pytest.fixture
def feeds(pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    serve(pipeline, server)
    return pipeline


def trapped(
    pipeline: DagsterPipeline, at: Callable[[Statement], bool], spring: Callable[[Database], None]
) -> dict[str, Any]:
    """The run's database with a trap in it."""

    def open_database(context: dg.InitResourceContext) -> Iterator[Database]:
        database = trap(pipeline, at, spring)()
        yield database
        database.close()

    return {"database": dg.ResourceDefinition(open_database)}


@pytest.mark.parametrize("place", ["close", "mark"])
def test_a_run_with_a_database_that_fails_says_so_and_each_item_is_reported_once(
    place: str, feeds: DagsterPipeline
) -> None:
    with Fault(feeds.settings.database_path) as faults:
        resources = trapped(feeds, {**PLACES, "mark": MARK}[place], faults.read_only)
        (round_,) = feeds.try_poll(resources=resources)
    assert round_.error is not None
    assert SENTENCES["read_only"] in round_.error
    assert_nothing_lost_yet(feeds)
    feeds.lapse_leases()
    feeds.clock.turn(minutes=10)
    feeds.poll(all_feeds=True)
    assert_complete(feeds)


def test_a_poll_killed_between_the_last_event_and_its_mark_reports_no_item_twice(
    feeds: DagsterPipeline, server: FeedServer
) -> None:
    """The feeds have changed again meanwhile: the second event has the new items only."""
    with Fault(feeds.settings.database_path) as faults:
        feeds.try_poll(resources=trapped(feeds, MARK, faults.read_only))
    assert feeds.feed("one")["reported_count"] == 0
    assert len(feeds.events("one")) == 1
    server.route("127.0.0.2", "/feed", Answer(body=rss("a0", "a1", "a2", "a3"), etag='"more"'))
    feeds.poll(all_feeds=True)
    assert [event["items_new"] for event in feeds.events("one")] == [1, 3]
    assert len(feeds.events("two")) == 1


def test_a_backfill_that_fails_while_it_waits_has_reported_what_went_well(feeds: DagsterPipeline) -> None:
    """Else feeds that were collected would stay red, and an unchanged one for good."""
    feeds.hold("big")
    waits_for_it = statement("choose feeds", of='["big"]')
    with Fault(feeds.settings.database_path) as faults:
        job = feeds.definitions(
            resources=trapped(feeds, waits_for_it, faults.read_only)
        ).resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(
            instance=feeds.instance,
            raise_on_error=False,
            asset_selection=[FEED_ITEMS],
            tags={"dagster/asset_partition_range_start": "one", "dagster/asset_partition_range_end": "big"},
        )
    assert not result.success
    assert [len(feeds.events(id)) for id in FEEDS] == [1, 1, 0]
