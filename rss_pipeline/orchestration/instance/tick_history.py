"""The ticks of sensors and schedules in Dagster's instance, and their removal.

Runs are in run_history.py. A tick that logs anything has a file of its own, at `<repository>/<name>/<tick
id>.err` beside the runs' compute logs; Dagster's own retention removes the rows of ticks and leaves the
files.
https://docs.dagster.io/deployment/oss/dagster-yaml#data-retention
"""

from datetime import datetime
from pathlib import Path

import dagster as dg
import sqlalchemy as sa

from rss_pipeline.orchestration.dagster_private import (
    JobTickTable,
    LocalComputeLogManager,
    SqlScheduleStorage,
)
from rss_pipeline.orchestration.instance.history_files import logs_in
from rss_pipeline.orchestration.instance.run_history import naive, sliced

_ROWS_AT_ONCE = 2_000


class TickHistory:
    """The ticks of an instance with SQL storage. Instants are UTC."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    @property
    def _ticks(self) -> SqlScheduleStorage:
        storage = self._instance.schedule_storage
        assert isinstance(storage, SqlScheduleStorage)
        return storage

    def count(self, before: datetime) -> int:
        """The number of older ticks, without the newest tick of each sensor and schedule."""
        with self._ticks.connect() as connection:
            old = sa.select(sa.func.count()).where(*_old(before))
            return int(connection.execute(old).scalar_one())

    def remove(self, before: datetime) -> int:
        """Remove those ticks, some at a time; return their number."""
        removed = 0
        while True:
            with self._ticks.connect() as connection:
                some = sa.select(JobTickTable.c.id).where(*_old(before)).limit(_ROWS_AT_ONCE)
                went = connection.execute(JobTickTable.delete().where(JobTickTable.c.id.in_(some))).rowcount
            removed += went
            if went < _ROWS_AT_ONCE:
                break
        # The evaluations of automation conditions: downstream assets may have them.
        self._ticks.purge_asset_evaluations(before.timestamp())
        return removed

    def logs(self, before: datetime) -> list[Path]:
        """Log files last written before then, of ticks that were removed or that `remove` would remove."""
        found = [log for folder in self._log_folders() for log in logs_in(folder, before)]
        ids = sorted({id for _, id in found if id is not None})
        kept: set[int] = set()
        with self._ticks.connect() as connection:
            for some in sliced(ids):
                staying = sa.select(JobTickTable.c.id).where(
                    JobTickTable.c.id.in_(some), sa.not_(sa.and_(*_old(before)))
                )
                kept |= set(connection.execute(staying).scalars())
        return [path for path, id in found if id not in kept]

    def _log_folders(self) -> set[Path]:
        manager = self._instance.compute_log_manager
        if not isinstance(manager, LocalComputeLogManager):
            return set()
        return {
            Path(manager.get_captured_local_path([repository, state.instigator_name, "1"], "err")).parent
            for state in self._instance.all_instigator_state()
            for repository in [state.origin.repository_origin.repository_name]
        }


def _old(before: datetime) -> list[sa.ColumnElement[bool]]:
    newest = sa.select(sa.func.max(JobTickTable.c.id)).group_by(JobTickTable.c.selector_id)
    return [JobTickTable.c.timestamp < naive(before), JobTickTable.c.id.not_in(newest)]
