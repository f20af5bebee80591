"""The ends of a job's last runs, as Dagster itself has written them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, InstigatorType
from dagster._daemon import DEFAULT_DAEMON_HEARTBEAT_TOLERANCE_SECONDS
from dagster._daemon.types import DaemonHeartbeat

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.health.cli import (
    daemon_state,
    last_runs,
    on_from_the_start,
)
from rss_pipeline.features.health.dagster import build_alerts
from rss_pipeline.features.health.doctor import DAEMON_SILENT
from rss_pipeline.orchestration.serving.daemon import HEARTBEAT_SECONDS
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline


@dg.op(config_schema=bool)
def fail_if(context: dg.OpExecutionContext) -> None:
    if context.op_config:
        raise dg.Failure("on purpose")


@dg.job
def a_job() -> None:
    fail_if()


def test_the_last_success_and_the_last_failure_of_a_job(
    dagster_pipeline: DagsterPipeline, instance: dg.DagsterInstance
) -> None:
    ends = []
    for fails in (False, True, False):
        result = a_job.execute_in_process(
            instance=instance, raise_on_error=False, run_config={"ops": {"fail_if": {"config": fails}}}
        )
        [record] = instance.get_run_records(dg.RunsFilter(run_ids=[result.run_id]))
        ends.append(record.end_time)
    known = last_runs(dagster_pipeline.settings)["a_job"]
    assert known.last_success == pytest.approx(ends[2])
    assert known.last_failure == pytest.approx(ends[1])


def test_the_daemon_s_last_sign_of_life_and_what_a_person_switched_off(
    dagster_pipeline: DagsterPipeline, instance: dg.DagsterInstance
) -> None:
    settings = dagster_pipeline.settings
    definitions = dagster_pipeline.definitions()
    assert on_from_the_start(settings) == {
        each.name
        for each in (*(definitions.sensors or ()), *(definitions.schedules or ()))
        if each.default_status.value == "RUNNING"
    }
    assert daemon_state(settings).switched_off == ()
    location = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("rss_pipeline"), "__repository__")
    for name in ("poll_feeds_when_due", "alert_run_failed"):
        origin = RemoteInstigatorOrigin(location, name)
        state = InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.STOPPED)
        instance.add_instigator_state(state)
    seen = datetime(2026, 3, 2, 12, 0, 30, tzinfo=UTC)
    instance.add_daemon_heartbeat(DaemonHeartbeat(seen.timestamp(), "SENSOR", "x", []))
    found = daemon_state(settings)
    assert (found.seen_at, found.switched_off) == (seen, ("poll_feeds_when_due",))
    heard = replace(settings, alert_webhook="https://hooks.example.org/x")
    alerting = {each.name for each in build_alerts(heard, clock=utc_now)}
    assert on_from_the_start(heard) - on_from_the_start(settings) == alerting
    assert daemon_state(heard).switched_off == ("alert_run_failed", "poll_feeds_when_due")


def test_a_daemon_that_runs_is_there_for_the_ui_and_for_doctor_until_its_next_heartbeat() -> None:
    assert 2 * HEARTBEAT_SECONDS < DEFAULT_DAEMON_HEARTBEAT_TOLERANCE_SECONDS
    assert timedelta(seconds=2 * HEARTBEAT_SECONDS) < DAEMON_SILENT
