"""The schedules: a daily purge, repeated where it did not finish, retries of images, and the daily poll of
all feeds, if RSS_SWEEP_AT is set; and the form of those of daily jobs, which features have as well.

The decisions are in pipeline/triggers. Runs for feeds that are due and for new images are started by sensors
(sensors.py), the health checks by the schedule in checks.py.
https://docs.dagster.io/guides/automate/schedules
"""

from collections.abc import Callable, Sequence
from datetime import datetime, time
from functools import partial

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.collector.models.shard import shards
from rss_pipeline.orchestration import looks as awaiting
from rss_pipeline.orchestration.jobs import DOWNLOAD_IMAGES, POLL_FEEDS, download_images, poll_feeds
from rss_pipeline.orchestration.parts import Building
from rss_pipeline.orchestration.queueing import DAEMON_TAGS, UPKEEP_TAGS
from rss_pipeline.orchestration.recent_runs import recent_daily_runs, recent_runs, recent_runs_of_shards
from rss_pipeline.orchestration.triggers import Decision, Tick, tick
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.orchestration.upkeep.purge_job import purge_history
from rss_pipeline.pipeline.triggers.daily import DailyRun, decide_once_a_day
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline.pipeline.triggers.starts import (
    ALL_SINCE_TAG,
    decide_retries,
    decide_sweep,
    decide_sweep_by_shard,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.images.image_claims import images_due


def upkeep_schedule(
    of: Building,
    name: str,
    job: dg.JobDefinition,
    cron: str,
    decide: Callable[..., Start | Wait],
    description: str,
) -> dg.ScheduleDefinition:
    """A schedule of a daily job, which starts it where `decide` says so of its newest runs."""

    def evaluate(context: dg.ScheduleEvaluationContext) -> Tick:
        runs: Sequence[DailyRun] = recent_daily_runs(context.instance, job.name)
        return tick(decide(runs, now=of.clock()), tags=UPKEEP_TAGS)

    return dg.schedule(
        name=name,
        job=job,
        cron_schedule=cron,
        execution_timezone=of.settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "upkeep", **UPKEEP_TAGS},
        owners=OWNERS,
        description=description,
    )(evaluate)


def build_schedules(of: Building) -> list[dg.ScheduleDefinition]:
    """All schedules but those of features; they run from the start."""
    settings, clock, looks = of.settings, of.clock, of.looks
    at = settings.clean_at

    @dg.schedule(
        name="retry_images",
        job=download_images,
        cron_schedule="*/15 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "images", **DAEMON_TAGS},
        owners=OWNERS,
        description=(
            "Downloads images again after a failed first or second attempt: within an hour of the first"
            " attempt, two days after the second."
        ),
    )
    def retry_images(context: dg.ScheduleEvaluationContext) -> Tick:
        return looks.tick(
            "retry_images", DOWNLOAD_IMAGES, decide_retry, context.instance,
            awaits=awaiting.images, now=clock(), tags=DAEMON_TAGS,
        )  # fmt: skip

    return [
        upkeep_schedule(
            of,
            "purge_daily",
            purge_history,
            # Between the clean and the clean's second try; hourly, for a machine that sleeps at night.
            f"{(at.minute + 15) % 60} * * * *",
            partial(decide_once_a_day, at=at, timezone=settings.timezone),
            description=(
                "Starts the purge of run history once a day: after RSS_CLEAN_AT, or as soon as the machine is"
                " up again."
            ),
        ),
        retry_images,
        *([] if settings.sweep_at is None else [_poll_all_daily(settings, settings.sweep_at, clock=clock)]),
    ]


def _poll_all_daily(settings: Settings, at: time, *, clock: Clock) -> dg.ScheduleDefinition:
    @dg.schedule(
        name="poll_all_daily",
        job=poll_feeds,
        cron_schedule=f"{at.minute} {at.hour} * * *",
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "feeds", **DAEMON_TAGS},
        owners=OWNERS,
        description=(
            f"Visits every feed each day at {at:%H:%M} ({settings.timezone}), the time of RSS_SWEEP_AT and"
            " RSS_TIMEZONE, due or not. Requests stay conditional and paced; a host on hold is left alone."
            " One run visits at most RSS_BATCH_SIZE feeds; the sensor `poll_feeds_when_due` starts the next"
            " one, until all were visited."
        ),
    )
    def poll_all_daily(context: dg.ScheduleEvaluationContext) -> Tick:
        now = clock()
        decision: Decision
        if found := shards(settings.shards):
            runs = recent_runs_of_shards(context.instance, POLL_FEEDS, shards=settings.shards)
            decision = decide_sweep_by_shard(found, runs, now=now, at=at, timezone=settings.timezone)
        else:
            runs = recent_runs(context.instance, POLL_FEEDS)
            decision = decide_sweep(runs, now=now, at=at, timezone=settings.timezone)
        return tick(decision, tags={**DAEMON_TAGS, ALL_SINCE_TAG: instant(now)})

    return poll_all_daily


def decide_retry(database: Database, instance: dg.DagsterInstance, now: datetime) -> Start | Wait:
    """Start a download or wait, by the images due for another attempt and the newest download runs."""
    return decide_retries(images_due(database, now), recent_runs(instance, DOWNLOAD_IMAGES), now=now)
