"""A backfill of the job `replay_all`, as the UI's button starts it, but with a config for its runs.

Dagster's daemon makes the runs, and continues where it was interrupted. What a run does is dagster.py's.
https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data
"""

import time

import dagster as dg

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.replay.dagster import REPLAY_ALL
from rss_pipeline.features.replay.service import Part
from rss_pipeline.orchestration.dagster_private import (
    BulkActionsFilter,
    BulkActionStatus,
    InstigatorState,
    InstigatorType,
    PartitionBackfill,
    RemotePartitionSetOrigin,
    RemoteRepositoryOrigin,
    SensorInstigatorData,
    make_new_backfill_id,
    partition_set_snap_name_for_job_name,
)
from rss_pipeline.orchestration.run_config import QUIET

_SENSOR = "poll_feeds_when_due"
_UNENDED = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]


def start_replay_of_all(
    instance: dg.DagsterInstance, parts: list[Part], *, dry_run: bool, repair: bool
) -> str:
    """Request the backfill, and return its id. Its runs begin when `rss-pipeline up` is running.

    Raises:
        RssPipelineError: another one has not ended, or `rss-pipeline up` never ran with this instance.
    """
    name = partition_set_snap_name_for_job_name(REPLAY_ALL)
    for found in instance.get_backfills(BulkActionsFilter(statuses=_UNENDED)):
        if found.partition_set_name == name:
            raise RssPipelineError(f"a replay of all feeds has not ended: backfill {found.backfill_id}")
    backfill = PartitionBackfill(
        backfill_id=make_new_backfill_id(),
        status=BulkActionStatus.REQUESTED,
        from_failure=False,
        tags={},
        backfill_timestamp=time.time(),
        run_config={**QUIET, "ops": {"replay_part": {"config": {"dry_run": dry_run, "repair": repair}}}},
        partition_set_origin=RemotePartitionSetOrigin(
            repository_origin=_repository(instance), partition_set_name=name
        ),
        partition_names=[str(part) for part in parts],
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


def _repository(instance: dg.DagsterInstance) -> RemoteRepositoryOrigin:
    """Our definitions as the daemon has them: a project on top of this one names them as it likes."""
    states = [
        state
        for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
        if state.name == _SENSOR and isinstance(state.instigator_data, SensorInstigatorData)
    ]
    if not states:
        raise RssPipelineError("start `rss-pipeline up` first: its daemon makes the runs")
    return max(states, key=_last_tick).origin.repository_origin


def _last_tick(state: InstigatorState) -> float:
    assert isinstance(state.instigator_data, SensorInstigatorData)
    return state.instigator_data.last_tick_timestamp or 0.0
