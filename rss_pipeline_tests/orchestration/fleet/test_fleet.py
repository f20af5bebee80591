"""The decisions of a fleet: the queue of a run, and what a worker does with what the broker delivers."""

import dagster as dg
import pytest

from rss_pipeline.orchestration.fleet.coordinator import queue_of
from rss_pipeline.orchestration.fleet.execute_run import ToDo, to_do
from rss_pipeline.orchestration.queueing import BACKFILL_PRIORITY, DAEMON_TAGS, REFRESH_TAGS, UPKEEP_TAGS

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
