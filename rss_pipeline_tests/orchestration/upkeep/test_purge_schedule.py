"""The schedule of purges: it ticks hourly, and its runs come after polls."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.queueing import UPKEEP_TAGS
from rss_pipeline.orchestration.upkeep.purge_job import PURGE_HISTORY, purge_history
from rss_pipeline.pipeline.triggers.daily import (
    LONGEST_RUN,
    UNFINISHED_TAG,
    DailyRun,
)
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def run(hours_ago: float, state: str = "succeeded", *, unfinished: bool = False) -> DailyRun:
    created = NOON - timedelta(hours=hours_ago)
    return DailyRun(run_id="a-run-of-it", state=state, created_at=created, is_unfinished=unfinished)


def test_the_schedule_decides_hourly_and_its_run_comes_behind_polls(pipeline: DagsterPipeline) -> None:
    pipeline.clock.now = utc_now()
    [schedule] = [each for each in pipeline.definitions().schedules or () if each.name == "purge_daily"]
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.cron_schedule, schedule.job_name) == ("15 * * * *", PURGE_HISTORY)
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING

    def requested() -> Sequence[dg.RunRequest] | None:
        with dg.build_schedule_context(
            instance=pipeline.instance, scheduled_execution_time=pipeline.clock()
        ) as context:
            return schedule.evaluate_tick(context).run_requests or None

    def made(status: dg.DagsterRunStatus, *, dry: bool = False, unfinished: bool = False) -> None:
        config = {"ops": {"purge": {"config": {"dry_run": dry}}}}
        tags = {UNFINISHED_TAG: "true"} if unfinished else {}
        pipeline.instance.create_run_for_job(
            purge_history,
            status=status,
            tags=tags,
            run_config=config,
        )

    [request] = requested() or []
    assert request.tags.items() >= UPKEEP_TAGS.items()
    made(dg.DagsterRunStatus.SUCCESS, dry=True)
    assert requested(), "a dry run does not count as a purge"
    made(dg.DagsterRunStatus.SUCCESS, unfinished=True)
    assert requested()
    made(dg.DagsterRunStatus.SUCCESS)
    assert requested() is None
    made(dg.DagsterRunStatus.STARTED)
    assert requested() is None
    pipeline.clock.now = utc_now() + LONGEST_RUN
    assert requested()
