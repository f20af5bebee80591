"""A job's newest runs, read from the instance in the form that the decisions in pipeline/triggers take.

Nothing is decided here.
"""

from datetime import UTC, datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.orchestration.dagster_private import RUN_FAILURE_REASON_TAG, RunFailureReason
from rss_pipeline.pipeline.triggers.daily import REFUSED_TAG, UNFINISHED_TAG, DailyRun
from rss_pipeline.pipeline.triggers.runs import JobRun
from rss_pipeline.pipeline.triggers.starts import ALL_SINCE_TAG, NOTHING_REACHED_TAG, SHARD_TAG

RUNS_LOOKED_AT = 8
_SHARDS_LOOKED_AT = 32
"""Each for its newest runs: more records would cost each tick a second."""

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
_UNFINISHED = [status for status, state in RUN_STATES.items() if state in ("waiting", "running")]
_KILLED = {RunFailureReason.UNEXPECTED_TERMINATION.value, RunFailureReason.START_TIMEOUT.value}


def recent_runs(instance: dg.DagsterInstance, job_name: str) -> list[JobRun]:
    """A job's newest runs, newest first."""
    return [_job_run(record) for record in _records(instance, job_name)]


def recent_runs_of_shards(instance: dg.DagsterInstance, job_name: str, *, shards: int) -> list[JobRun]:
    """The newest runs of a job that has so many at once, and all that have not ended, newest first."""
    newest = _records(instance, job_name, limit=RUNS_LOOKED_AT * min(shards, _SHARDS_LOOKED_AT))
    unfinished = instance.get_run_records(dg.RunsFilter(job_name=job_name, statuses=_UNFINISHED))
    records = {record.storage_id: record for record in (*newest, *unfinished)}
    return [_job_run(records[id]) for id in sorted(records, reverse=True)]


def _job_run(record: dg.RunRecord) -> JobRun:
    run = record.dagster_run
    return JobRun(
        run_id=run.run_id,
        state=_state(run),
        started_at=_instant(record.start_time),
        ended_at=_instant(record.end_time),
        all_since=from_instant(run.tags.get(ALL_SINCE_TAG)),
        is_of_all=ALL_SINCE_TAG in run.tags or _has(run, "all"),
        shard=run.tags.get(SHARD_TAG),
    )


def recent_daily_runs(instance: dg.DagsterInstance, job_name: str) -> list[DailyRun]:
    """The newest runs of the clean or the purge job that were no dry runs, newest first."""
    return [
        DailyRun(
            run_id=record.dagster_run.run_id,
            state=_daily_state(record.dagster_run.status),
            created_at=_aware(record.create_timestamp),
            is_unfinished=record.dagster_run.tags.get(UNFINISHED_TAG) == "true",
            is_refused=record.dagster_run.tags.get(REFUSED_TAG) == "true",
        )
        for record in _records(instance, job_name)
        if not _has(record.dagster_run, "dry_run")
    ]


def _records(
    instance: dg.DagsterInstance, job_name: str, *, limit: int = RUNS_LOOKED_AT
) -> list[dg.RunRecord]:
    return list(instance.get_run_records(dg.RunsFilter(job_name=job_name), limit=limit))


def _state(run: dg.DagsterRun) -> str:
    if run.tags.get(RUN_FAILURE_REASON_TAG) in _KILLED:
        return "died"
    if run.status is dg.DagsterRunStatus.FAILURE and NOTHING_REACHED_TAG in run.tags:
        return "offline"
    return RUN_STATES[run.status]


def _daily_state(status: dg.DagsterRunStatus) -> str:
    return "queued" if status is dg.DagsterRunStatus.QUEUED else RUN_STATES[status]


def _has(run: dg.DagsterRun, option: str) -> bool:
    """True if the config of one of the run's ops has this option on."""
    config: Any = run.run_config
    return any(op.get("config", {}).get(option) for op in config.get("ops", {}).values())


def _instant(timestamp: float | None) -> datetime | None:
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC)


def _aware(created: datetime) -> datetime:
    return created if created.tzinfo is not None else created.replace(tzinfo=UTC)
