"""The schedules of cleans: when they tick and when they start one.

The decisions are in pipeline/triggers/test_clean.py.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from dagster._utils.schedules import schedule_execution_time_iterator

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.retention.dagster import CLEAN_STORE, clean_store
from rss_pipeline.orchestration.queueing import UPKEEP_TAGS
from rss_pipeline.orchestration.recent_runs import recent_daily_runs
from rss_pipeline.pipeline.triggers.daily import (
    LONGEST_RUN,
    UNFINISHED_TAG,
    DailyRun,
)
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import NOON


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline) -> DagsterPipeline:
    return dagster_pipeline


def run(state: str, minutes: float = 60, *, unfinished: bool = False) -> DailyRun:
    """A run made so many minutes ago."""
    made = NOON - timedelta(minutes=minutes)
    return DailyRun(run_id="r" * 12, state=state, created_at=made, is_unfinished=unfinished)


def schedule(pipeline: DagsterPipeline, name: str) -> dg.ScheduleDefinition:
    found = pipeline.definitions().resolve_schedule_def(name)
    assert isinstance(found, dg.ScheduleDefinition)
    return found


def ticks(schedule: dg.ScheduleDefinition, since: datetime, count: int) -> list[datetime]:
    """The instant at which Dagster's daemon would evaluate it."""
    found = schedule_execution_time_iterator(
        since.timestamp(), schedule.cron_schedule, schedule.execution_timezone
    )
    return [next(found) for _ in range(count)]


def test_the_daily_one_ticks_at_the_set_hour_in_the_set_zone_summer_and_winter(
    pipeline: DagsterPipeline,
) -> None:
    pipeline.set(clean_at=time(3, 15), timezone="Europe/Berlin")
    clean_daily = schedule(pipeline, "clean_daily")
    berlin = ZoneInfo("Europe/Berlin")
    utc = [at.astimezone(UTC) for at in ticks(clean_daily, datetime(2026, 3, 27, 12, tzinfo=UTC), 4)]
    assert [(at.day, at.hour, at.minute) for at in utc] == [
        (28, 2, 15), (29, 1, 15), (30, 1, 15), (31, 1, 15)
    ]  # fmt: skip
    assert {at.astimezone(berlin).time() for at in utc} == {time(3, 15)}
    hourly = ticks(schedule(pipeline, "clean_again"), datetime(2026, 3, 28, 2, 15, tzinfo=UTC), 2)
    assert [at.astimezone(UTC).time() for at in hourly] == [time(2, 45), time(3, 45)]


def test_both_are_on_by_default_and_at_four_in_the_morning(pipeline: DagsterPipeline) -> None:
    daily, again = (schedule(pipeline, name) for name in ("clean_daily", "clean_again"))
    assert (daily.cron_schedule, daily.execution_timezone) == ("0 4 * * *", "UTC")
    assert again.cron_schedule == "30 * * * *"
    assert {each.default_status for each in (daily, again)} == {dg.DefaultScheduleStatus.RUNNING}


def test_the_hourly_one_starts_a_clean_only_where_the_newest_was_not_finished(
    pipeline: DagsterPipeline,
) -> None:
    pipeline.clock.now = utc_now()
    again = schedule(pipeline, "clean_again")

    def requested() -> Sequence[dg.RunRequest] | None:
        with dg.build_schedule_context(
            instance=pipeline.instance, scheduled_execution_time=pipeline.clock()
        ) as context:
            return again.evaluate_tick(context).run_requests or None

    def made(status: dg.DagsterRunStatus, *, dry: bool = False, unfinished: bool = False) -> None:
        config = {"ops": {"clean": {"config": {"dry_run": dry}}}}
        tags = {UNFINISHED_TAG: "true"} if unfinished else {}
        made = pipeline.instance.create_run_for_job(clean_store, status=status, tags=tags, run_config=config)
        assert made.job_name == CLEAN_STORE

    assert requested() is None
    made(dg.DagsterRunStatus.SUCCESS)
    assert requested() is None
    made(dg.DagsterRunStatus.FAILURE, dry=True)
    assert requested() is None, "a dry run does not count as a clean"
    made(dg.DagsterRunStatus.SUCCESS, unfinished=True)
    [request] = requested() or []
    assert request.tags.items() >= UPKEEP_TAGS.items()
    made(dg.DagsterRunStatus.STARTED)
    assert requested() is None
    assert recent_daily_runs(pipeline.instance, CLEAN_STORE)[0].state == "running"
    pipeline.clock.now = utc_now() + LONGEST_RUN
    assert requested(), "a run that was killed with its machine holds up no other"
