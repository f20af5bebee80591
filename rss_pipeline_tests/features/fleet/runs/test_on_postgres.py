"""Dagster's tables in Postgres: all that knows Dagster's SQLite files does its work there as well."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import LaunchRunContext
from dagster._core.scheduler.instigation import SensorInstigatorData
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster_postgres.event_log import PostgresEventLogStorage

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.fleet.dagster import FleetRunCoordinator
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.health.cli import last_runs
from rss_pipeline.orchestration.instance.clock_shift import heal_ticks
from rss_pipeline.orchestration.instance.dead_runs import end_dead_runs, host_tags
from rss_pipeline.orchestration.instance.forget_feed import forget_feed
from rss_pipeline.orchestration.instance.home import instance_without_output, is_untouched
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.settings import Settings
from rss_pipeline_tests.orchestration.instance.test_dead_runs import started
from rss_pipeline_tests.orchestration.instance.test_record_events import reporting
from rss_pipeline_tests.orchestration.instance.test_tick_history import Instigator
from rss_pipeline_tests.orchestration.upkeep.test_purge import OLD, green, run_ids
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.postgres import PASSWORD

pytestmark = pytest.mark.slow


def rows(pipeline: DagsterPipeline, sql: str) -> list[tuple[Any, ...]]:
    """The schemas of Dagster's tables and ours, in one database."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        found = connection.execute(sql.encode())
        return found.fetchall() if found.description else []


def purged(pipeline: DagsterPipeline) -> dict[str, Any]:
    result = (
        pipeline.definitions().resolve_job_def("purge_history").execute_in_process(instance=pipeline.instance)
    )
    [output] = [event for event in result.all_node_events if event.is_successful_output]
    return {name: value.value for name, value in output.step_output_data.metadata.items()}


def test_a_fleet_s_instance_has_its_tables_beside_ours_and_no_secret_in_its_file(
    fleet: Settings, on_postgres: DagsterPipeline
) -> None:
    instance = on_postgres.instance
    assert isinstance(instance.event_log_storage, PostgresEventLogStorage)
    assert isinstance(instance.run_coordinator, FleetRunCoordinator)
    assert isinstance(instance.compute_log_manager, LocalComputeLogManager), "for the lines of ticks"
    assert (instance.run_monitoring_enabled, instance.run_retries_max_retries) == (True, 2)
    assert not instance.run_retries_retry_on_asset_or_op_failure
    tables = rows(on_postgres, "SELECT schemaname FROM pg_tables WHERE tablename IN ('runs', 'feeds')")
    assert sorted(tables) == [("dagster",), ("public",)]
    text = (fleet.dagster_home / "dagster.yaml").read_text("utf-8")
    assert is_untouched(text)
    assert "DAGSTER_DATABASE_URL" in text
    for shown in (text, instance.info_str()):
        assert PASSWORD not in shown
        assert "sEcReT" not in shown
    with instance_without_output(fleet.dagster_home) as of_a_run:
        assert not isinstance(of_a_run.compute_log_manager, LocalComputeLogManager)


def test_times_are_utc_whatever_the_server_s_time_zone_is(on_postgres: DagsterPipeline) -> None:
    [(zone,)] = rows(on_postgres, "SHOW timezone")
    assert zone == "Asia/Tokyo"
    run = on_postgres.instance.create_run_for_job(purge_history)
    record = on_postgres.instance.get_run_record_by_id(run.run_id)
    assert record is not None
    assert abs(record.create_timestamp.replace(tzinfo=UTC) - datetime.now(UTC)) < timedelta(minutes=10)
    on_postgres.instance.delete_run(run.run_id)


def test_a_poll_is_recorded_and_its_run_purged_and_no_feed_turns_grey(
    fleet: Settings, on_postgres: DagsterPipeline, server: FeedServer
) -> None:
    pipeline = on_postgres
    pipeline.clock.now = utc_now()
    for n in range(3):
        url = server.route(f"127.0.0.{n + 2}", "/feed", Answer(body=rss(f"{n}-a"), etag='"1"'))
        pipeline.register(url, f"feed-{n}", interval="30m")
    pipeline.poll()
    assert green(pipeline) == ["feed-0", "feed-1", "feed-2"]
    assert [event["items_new"] for event in pipeline.events("feed-0")] == [1]
    [record] = pipeline.instance.get_run_records()
    assert last_runs(fleet)["poll_feeds"].last_success == pytest.approx(record.end_time)
    before = run_ids(pipeline)
    rows(
        pipeline,
        f"UPDATE dagster.runs SET update_timestamp = update_timestamp - interval '{OLD.days} days'",
    )
    figures = purged(pipeline)
    assert (figures["runs_removed"], figures["heartbeats"], figures["runs_left"]) == (1, 3, 0)
    assert figures["events_removed"] > 20
    assert run_ids(pipeline).isdisjoint(before)
    for table in ("event_logs", "run_tags", "asset_check_executions"):
        assert not {run for (run,) in rows(pipeline, f"SELECT run_id FROM dagster.{table}")} & before
    assert green(pipeline) == ["feed-0", "feed-1", "feed-2"]
    assert purged(pipeline)["heartbeats"] == 0
    pipeline.feeds.pop()
    pipeline.write_registry()
    pipeline.sync()
    assert forget_feed(pipeline.database, pipeline.instance, "feed-2")["items"] == 1
    assert pipeline.instance.get_dynamic_partitions("feeds") == ["feed-0", "feed-1"]


def test_events_recorded_together_are_those_that_an_op_would_yield(on_postgres: DagsterPipeline) -> None:
    found = {}
    for how in ("recorded", "yielded"):
        result = reporting.execute_in_process(
            instance=on_postgres.instance, run_config={"ops": {"report": {"inputs": {"how": how}}}}
        )
        found[how] = [
            rows(on_postgres, sql.format(id=result.run_id))
            for sql in (
                "SELECT dagster_event_type, step_key, asset_key, partition FROM dagster.event_logs"
                " WHERE run_id = '{id}' AND dagster_event_type LIKE 'ASSET%' ORDER BY id",
                "SELECT t.asset_key, t.key, t.value FROM dagster.asset_event_tags AS t"
                " JOIN dagster.event_logs AS e ON e.id = t.event_id WHERE e.run_id = '{id}' ORDER BY t.id",
                "SELECT asset_key, last_run_id = '{id}' FROM dagster.asset_keys"
                " WHERE asset_key IN ('[\"news\"]', '[\"other\"]') ORDER BY 1",
            )
        ]
    assert found["recorded"] == found["yielded"]
    assert [len(part) for part in found["recorded"]] == [4, 1, 2]


def test_dead_runs_are_ended_and_sensors_and_their_ticks_are_kept_in_order(
    fleet: Settings, on_postgres: DagsterPipeline
) -> None:
    instance = on_postgres.instance
    dead = started(instance, 2**22, host_tags())
    ended = end_dead_runs(
        instance,
        now=utc_now() + timedelta(minutes=5),
        silence=timedelta(minutes=3),
        live_runs=lambda: (),
    )
    assert ended == [dead]
    assert last_runs(fleet)["purge_history"].last_failure is not None
    sensor = Instigator(instance, "__repository__", "when_due", InstigatorType.SENSOR)
    ahead = (utc_now() + timedelta(hours=20)).timestamp()
    data = SensorInstigatorData(last_tick_timestamp=ahead, last_tick_start_timestamp=ahead)
    instance.add_instigator_state(sensor.state.with_data(data))
    assert heal_ticks(instance, now=utc_now()) == 1
    on_postgres.clock.now = utc_now()
    old, newest = sensor.tick(OLD), sensor.tick(timedelta(0))
    figures = purged(on_postgres)
    assert (figures["ticks_removed"], figures["files_removed"]) == (1, 1)
    assert (old.exists(), newest.exists()) == (False, True)


def test_a_history_that_cannot_be_read_has_no_times_of_runs(fleet: Settings) -> None:
    own = fleet.of(FleetSettings)
    assert own is not None
    nowhere = replace(own, dagster_url="postgresql+psycopg2://127.0.0.1:1/none")
    assert last_runs(replace(fleet, of_features=(nowhere,))) == {}


def test_a_broker_that_does_not_answer_leaves_the_run_in_the_queue(on_postgres: DagsterPipeline) -> None:
    """The daemon puts a run back for this error, and for no other."""
    run = on_postgres.instance.create_run_for_job(purge_history)
    context = LaunchRunContext(dagster_run=run, workspace=None)
    with pytest.raises(DagsterUserCodeUnreachableError) as refused:
        on_postgres.instance.run_launcher.launch_run(context)
    assert "RSS_BROKER_URL" in str(refused.value)
    assert "sEcReT" not in str(refused.value)
    on_postgres.instance.delete_run(run.run_id)
