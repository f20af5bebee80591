"""The job `clean_store`: what it reports, and the tag and the failure of a run that left something.

What a clean removes is in features/retention/test_clean.py.
"""

from typing import Any

import dagster as dg
import pytest

from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.features.retention import dagster as clean_job
from rss_pipeline.features.retention.dagster import CLEAN_STORE
from rss_pipeline.orchestration.recent_runs import recent_daily_runs
from rss_pipeline.pipeline.triggers.daily import UNFINISHED_TAG
from rss_pipeline_tests.features.retention.archive import NEW, put_backups, stock, visited
from rss_pipeline_tests.orchestration.runs.test_red_runs import assert_first, launched, without_database
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.faulty_stores import Calls, FaultyObjects, Refusing
from rss_pipeline_tests.support.server import FeedServer


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline) -> DagsterPipeline:
    return dagster_pipeline


@pytest.fixture
def stocked(pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    stock(pipeline, server)
    return pipeline


def test_the_job_reports_what_it_removed(stocked: DagsterPipeline) -> None:
    job = stocked.definitions().resolve_job_def(CLEAN_STORE)
    dry = job.execute_in_process(
        instance=stocked.instance, run_config={"ops": {"clean": {"config": {"dry_run": True}}}}
    )
    assert len(stocked.guids("one")) == 5
    real = job.execute_in_process(instance=stocked.instance)
    assert stocked.guids("one") == sorted(NEW)
    said, did = _metadata(dry), _metadata(real)
    assert (did["items_removed"], did["image_bytes_removed"], did["unfinished"]) == (6, 1200, False)
    assert [row.data["feed"] for row in did["by_feed"]] == ["one", "two"]
    assert {**said, "dry_run": False} == did


def _metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    (output,) = (event for event in result.all_events if event.event_type_value == "STEP_OUTPUT")
    return {
        name: value.records if isinstance(value, dg.TableMetadataValue) else value.value
        for name, value in output.event_specific_data.metadata.items()
    }


def test_a_run_that_left_something_is_tagged_and_one_without_a_store_fails(stocked: DagsterPipeline) -> None:
    refusing = Refusing(stocked.objects, lambda key: key.endswith("/0.png"))
    resources = {"objects": dg.ResourceDefinition.hardcoded_resource(refusing)}
    job = stocked.definitions(resources=resources).resolve_job_def(CLEAN_STORE)
    job.execute_in_process(instance=stocked.instance)
    (run,) = stocked.instance.get_runs(dg.RunsFilter(job_name=CLEAN_STORE))
    assert run.tags[UNFINISHED_TAG] == "true"
    down = FaultyObjects(stocked.objects, Calls(1, applied=False), ObjectStoreUnavailable)
    resources = {"objects": dg.ResourceDefinition.hardcoded_resource(down)}
    job = stocked.definitions(resources=resources).resolve_job_def(CLEAN_STORE)
    assert not job.execute_in_process(instance=stocked.instance, raise_on_error=False).success


def test_a_run_goes_on_with_the_backups_where_the_last_one_had_to_stop(
    stocked: DagsterPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_job, "CLEAN_SECONDS", 0.0)
    for id in ("one", "two"):
        put_backups(stocked, id, "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
    stocked.clock.now = visited(stocked, days=31)
    job = stocked.definitions().resolve_job_def(CLEAN_STORE)
    dry = {"ops": {"clean": {"config": {"dry_run": True}}}}
    left = []
    for config in ({}, dry, {}, {}):
        assert job.execute_in_process(instance=stocked.instance, run_config=config).success
        left.append([len(stocked.backups(id)) for id in ("one", "two")])
    assert left == [[1, 3], [1, 3], [1, 1], [1, 1]]
    runs = stocked.instance.get_runs(dg.RunsFilter(job_name=CLEAN_STORE))
    tags = [(run.tags.get(clean_job.BACKUPS_TAG) or "").split("/")[:2] for run in runs]
    assert tags == [["backups", "one"], [""], [""], ["backups", "one"]], "the newest began anew"


def test_a_run_that_would_remove_what_a_wrong_clock_makes_old_is_red_until_it_is_confirmed(
    stocked: DagsterPipeline,
) -> None:
    stocked.clock.turn(days=4)
    job = stocked.definitions().resolve_job_def(CLEAN_STORE)
    red = job.execute_in_process(instance=stocked.instance, raise_on_error=False)
    assert not red.success
    [error] = [event.step_failure_data.error for event in red.all_events if event.is_step_failure]
    assert "rss-pipeline clean --yes" in str(error)
    [run] = recent_daily_runs(stocked.instance, CLEAN_STORE)
    assert run.is_refused, "no other run starts within the hour"
    assert len(stocked.guids("one")) == 5
    confirmed = {"ops": {"clean": {"config": {"yes": True}}}}
    assert job.execute_in_process(instance=stocked.instance, run_config=confirmed).success
    assert stocked.guids("one") == sorted(NEW)


def test_a_database_that_cannot_be_opened_is_the_first_word_of_the_run(pipeline: DagsterPipeline) -> None:
    path = without_database(pipeline)
    assert_first(pipeline, launched(pipeline, CLEAN_STORE), f"{path}: unable to open database file")
