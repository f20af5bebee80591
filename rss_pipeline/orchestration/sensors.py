"""The sensors: one starts polls, one syncs the registry. A tick only asks; the work is in the run.

The decision is polling.py's, the sync syncing.py's.
https://docs.dagster.io/guides/automate/sensors
"""

from datetime import UTC, datetime

import dagster as dg

from rss_pipeline.collector.models import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.jobs import POLL_FEEDS, poll_feeds
from rss_pipeline.orchestration.polling import PollRun, Start, decide
from rss_pipeline.orchestration.syncing import sync_registry
from rss_pipeline.settings import Settings
from rss_pipeline.storage import leases
from rss_pipeline.storage.opening import open_database

RUNS_LOOKED_AT = 8
POLL_TAGS = {"dagster/priority": "-1"}
"""Backfills a person starts carry no priority of ours, so polls stand behind them."""

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


def build_sensors(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """Both sensors, running by default."""

    @dg.sensor(
        name="poll_feeds_when_due",
        job=poll_feeds,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts a poll when a feed is new, one has been due for 4 minutes, or 100 are due.",
    )
    def poll_feeds_when_due(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        now = clock()
        try:
            with open_database(settings) as database:
                due = leases.due_summary(database, now)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be asked: {error}")
        decision = decide(due, recent_polls(context.instance), now=now)
        context.log.info(decision.reason)
        if isinstance(decision, Start):
            return dg.RunRequest(tags=POLL_TAGS)
        return dg.SkipReason(decision.reason)

    @dg.sensor(
        name="sync_registry",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Takes changes of feeds.yaml over: new feeds, feeds that are gone, feeds that are back.",
    )
    def sync_registry_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        try:
            with open_database(settings) as database:
                synced = sync_registry(database, context.instance, settings, now=clock())
        except RssPipelineError as error:
            context.log.error(str(error))
            return dg.SkipReason(str(error))
        return dg.SkipReason(f"{synced}.")

    return [poll_feeds_when_due, sync_registry_sensor]


def recent_polls(instance: dg.DagsterInstance) -> list[PollRun]:
    """The newest poll runs, newest first."""
    records = instance.get_run_records(dg.RunsFilter(job_name=POLL_FEEDS), limit=RUNS_LOOKED_AT)
    return [
        PollRun(
            run_id=record.dagster_run.run_id,
            state=RUN_STATES[record.dagster_run.status],
            started_at=_instant(record.start_time),
            ended_at=_instant(record.end_time),
        )
        for record in records
    ]


def _instant(timestamp: float | None) -> datetime | None:
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC)
