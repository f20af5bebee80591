"""The schedules: a clean a day, and again within the hour where it did not finish; retries of images.

The decisions are cleaning_times.py's and image_starting.py's. What starts when feeds are due or new images
wait is a sensor (sensors.py).
https://docs.dagster.io/guides/automate/schedules
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models import Clock
from rss_pipeline.orchestration.clean_store import CLEAN_STORE, UNFINISHED, clean_store
from rss_pipeline.orchestration.cleaning_times import CleanRun, again, daily
from rss_pipeline.orchestration.image_starting import decide_retries
from rss_pipeline.orchestration.jobs import DOWNLOAD_IMAGES, download_images
from rss_pipeline.orchestration.polling import Start, Wait
from rss_pipeline.orchestration.sensors import RUN_STATES, recent_runs, run_or_reason
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.image_claims import images_due

CLEAN_TAGS = {"dagster/priority": "-2"}
"""Behind polls and whatever a person starts."""
RUNS_LOOKED_AT = 8


def build_schedules(settings: Settings, *, clock: Clock) -> list[dg.ScheduleDefinition]:
    """All schedules, running by default."""
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

    @dg.schedule(
        name="retry_images",
        job=download_images,
        cron_schedule="*/15 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=(
            "Asks again for images whose download failed once or twice: an hour after the first attempt,"
            " eight hours after the second, later where the host asks for it."
        ),
    )
    def retry_images(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        def ask(database: Database) -> Start | Wait:
            now = clock()
            due = images_due(database, now)
            return decide_retries(due, recent_runs(context.instance, DOWNLOAD_IMAGES), now=now)

        return run_or_reason(context, settings, ask)

    return [clean_daily, clean_again, retry_images]


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
