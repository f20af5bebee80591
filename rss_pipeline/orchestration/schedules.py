"""The schedules: a clean a day at a quiet hour, and again within the hour where it did not finish.

The decisions are cleaning_times.py's. What starts when feeds are due is a sensor (sensors.py).
https://docs.dagster.io/guides/automate/schedules
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models import Clock
from rss_pipeline.orchestration.clean_store import CLEAN_STORE, UNFINISHED, clean_store
from rss_pipeline.orchestration.cleaning_times import CleanRun, again, daily
from rss_pipeline.orchestration.polling import Start, Wait
from rss_pipeline.orchestration.sensors import RUN_STATES
from rss_pipeline.settings import Settings

CLEAN_TAGS = {"dagster/priority": "-2"}
"""Behind polls and whatever a person starts."""
RUNS_LOOKED_AT = 8


def build_schedules(settings: Settings, *, clock: Clock) -> list[dg.ScheduleDefinition]:
    """Both schedules, running by default."""
    at = settings.clean_at

    def decide(
        context: dg.ScheduleEvaluationContext,
        decision: Callable[..., Start | Wait],
    ) -> dg.RunRequest | dg.SkipReason:
        decided = decision(recent_cleans(context.instance), now=clock())
        if isinstance(decided, Start):
            return dg.RunRequest(tags=CLEAN_TAGS)
        return dg.SkipReason(decided.reason)

    @dg.schedule(
        name="clean_daily",
        job=clean_store,
        cron_schedule=f"{at.minute} {at.hour} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Cleans at {at:%H:%M} ({settings.timezone}); set RSS_CLEAN_AT and RSS_TIMEZONE.",
    )
    def clean_daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return decide(context, daily)

    @dg.schedule(
        name="clean_again",
        job=clean_store,
        # Half an hour after the daily one, so that the two never start a clean each.
        cron_schedule=f"{(at.minute + 30) % 60} * * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Cleans again where the last clean failed, died, or left something.",
    )
    def clean_again(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return decide(context, again)

    return [clean_daily, clean_again]


def recent_cleans(instance: dg.DagsterInstance) -> Sequence[CleanRun]:
    """The newest runs of the clean job that were no dry runs, newest first."""
    records = instance.get_run_records(dg.RunsFilter(job_name=CLEAN_STORE), limit=RUNS_LOOKED_AT)
    return [
        CleanRun(
            run_id=record.dagster_run.run_id,
            state=_state(record.dagster_run.status),
            created_at=_aware(record.create_timestamp),
            is_unfinished=record.dagster_run.tags.get(UNFINISHED) == "true",
        )
        for record in records
        if not _is_dry(record.dagster_run)
    ]


def _state(status: dg.DagsterRunStatus) -> str:
    return "queued" if status is dg.DagsterRunStatus.QUEUED else RUN_STATES[status]


def _aware(created: datetime) -> datetime:
    return created if created.tzinfo is not None else created.replace(tzinfo=UTC)


def _is_dry(run: dg.DagsterRun) -> bool:
    config: Any = run.run_config
    return bool(config.get("ops", {}).get("clean", {}).get("config", {}).get("dry_run"))
