"""Many asset events of an op in one transaction.

Dagster's SQLite storage opens two databases, commits both and closes both for each event that an op yields:
4 to 8 ms an event, most of it in fsync; its Postgres storage sends ten statements and commits twice. Which
events there are is reporting/'s.
"""

import logging
import os
import time
from collections.abc import Sequence

import dagster as dg

from rss_pipeline.orchestration.dagster_private import (
    AssetObservationData,
    InMemoryEventLogStorage,
    SqlEventLogStorage,
    SqliteEventLogStorage,
    StepMaterializationData,
)
from rss_pipeline.orchestration.dagster_private import SqlEventLogStorageTable as Events

AssetEvent = dg.AssetMaterialization | dg.AssetObservation


def record_events(context: dg.OpExecutionContext, events: Sequence[AssetEvent]) -> None:
    """Store events as if the op had yielded them. All are in the event log when this returns.

    A storage that is not SQL gets them one by one. They are not among the events that `execute_in_process`
    returns, and no line of the run's text log.
    """
    # The list of an asset's events in the UI shows one of those with the same millisecond.
    now = time.time()
    entries = [
        _entry(context, event, at=now - age / 1_000)
        for event, age in zip(events, reversed(range(len(events))), strict=True)
    ]
    storage = context.instance.event_log_storage
    if isinstance(storage, SqlEventLogStorage) and not isinstance(storage, InMemoryEventLogStorage):
        _store_in_one_transaction(storage, entries)
    else:
        for entry in entries:
            context.instance.handle_new_event(entry)


def _store_in_one_transaction(storage: SqlEventLogStorage, entries: Sequence[dg.EventLogEntry]) -> None:
    """Do what the storage's `store_event` does with an asset event, for many. In SQLite: write the run's own
    file first, then the file that all runs share. In Postgres both are one table."""
    if not entries:
        return
    # One statement for all: what SQLAlchemy does for each takes longer than what SQLite does.
    insert = Events.insert()
    rows = [storage._event_to_row(entry) for entry in entries]
    if isinstance(storage, SqliteEventLogStorage):
        with storage.run_connection(entries[0].run_id) as connection:
            connection.execute(insert, rows)
    with storage.index_transaction() as connection:
        stored = connection.execute(insert.returning(Events.c.id, sort_by_parameter_order=True), rows)
        ids = list(stored.scalars())
        storage._store_asset_event_tags(connection, entries, ids)
        # The table of assets keeps the last event of each kind only.
        last = {}
        for entry, id in zip(entries, ids, strict=True):
            event = entry.get_dagster_event()
            last[event.asset_key, event.event_type] = (entry, id)
        for entry, id in last.values():
            storage._store_asset_event(connection, entry, id)


def _entry(context: dg.OpExecutionContext, event: AssetEvent, *, at: float) -> dg.EventLogEntry:
    """The log entry that Dagster makes of an event that an op yields."""
    step_context = context.get_step_execution_context()
    data: StepMaterializationData | AssetObservationData
    if isinstance(event, dg.AssetMaterialization):
        kind, data = dg.DagsterEventType.ASSET_MATERIALIZATION, StepMaterializationData(event)
        message = event.description or f"Materialized value {event.label}."
    else:
        kind, data = dg.DagsterEventType.ASSET_OBSERVATION, AssetObservationData(event)
        message = None
    dagster_event = dg.DagsterEvent(
        event_type_value=kind.value,
        job_name=step_context.job_name,
        step_handle=step_context.step.handle,
        node_handle=step_context.step.node_handle,
        step_kind_value=step_context.step.kind.value,
        logging_tags=step_context.event_tags,
        event_specific_data=data,
        message=message,
        pid=os.getpid(),
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=logging.DEBUG,
        user_message=message or f"{kind} for step {step_context.step.key}",
        run_id=context.run_id,
        timestamp=at,
        step_key=step_context.step.key,
        job_name=step_context.job_name,
        dagster_event=dagster_event,
    )
