"""The schedules: a clean and a purge a day, and again where one did not finish; retries of images.

The decisions are cleaning_times.py's, purging_times.py's and image_starting.py's. What starts when feeds are
due or new images wait is a sensor (sensors.py).
https://docs.dagster.io/guides/automate/schedules
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.orchestration.clean_job import CLEAN_STORE, UNFINISHED, clean_store
from rss_pipeline.orchestration.jobs import DOWNLOAD_IMAGES, download_images
from rss_pipeline.orchestration.purge_job import PURGE_HISTORY, purge_history
from rss_pipeline.orchestration.queueing import DAEMON_TAGS, REASON_TAG, UPKEEP_TAGS
from rss_pipeline.orchestration.sensors import RUN_STATES, recent_runs, run_or_reason
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.triggers.clean import CleanRun, again, daily
from rss_pipeline.pipeline.triggers.images import decide_retries
from rss_pipeline.pipeline.triggers.poll import Start, Wait
from rss_pipeline.pipeline.triggers.purge import decide as decide_purge
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.images.claims import images_due

RUNS_LOOKED_AT = 8


def build_schedules(settings: Settings, *, clock: Clock) -> list[dg.ScheduleDefinition]:
    """All schedules, running by default."""
    at = settings.clean_at

    def decide(
        context: dg.ScheduleEvaluationContext,
        decision: Callable[..., Start | Wait],
    ) -> dg.RunRequest | dg.SkipReason:
        decided = decision(recent_cleans(context.instance, CLEAN_STORE), now=clock())
        if isinstance(decided, Start):
            return dg.RunRequest(tags={**UPKEEP_TAGS, REASON_TAG: decided.reason})
        return dg.SkipReason(decided.reason)

    @dg.schedule(
        name="clean_daily",
        job=clean_store,
        cron_schedule=f"{at.minute} {at.hour} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "upkeep", **UPKEEP_TAGS},
        owners=OWNERS,
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
        tags={CONCERNS: "upkeep", **UPKEEP_TAGS},
        owners=OWNERS,
        description="Cleans again where the last clean failed, died, or left something.",
    )
    def clean_again(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return decide(context, again)

    @dg.schedule(
        name="purge_daily",
        job=purge_history,
        # Between the clean and the clean's second try; hourly, for a machine that sleeps at night.
        cron_schedule=f"{(at.minute + 15) % 60} * * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "upkeep", **UPKEEP_TAGS},
        owners=OWNERS,
        description="Purges run history once a day: after RSS_CLEAN_AT, or once the machine is up again.",
    )
    def purge_daily(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        runs = recent_cleans(context.instance, PURGE_HISTORY)
        decided = decide_purge(runs, now=clock(), at=at, timezone=settings.timezone)
        if isinstance(decided, Start):
            return dg.RunRequest(tags={**UPKEEP_TAGS, REASON_TAG: decided.reason})
        return dg.SkipReason(decided.reason)

    @dg.schedule(
        name="retry_images",
        job=download_images,
        cron_schedule="*/15 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "images", **DAEMON_TAGS},
        owners=OWNERS,
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

        return run_or_reason(settings, ask)

    return [clean_daily, clean_again, purge_daily, retry_images]


def recent_cleans(instance: dg.DagsterInstance, job_name: str) -> Sequence[CleanRun]:
    """The newest runs of the clean or the purge job that were no dry runs, newest first."""
    records = instance.get_run_records(dg.RunsFilter(job_name=job_name), limit=RUNS_LOOKED_AT)
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
    return any(op.get("config", {}).get("dry_run") for op in config.get("ops", {}).values())
