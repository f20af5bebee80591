"""The decisions of a fleet: the queue of a run, and what a worker does with what the broker delivers."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline.features.fleet.dagster import WorkerPlaces, places_of, queue_of
from rss_pipeline.features.fleet.execute_run import ToDo, to_do
from rss_pipeline.features.fleet.model import DEFAULT, UNSEEN
from rss_pipeline.features.fleet.sql import fleet, join
from rss_pipeline.orchestration.queueing import BACKFILL_PRIORITY, DAEMON_TAGS, REFRESH_TAGS, UPKEEP_TAGS
from rss_pipeline_tests.features.fleet.machines import machine, main
from rss_pipeline_tests.support.databases import migrated

Status = dg.DagsterRunStatus


@pytest.mark.parametrize(
    ("tags", "queue"),
    [
        ({}, "high"),
        (REFRESH_TAGS, "high"),
        (DAEMON_TAGS, "default"),
        (UPKEEP_TAGS, "default"),
        ({"dagster/backfill": "abc"}, "default"),
        ({"dagster/backfill": "abc", "dagster/priority": BACKFILL_PRIORITY}, "default"),
        ({"dagster/priority": "soon"}, "high"),
    ],
)
def test_what_a_person_waits_for_has_a_queue_of_its_own(tags: dict[str, str], queue: str) -> None:
    assert queue_of(tags) == queue


def test_a_run_is_executed_if_it_has_not_begun() -> None:
    assert {status: to_do(status) for status in Status} == {
        Status.NOT_STARTED: ToDo.EXECUTE,
        Status.STARTING: ToDo.EXECUTE,
        Status.CANCELING: ToDo.CANCEL,
        Status.STARTED: ToDo.END_IF_DEAD,
        **dict.fromkeys((Status.QUEUED, Status.MANAGED, Status.SUSPENDED), ToDo.NOTHING),
        **dict.fromkeys((Status.SUCCESS, Status.FAILURE, Status.CANCELED), ToDo.NOTHING),
    }
    assert to_do(None) is ToDo.NOTHING, "it was deleted"


def test_as_many_runs_leave_the_queue_as_the_living_workers_have_places(tmp_path: Path) -> None:
    with closing(migrated(tmp_path / "rss.sqlite")) as database:
        both = machine("a", runs_at_once=3)
        one = machine("b", "b", queues=(DEFAULT,), runs_at_once=4)
        for member in (main(), both, one):
            assert join(database, member, clock_offset=0)
        found = fleet(database)
    assert places_of(found) == WorkerPlaces(default=7, high=1)
    assert places_of(replace(found, now=found.now + UNSEEN)) == WorkerPlaces(default=0, high=0)
    assert WorkerPlaces(default=7, high=1).limits() == [
        {"key": "dagster-celery/queue", "value": "default", "limit": 7},
        {"key": "dagster-celery/queue", "value": "high", "limit": 1},
    ]


def test_backfills_and_replays_have_a_third_of_the_places_where_that_is_more() -> None:
    places = WorkerPlaces(default=48, high=24)
    assert places.raised({"key": "rss_pipeline/replay", "limit": 2}) == {
        "key": "rss_pipeline/replay",
        "limit": 16,
    }
    assert places.raised({"key": "dagster/backfill", "limit": 20})["limit"] == 20
    assert WorkerPlaces().raised({"key": "dagster/backfill", "limit": 2})["limit"] == 2
    for other in ({"key": "theirs", "limit": 1}, {"key": "dagster/backfill", "value": "abc", "limit": 1}):
        assert places.raised(other) == other
