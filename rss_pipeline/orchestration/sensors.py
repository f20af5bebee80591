"""The sensors: they start polls and downloads of images, sync the registry, and end runs that died.

A tick only asks. The decisions are polling.py's, image_starting.py's and dead_runs.py's, the sync is
syncing.py's.
https://docs.dagster.io/guides/automate/sensors
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.events import RunFailureReason
from dagster._core.storage.tags import RUN_FAILURE_REASON_TAG

from rss_pipeline.collector.models.clock import Clock, from_instant, utc_now
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.instance.dead_runs import end_dead_runs
from rss_pipeline.orchestration.jobs import DOWNLOAD_IMAGES, POLL_FEEDS, download_images, poll_feeds
from rss_pipeline.orchestration.queueing import DAEMON_TAGS, REASON_TAG
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.pipeline.triggers.images import decide_fresh
from rss_pipeline.pipeline.triggers.poll import (
    ALL_SINCE_TAG,
    JobRun,
    Start,
    Wait,
    all_under_way,
    decide,
    go_on,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import NotVisitedSince
from rss_pipeline.storage.images.claims import images_due

RUNS_LOOKED_AT = 8

RUN_STATES = {
    dg.DagsterRunStatus.QUEUED: "waiting",
    dg.DagsterRunStatus.NOT_STARTED: "waiting",
    dg.DagsterRunStatus.STARTING: "waiting",
    dg.DagsterRunStatus.STARTED: "running",
    dg.DagsterRunStatus.CANCELING: "running",
    dg.DagsterRunStatus.SUCCESS: "succeeded",
    dg.DagsterRunStatus.FAILURE: "failed",
    dg.DagsterRunStatus.CANCELED: "canceled",
}
_DIED = {RunFailureReason.UNEXPECTED_TERMINATION.value, RunFailureReason.START_TIMEOUT.value}


def build_sensors(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """All sensors, running by default."""

    @dg.sensor(
        name="poll_feeds_when_due",
        job=poll_feeds,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: "feeds", **DAEMON_TAGS},
        owners=OWNERS,
        description=(
            "Starts a poll when a feed is new, one has been due for 4 minutes, or 100 are due; and the next"
            " one where a poll of all feeds left some."
        ),
    )
    def poll_feeds_when_due(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        def ask(database: Database) -> Start | Wait:
            now = clock()
            runs = recent_runs(context.instance, POLL_FEEDS)
            since = all_under_way(runs)
            if since is not None and due.is_claimable(database, NotVisitedSince(since=since, now=now)):
                return go_on(since)
            return decide(due.due_summary(database, now), runs, now=now)

        return run_or_reason(settings, ask)

    @dg.sensor(
        name="download_images_when_waiting",
        job=download_images,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: "images", **DAEMON_TAGS},
        owners=OWNERS,
        description="Starts a download when images of new items have waited for 2 minutes, or 100 wait.",
    )
    def download_images_when_waiting(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        def ask(database: Database) -> Start | Wait:
            now = clock()
            due = images_due(database, now)
            return decide_fresh(due, recent_runs(context.instance, DOWNLOAD_IMAGES), now=now)

        return run_or_reason(settings, ask)

    @dg.sensor(
        name="sync_registry",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: "feeds"},
        owners=OWNERS,
        description="Takes changes of feeds.yaml over: new feeds, feeds that are gone, feeds that are back.",
    )
    def sync_registry_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        try:
            with open_database(settings) as database:
                synced = sync_registry(database, settings, now=clock())
                register(database, context.instance, synced)
        except RssPipelineError as error:
            # Not logged as well: a file each half a minute, for the same words.
            return dg.SkipReason(str(error))
        return dg.SkipReason(f"{synced}.")

    @dg.sensor(
        name="end_dead_runs",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: "upkeep"},
        owners=OWNERS,
        description="Ends runs whose process is gone, so that they hold no place in the queue.",
    )
    def end_dead_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        def live_runs() -> frozenset[str]:
            with open_database(settings) as database:
                return leases.live_run_ids(database)

        # As long as a run that went silent keeps its feeds.
        silence = timedelta(seconds=settings.lease_seconds)
        try:
            ended = end_dead_runs(context.instance, now=utc_now(), silence=silence, live_runs=live_runs)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be asked: {error}")
        for run_id in ended:
            context.log.warning(f"Run {run_id} was ended: its process is gone.")
        return dg.SkipReason(f"{len(ended)} runs were dead." if ended else "No run is dead.")

    return [poll_feeds_when_due, download_images_when_waiting, sync_registry_sensor, end_dead_runs_sensor]


def run_or_reason(
    settings: Settings, ask: Callable[[Database], Start | Wait]
) -> dg.RunRequest | dg.SkipReason:
    """A run of the daemon's, or why there is none, by a question to the database.

    Nothing is logged: a tick that logs costs a file, and the run itself tells what was due.
    """
    try:
        with open_database(settings) as database:
            decision = ask(database)
    except RssPipelineError as error:
        return dg.SkipReason(f"The database cannot be asked: {error}")
    if isinstance(decision, Start):
        return dg.RunRequest(
            tags={**DAEMON_TAGS, REASON_TAG: decision.reason}, run_config=dict(decision.run_config)
        )
    return dg.SkipReason(decision.reason)


def recent_runs(instance: dg.DagsterInstance, job_name: str) -> list[JobRun]:
    """A job's newest runs, newest first."""
    records = instance.get_run_records(dg.RunsFilter(job_name=job_name), limit=RUNS_LOOKED_AT)
    return [
        JobRun(
            run_id=record.dagster_run.run_id,
            state=_state(record.dagster_run),
            started_at=_instant(record.start_time),
            ended_at=_instant(record.end_time),
            all_since=from_instant(record.dagster_run.tags.get(ALL_SINCE_TAG)),
        )
        for record in records
    ]


def _state(run: dg.DagsterRun) -> str:
    if run.tags.get(RUN_FAILURE_REASON_TAG) in _DIED:
        return "died"
    return RUN_STATES[run.status]


def _instant(timestamp: float | None) -> datetime | None:
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC)
