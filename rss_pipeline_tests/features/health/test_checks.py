"""The health checks, evaluated by their job on a real pipeline: what passes, what warns, what is an error."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.health import checks
from rss_pipeline.features.health.sql import BackupLoss, Concerned
from rss_pipeline.features.health.store_checks import backups_there, check_size, database_has_room, disk_room
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline_tests.orchestration.conftest import pipeline
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import NOON, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

__all__ = ["pipeline"]

CHECKS = {
    "no_feed_overdue",
    "feeds_answer",
    "feeds_not_gone",
    "feeds_not_moved",
    "no_gaps",
    "guids_stable",
    "dates_readable",
    "backups_there",
    "database_has_room",
    "no_feed_fills_the_disk",
    "images_had",
    "no_image_backlog",
}


def evaluate(pipeline: DagsterPipeline) -> dict[str, dg.AssetCheckEvaluation]:
    """Run the job; the evaluations by name."""
    job = pipeline.definitions().resolve_job_def("check_health")
    result = job.execute_in_process(instance=pipeline.instance)
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def state(evaluation: dg.AssetCheckEvaluation) -> str:
    return "ok" if evaluation.passed else evaluation.severity.value


def concerned(evaluation: dg.AssetCheckEvaluation) -> list[dict[str, Any]]:
    table = evaluation.metadata["concerned"]
    assert isinstance(table, dg.TableMetadataValue)
    return [dict(record.data) for record in table.records]


@pytest.fixture
def polled(pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    """Three feeds that were visited and are well; `gone` is not there yet."""
    for number, id in enumerate("abc", start=2):
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", Answer(body=rss(id))), id)
    pipeline.visit()
    return pipeline


def test_all_is_well_where_it_is(polled: DagsterPipeline) -> None:
    found = evaluate(polled)
    assert set(found) == CHECKS
    assert {state(evaluation) for evaluation in found.values()} == {"ok"}
    assert found["backups_there"].metadata["feeds_looked_at"].value == 3
    assert found["database_has_room"].metadata["bytes"].value == polled.settings.database.size()
    assert all(evaluation.description for evaluation in found.values())


def test_each_problem_is_reported_by_its_check_with_the_feeds_it_concerns(
    polled: DagsterPipeline, server: FeedServer
) -> None:
    server.route("127.0.0.2", "/feed", Answer(status=410))
    server.route("127.0.0.3", "/feed", Answer(status=500))
    polled.clock.turn(hours=3)
    polled.visit()
    for _ in range(9):
        polled.clock.turn(hours=25)
        polled.visit("b")
    for key in polled.backups("c"):
        polled.objects.delete_many([key])
    found = evaluate(polled)
    told = {name: state(evaluation) for name, evaluation in found.items() if not evaluation.passed}
    assert told == {
        "no_feed_overdue": "ERROR",
        "feeds_answer": "WARN",
        "feeds_not_gone": "WARN",
        "backups_there": "ERROR",
    }
    assert {row["feed"] for row in concerned(found["no_feed_overdue"])} == {"a", "c"}
    [failing] = concerned(found["feeds_answer"])
    assert (failing["feed"], failing["failures"], failing["kind"]) == ("b", 10, "http_status")
    assert failing["last_success"] == instant(NOON + timedelta(seconds=1))
    assert [row["feed"] for row in concerned(found["feeds_not_gone"])] == ["a"]
    assert concerned(found["backups_there"]) == [
        {"feed": "c", "title": "A feed", "backups": "the newest is gone"}
    ]


def test_feeds_of_a_host_that_requested_a_hold_are_due_from_its_end_on(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    for host, id in ((2, "asked-for-it"), (2, "neighbour"), (3, "other")):
        url = server.route(f"127.0.0.{host}", f"/{id}", Answer(body=rss(id)))
        pipeline.register(url, id, interval="30m")
    pipeline.visit()
    server.route("127.0.0.2", "/asked-for-it", Answer(status=429, headers={"Retry-After": "3600"}))
    pipeline.clock.turn(hours=1)
    pipeline.visit("asked-for-it")

    def overdue() -> list[str]:
        return sorted(row["feed"] for row in concerned(evaluate(pipeline)["no_feed_overdue"]))

    pipeline.clock.turn(minutes=10)
    assert overdue() == ["other"]
    pipeline.visit("other")
    found = evaluate(pipeline)["no_feed_overdue"]
    assert found.passed
    assert found.metadata["lag_seconds"].value < 32 * 60, "none of it was our delay"
    pipeline.clock.turn(minutes=77)
    assert overdue() == ["other"]
    pipeline.visit("other")
    pipeline.clock.turn(minutes=2)
    found = evaluate(pipeline)["no_feed_overdue"]
    assert sorted(row["feed"] for row in concerned(found)) == ["asked-for-it", "neighbour"]
    assert found.metadata["lag_seconds"].value < 32 * 60, "none of it was our delay"


def test_the_checks_are_on_the_assets_and_the_schedule_is_on(pipeline: DagsterPipeline) -> None:
    definitions = pipeline.definitions()
    schedule = definitions.resolve_schedule_def("check_health_hourly")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    graph = definitions.resolve_asset_graph()
    assert {key.name for key in graph.asset_check_keys} == CHECKS


def test_a_store_that_is_away_fails_the_run_and_passes_no_check(polled: DagsterPipeline) -> None:
    polled.database.query("DROP TABLE image_tasks")
    job = polled.definitions().resolve_job_def("check_health")
    result = job.execute_in_process(instance=polled.instance, raise_on_error=False)
    assert not result.success
    names = {evaluation.check_name for evaluation in result.get_asset_check_evaluations()}
    assert names == CHECKS - {"images_had", "no_image_backlog"}


@pytest.mark.parametrize(
    ("minutes", "expected", "said"),
    [
        (31, "warning", "1 feed has been due for more than 30 minutes, the longest for 31 minutes"),
        (359, "warning", "the longest for 6 hours"),
        (360, "failure", "the longest for 6 hours"),
        (60 * 24 * 3, "failure", "the longest for 3 days"),
    ],
)
def test_an_overdue_feed_becomes_an_error_with_time(minutes: int, expected: str, said: str) -> None:
    row = {"feed": "a", "due_since": instant(NOON - timedelta(minutes=minutes))}
    check = checks.no_feed_overdue(Concerned(1, [row]), now=NOON)
    assert check.state == expected
    assert said in check.sentences
    assert check.figures == {"feeds": 1, "lag_seconds": minutes * 60}


def test_a_clock_that_was_turned_back_makes_no_negative_lag() -> None:
    row = {"feed": "a", "due_since": instant(NOON + timedelta(hours=1))}
    assert checks.no_feed_overdue(Concerned(1, [row]), now=NOON).figures["lag_seconds"] == 0


def test_images_that_wait_are_summed_over_their_hosts() -> None:
    rows = [
        {"host": "x", "images": 1_200, "due_since": instant(NOON - timedelta(hours=7))},
        {"host": "y", "images": 1, "due_since": instant(NOON - timedelta(hours=6))},
    ]
    check = checks.no_image_backlog(Concerned(2, rows), now=NOON)
    assert check.state == "warning"
    assert check.sentences.startswith("1,201 images of 2 hosts have been due for more than 6 hours")
    many = checks.no_image_backlog(Concerned(3, rows), now=NOON)
    assert many.sentences.startswith("At least 1,201 images of 3 hosts")


@pytest.mark.parametrize(
    ("megabytes_free", "expected"), [(5_000, "ok"), (500, "warning"), (50, "failure")], ids=str
)
def test_a_disk_that_is_full_of_objects_is_reported_though_the_database_is_elsewhere(
    megabytes_free: int, expected: str
) -> None:
    found = [
        check_size(D1Backend(url="", token=""), 1_000_000),
        disk_room(Path("/"), megabytes_free * 1_000_000),
    ]
    check = database_has_room(found, size=1_000_000)
    assert check.state == expected
    assert ("free on the disk" in check.sentences) is (expected != "ok")
    assert check.figures == {"bytes": 1_000_000}


def test_a_feed_that_never_had_a_backup_is_reported_as_such() -> None:
    loss = BackupLoss(feeds=9, looked_at=5, never=["n"], gone=["g"], items=7)
    check = backups_there(loss)
    assert check.state == "failure"
    assert [row["backups"] for row in check.rows] == ["the newest is gone", "none"]
    assert "up to 7 items" in check.sentences


def rows_of_the_operator() -> set[str]:
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text("utf-8")
    return set(re.findall(r"^\| `(\w+)` \| `(?:feed_items|item_images)`", page, flags=re.MULTILINE))


def test_every_check_is_in_the_operator_s_table() -> None:
    names = {check.name for check in checks.all_checks() if check.asset is not None}
    assert names - rows_of_the_operator() == set()
    # The page has those of all features.
    assert rows_of_the_operator() - names <= {"workers_alive"}
