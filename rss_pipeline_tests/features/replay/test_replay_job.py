"""The jobs `replay_backups` and `replay_all`: a run of a partition, its observations, and what fails it.

What a replay does to the rows is in features/replay/test_replay.py.
"""

from typing import Any

import dagster as dg
import pytest

from rss_pipeline.features.replay.dagster import REPLAY_BACKUPS, replay_backups
from rss_pipeline.features.replay.service import parts
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline_tests.features.replay.replays import all_rows, collected, poll_over_time, serve
from rss_pipeline_tests.features.replay.yesterdays_parser import poll_with_worse_parser
from rss_pipeline_tests.orchestration.runs.test_poll_job import check_types
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import FeedServer


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline) -> DagsterPipeline:
    return dagster_pipeline


def run_replay_job(pipeline: DagsterPipeline, id: str, **config: bool) -> dg.ExecuteInProcessResult:
    """A run of the job for one partition."""
    job = pipeline.definitions().resolve_job_def(REPLAY_BACKUPS)
    return job.execute_in_process(
        instance=pipeline.instance,
        partition_key=id,
        raise_on_error=False,
        run_config={"ops": {"open_backups": {"config": config}}},
    )


def _metadata(run: dg.ExecuteInProcessResult) -> dict[str, Any]:
    [event] = [
        event
        for event in run.all_events
        if event.step_key == "report_replay" and event.event_type_value == "STEP_OUTPUT"
    ]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def test_the_job_replays_one_partition_and_observes_it(
    pipeline: DagsterPipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = pipeline
    poll_with_worse_parser(place, server, monkeypatch)
    rows = all_rows(place)
    run = run_replay_job(place, "one", dry_run=True, repair=True)
    assert run.success
    told = _metadata(run)
    assert (told["items_new"], told["items_differ"], told["backups"]) == (2, 3, 2)
    table = [record.data for record in told["items"].records]
    assert {
        "what": "differs",
        "title": "Title of dateless",
        "fields": "pub_date, pub_date_source",
    }.items() <= next(row for row in table if row["title"] == "Title of dateless").items()
    assert all_rows(place) == rows

    assert run_replay_job(place, "one", repair=True).success
    assert "missed" in place.guids("one")
    [record, _] = place.instance.fetch_observations(
        dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=["one"]), limit=5
    ).records
    observation = record.event_log_entry.asset_observation
    assert observation is not None
    assert observation.metadata["items_repaired"] == dg.MetadataValue.int(3)
    assert place.guids("two") == ["fine", "ghost", "x"]


def test_the_job_can_be_run_without_any_config(pipeline: DagsterPipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a"))
    serve(pipeline, server, "new", rss("b"))
    pipeline.visit("one")
    job = pipeline.definitions().resolve_job_def("replay_backups")
    for key in ("one", "new"):
        assert job.execute_in_process(instance=pipeline.instance, partition_key=key).success
    assert job.tags["dagster/priority"] == "-2"
    assert job.partitions_def is not None


def test_a_run_of_the_job_fails_where_a_backup_cannot_be_read_after_all_others_were(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a"), b"<html>down</html>")
    poll_over_time(pipeline, 2)
    assert run_replay_job(pipeline, "one").success, "a page in place of a feed brought nothing then either"
    pipeline.objects.put("backups/one/9.xml", b"?", content_type="text/xml")
    pipeline.database.query("DELETE FROM items")
    run = run_replay_job(pipeline, "one")
    assert not run.success
    [failure] = [event for event in run.all_events if event.event_type_value == "STEP_FAILURE"]
    data: Any = failure.event_specific_data
    assert "1 of 3 backups could not be read" in data.user_failure_data.description
    assert pipeline.guids("one") == ["a"]


def run_part(pipeline: DagsterPipeline, part: str, **config: bool) -> dg.ExecuteInProcessResult:
    """A run of the job `replay_all` for one of its partitions."""
    job = pipeline.definitions().resolve_job_def("replay_all")
    return job.execute_in_process(
        instance=pipeline.instance,
        partition_key=part,
        raise_on_error=False,
        run_config={"ops": {"replay_part": {"config": config}}},
    )


def _of_parts(pipeline: DagsterPipeline) -> dict[str, str]:
    """The ids of `one` and `two` by the parts that they are in."""
    of_all = parts(pipeline.settings.shards)
    found = {str(part): id for part in of_all for id in ("one", "two") if part.has(id)}
    assert len(found) == 2
    return found


def test_a_run_of_a_part_replays_its_feeds_and_reports_those_that_changed(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a", "b"))
    serve(pipeline, server, "two", rss("c"))
    pipeline.poll()
    before = collected(pipeline)
    pipeline.database.query("DELETE FROM items")
    found = _of_parts(pipeline)
    for part, id in found.items():
        assert run_part(pipeline, part, dry_run=True).success
        assert pipeline.guids(id) == []
        run = run_part(pipeline, part)
        assert run.success
        [output] = [event.step_output_data for event in run.all_events if event.is_successful_output]
        metadata = {name: value.value for name, value in output.metadata.items()}
        assert (metadata["feeds"], metadata["items_new"]) == (1, len(pipeline.guids(id)))
        assert [row.data["feed"] for row in metadata["changed_feeds"].records] == [id]
        filter_ = dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=[id])
        assert len(pipeline.instance.fetch_observations(filter_, limit=5).records) == 2
        assert run_part(pipeline, part).success
        assert len(pipeline.instance.fetch_observations(filter_, limit=5).records) == 2, "nothing is new"
    assert collected(pipeline) == before


def test_a_part_with_a_backup_that_cannot_be_read_fails_after_all_others_were(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a"))
    serve(pipeline, server, "two", rss("b"))
    pipeline.poll()
    pipeline.objects.put("backups/one/9.xml", b"?", content_type="text/xml")
    pipeline.database.query("DELETE FROM items")
    runs = {id: run_part(pipeline, part) for part, id in _of_parts(pipeline).items()}
    assert {id: run.success for id, run in runs.items()} == {"one": False, "two": True}
    [failure] = [event for event in runs["one"].all_events if event.event_type_value == "STEP_FAILURE"]
    data: Any = failure.event_specific_data
    assert "1 of 2 backups could not be read" in data.user_failure_data.description
    assert (pipeline.guids("one"), pipeline.guids("two")) == (["a"], ["b"])


def test_dagster_checks_the_type_of_a_list_of_backups_and_of_none_of_them() -> None:
    check_types(replay_backups)
