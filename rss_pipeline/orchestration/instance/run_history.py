"""The data of ended runs in Dagster's instance, and its complete removal.

Which runs are removed is decided in upkeep/purge_job.py; ticks are in tick_history.py. Dagster has no call
for most of this: `delete_run` leaves the run's tags, its check executions, its own SQLite file and its
compute logs, and nothing deletes a backfill. So these two modules, and no others, name Dagster's tables.
https://docs.dagster.io/deployment/oss/dagster-instance
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import sqlalchemy as sa

from rss_pipeline.orchestration.dagster_private import (
    BULK_ACTION_TERMINAL_STATUSES,
    AssetCheckExecutionsTable,
    BackfillTagsTable,
    BulkActionsFilter,
    BulkActionsTable,
    BulkActionStatus,
    LocalComputeLogManager,
    RunsTable,
    RunTagsTable,
    SqlEventLogStorage,
    SqliteEventLogStorage,
    SqlRunStorage,
)
from rss_pipeline.orchestration.dagster_private import SqlEventLogStorageTable as Events
from rss_pipeline.orchestration.instance.history_files import RUN_ID, ids_in
from rss_pipeline.orchestration.instance.purged import Freed

T = TypeVar("T")

ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

_MATERIALIZATION = dg.DagsterEventType.ASSET_MATERIALIZATION.value
_PLANNED = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value
_IN_PROGRESS = [status for status in BulkActionStatus if status not in BULK_ACTION_TERMINAL_STATUSES]


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest materialization of an asset's partition; its run is to be removed."""

    run_id: str
    asset_key: dg.AssetKey
    partition: str | None
    is_challenged: bool
    """A later attempt is in progress or failed: the partition is red, and a new event would turn it green."""


class History:
    """The runs, events and backfills of an instance with SQL storage. Instants are UTC."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    @property
    def _events(self) -> SqlEventLogStorage:
        storage = self._instance.event_log_storage
        assert isinstance(storage, SqlEventLogStorage)
        return storage

    @property
    def _runs(self) -> SqlRunStorage:
        storage = self._instance.run_storage
        assert isinstance(storage, SqlRunStorage)
        return storage

    def ended_before(self, before: datetime) -> list[str]:
        """Ids of runs that ended before then, oldest first, without those of backfills in progress."""
        ids = self._instance.get_run_ids(dg.RunsFilter(statuses=ENDED, updated_before=before))
        busy = self._runs_of_backfills_in_progress()
        return [id for id in reversed(ids) if id not in busy]

    def _runs_of_backfills_in_progress(self) -> set[str]:
        going = self._instance.get_backfills(filters=BulkActionsFilter(statuses=_IN_PROGRESS))
        busy: set[str] = set()
        for backfill in going:
            busy |= set(self._instance.get_run_ids(dg.RunsFilter.for_backfill(backfill.backfill_id)))
        return busy

    def newest_in(self, run_ids: Sequence[str]) -> list[Newest]:
        """The materializations of these runs that no later run repeated, of any asset."""
        mine = (
            sa.select(
                Events.c.asset_key, Events.c.partition, sa.func.max(Events.c.id).label("id"), Events.c.run_id
            )
            # An empty string is appended so that SQLite does not search by type: most rows have this one.
            .where(Events.c.run_id.in_(run_ids), Events.c.dagster_event_type.concat("") == _MATERIALIZATION)
            .where(Events.c.asset_key.is_not(None))
            .group_by(Events.c.run_id, Events.c.asset_key, Events.c.partition)
            .subquery()
        )
        wanted = sa.select(mine.c.run_id, mine.c.asset_key, mine.c.partition)
        found = []
        rows: list[Any] = []
        with self._events.index_connection() as connection:
            # Two queries: an index serves `=` and `IS NULL`, but no condition for both.
            for is_whole in (False, True):
                some = wanted.add_columns(_later(mine, _PLANNED, is_whole=is_whole)).where(
                    mine.c.partition.is_(None) if is_whole else mine.c.partition.is_not(None),
                    sa.not_(_later(mine, _MATERIALIZATION, is_whole=is_whole)),
                )
                rows += connection.execute(some).fetchall()
        for run_id, key, partition, challenged in rows:
            asset_key = dg.AssetKey.from_db_string(key)
            if asset_key is not None:
                newest = Newest(
                    run_id=run_id, asset_key=asset_key, partition=partition, is_challenged=bool(challenged)
                )
                found.append(newest)
        return found

    def sizes(self, run_ids: Sequence[str]) -> Freed:
        """The files and events that `remove` of these runs would remove."""
        files = [path for id in run_ids for path in self._files(id)]
        with self._events.index_connection() as connection:
            count = connection.execute(sa.select(sa.func.count()).where(Events.c.run_id.in_(run_ids)))
            events = count.scalar_one()
        return Freed(files=len(files), bytes=sum(map(size_of, files)), events=events)

    def remove(self, run_ids: Sequence[str]) -> Freed:
        """Remove these runs: events, check executions, files, compute logs, and at last the runs.

        A process that ends in between leaves the rows of the runs, and the next purge does it again.
        """
        freed = self.sizes(run_ids)
        with self._events.index_connection() as connection:
            for id in run_ids:
                self._events.delete_events_for_run(connection, id)
            checks = AssetCheckExecutionsTable.delete()
            connection.execute(checks.where(AssetCheckExecutionsTable.c.run_id.in_(run_ids)))
        for id in run_ids:
            self._unlink(id)
        with self._runs.connect() as connection:
            # Dagster does not switch SQLite's foreign keys on, so the tags are not removed with the run.
            connection.execute(RunTagsTable.delete().where(RunTagsTable.c.run_id.in_(run_ids)))
            connection.execute(RunsTable.delete().where(RunsTable.c.run_id.in_(run_ids)))
        return freed

    def orphans(self, before: datetime) -> list[str]:
        """Ids of deleted runs with files that last changed before then: the UI deletes no files."""
        found: set[str] = set()
        young: set[str] = set()
        for folder in self._folders():
            for id, changed in ids_in(folder):
                (found if changed < before.timestamp() else young).add(id)
        found -= young
        known: set[str] = set()
        for some in sliced(sorted(found)):
            known |= set(self._instance.get_run_ids(dg.RunsFilter(run_ids=some)))
        return sorted(found - known)

    def backfills_before(self, before: datetime) -> list[str]:
        """Ids of ended backfills that were started before then and have no runs any more."""
        rows = self._runs.fetchall(
            sa.select(BulkActionsTable.c.key).where(
                BulkActionsTable.c.timestamp < naive(before),
                BulkActionsTable.c.status.in_([status.value for status in BULK_ACTION_TERMINAL_STATUSES]),
            )
        )
        ids = [row["key"] for row in rows]
        return [id for id in ids if not self._instance.get_run_ids(dg.RunsFilter.for_backfill(id), limit=1)]

    def remove_backfills(self, ids: Sequence[str]) -> None:
        """Remove the records of these backfills."""
        with self._runs.connect() as connection:
            for some in sliced(ids):
                connection.execute(
                    BackfillTagsTable.delete().where(BackfillTagsTable.c.backfill_id.in_(some))
                )
                connection.execute(BulkActionsTable.delete().where(BulkActionsTable.c.key.in_(some)))

    def _folders(self) -> list[Path]:
        folders = [self._log_folder("x").parent] if self._has_local_logs() else []
        if isinstance(self._instance.event_log_storage, SqliteEventLogStorage):
            folders.append(Path(self._instance.event_log_storage.path_for_shard("x")).parent)
        return [folder for folder in folders if folder.is_dir()]

    def _log_folder(self, run_id: str) -> Path:
        manager = self._instance.compute_log_manager
        assert isinstance(manager, LocalComputeLogManager)
        return Path(manager.get_captured_local_path([run_id, "any"], "out")).parent

    def _shards(self, run_id: str) -> list[Path]:
        """A run's own SQLite file, its journal and its index."""
        storage = self._instance.event_log_storage
        if not isinstance(storage, SqliteEventLogStorage):
            return []
        return [Path(storage.path_for_shard(run_id) + suffix) for suffix in ("", "-wal", "-shm")]

    def _has_local_logs(self) -> bool:
        return isinstance(self._instance.compute_log_manager, LocalComputeLogManager)

    def _files(self, run_id: str) -> list[Path]:
        if not RUN_ID.fullmatch(run_id):
            return []
        logs: list[Path] = []
        if self._has_local_logs():
            walked = os.walk(self._log_folder(run_id))
            logs = [Path(folder, name) for folder, _, names in walked for name in names]
        return [path for path in self._shards(run_id) if path.exists()] + logs

    def _unlink(self, run_id: str) -> None:
        if not RUN_ID.fullmatch(run_id):
            return
        for path in self._shards(run_id):
            path.unlink(missing_ok=True)
        if self._has_local_logs():
            shutil.rmtree(self._log_folder(run_id), ignore_errors=True)
        else:
            self._instance.compute_log_manager.delete_logs(prefix=[run_id])


def _later(mine: sa.Subquery, event_type: str, *, is_whole: bool) -> sa.Exists:
    later = Events.alias()
    return sa.exists().where(
        later.c.asset_key == mine.c.asset_key,
        later.c.dagster_event_type == event_type,
        later.c.partition.is_(None) if is_whole else later.c.partition == mine.c.partition,
        later.c.id > mine.c.id,
    )


def sliced(ids: Sequence[T], most: int = 500) -> Iterator[Sequence[T]]:
    """These ids, some at a time: a statement takes so many parameters and no more."""
    for start in range(0, len(ids), most):
        yield ids[start : start + most]


def size_of(path: Path) -> int:
    """A file's size in bytes; 0 if the file was removed meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def naive(at: datetime) -> datetime:
    """An instant as Dagster's tables hold it."""
    return at.astimezone(UTC).replace(tzinfo=None)
