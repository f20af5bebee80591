"""A run in a process of a worker, whatever the broker delivers: at most one process executes it, once.

Redis delivers a task twice where a worker died or was silent for hours. The decision is `to_do`.
"""

import hashlib
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from enum import Enum
from pathlib import Path
from typing import cast

import dagster as dg
import sqlalchemy as sa

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, JoinRefused
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.membership import code_version
from rss_pipeline.features.fleet.model import INCARNATION_TAG
from rss_pipeline.orchestration.dagster_private import (
    SqlRunStorage,
    setup_interrupt_handlers,
)
from rss_pipeline.orchestration.dagster_private_commands import execute_run_command_body
from rss_pipeline.orchestration.instance.dead_runs import dead_among, end_dead, host_tags
from rss_pipeline.orchestration.instance.home import instance_without_output
from rss_pipeline.orchestration.queueing import QUEUE_TAG, WORKER_TAG
from rss_pipeline.pipeline.triggers.starts import SHARD_TAG
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.schema import check_not_ahead, migrations, recorded_version

STATEMENT_MS = 60_000
"""After which Postgres breaks off a statement of Dagster's in a run."""
_POOL_RECYCLE_SECONDS, _MORE_CONNECTIONS = 3600, 20
_LOCKS = 0x52535352
"""The first half of the keys of our advisory locks on runs; any number that no other program has."""


class ToDo(Enum):
    """A worker's choices for a run that was delivered to it, and that no process executes."""

    EXECUTE = "execute"
    CANCEL = "cancel"
    END_IF_DEAD = "end if dead"
    """It was begun: by a process that no longer exists, or that lost its lock in a restart of Postgres."""
    NOTHING = "nothing"


def to_do(status: dg.DagsterRunStatus | None) -> ToDo:
    """The decision by the run's status; None for a run that was deleted.

    A run in the queue was put back there, after it had been sent: it will be sent once more.
    """
    match status:
        case dg.DagsterRunStatus.STARTING | dg.DagsterRunStatus.NOT_STARTED:
            return ToDo.EXECUTE
        case dg.DagsterRunStatus.CANCELING:
            return ToDo.CANCEL
        case dg.DagsterRunStatus.STARTED:
            return ToDo.END_IF_DEAD
        case _:
            return ToDo.NOTHING


def execute_run(run_id: str, *, settings: Settings, tags: Mapping[str, str]) -> ToDo:
    """Execute a run in this process, with these tags besides, if it has not begun; return what was done.

    The instance is that of DAGSTER_HOME on this machine. A SIGTERM interrupts the run, which then releases
    its claims; if no one canceled it, it has failed, and Dagster starts it again.

    Raises:
        JoinRefused: this worker's code is not the main machine's. Nothing was begun.
    """
    # Celery lets its processes ignore it, and Dagster gives SIGTERM the same handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    setup_interrupt_handlers()
    # What a run prints is the worker's: a file of this machine would be shown on none.
    with instance_without_output(Path(os.environ["DAGSTER_HOME"])) as instance:
        # An event costs 2 ms of processor time so, and 12 with a connection of its own.
        instance.optimize_for_webserver(STATEMENT_MS, _POOL_RECYCLE_SECONDS, _MORE_CONNECTIONS)
        with _alone(instance, run_id) as is_alone:
            return _do(instance, run_id, settings, tags) if is_alone else ToDo.NOTHING


def _do(instance: dg.DagsterInstance, run_id: str, settings: Settings, tags: Mapping[str, str]) -> ToDo:
    run = instance.get_run_by_id(run_id)
    todo = to_do(None if run is None else run.status)
    if run is None or todo is ToDo.NOTHING:
        return todo
    match todo:
        case ToDo.EXECUTE:
            with run_place(settings, run, tags) as is_first:
                if not is_first:
                    return ToDo.NOTHING
                instance.add_run_tags(run_id, {**host_tags(), **tags})
                _execute(instance, run_id)
        case ToDo.CANCEL:
            instance.report_run_canceled(run)
        case ToDo.END_IF_DEAD:
            if dead_among(instance, [run_id], now=utc_now()):
                end_dead(instance, run_id)
    return todo


def _execute(instance: dg.DagsterInstance, run_id: str) -> None:
    # Dagster writes each event to the terminal, too; warnings of ours go to the worker's log still.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
        execute_run_command_body(
            run_id=run_id,
            instance=instance,
            write_stream_fn=lambda _: None,
            set_exit_code_on_failure=False,
        )


@contextmanager
def _alone(instance: dg.DagsterInstance, run_id: str) -> Iterator[bool]:
    """True inside if no other process, on whatever machine, is in here with the same run."""
    storage = cast("SqlRunStorage", instance.run_storage)
    key = int.from_bytes(hashlib.blake2b(run_id.encode(), digest_size=4).digest(), signed=True)
    with storage.connect() as connection:
        locked = sa.select(sa.func.pg_try_advisory_lock(_LOCKS, key))
        is_alone = bool(connection.execute(locked).scalar_one())
        try:
            yield is_alone
        finally:
            # The pool would give a connection with its lock to the next who wants one.
            connection.invalidate()


# The place of a run at a worker: the row that says which worker executes it, from its begin to its end.
# A worker with other code than the main machine's begins none.


@contextmanager
def run_place(settings: Settings, run: dg.DagsterRun, tags: Mapping[str, str]) -> Iterator[bool]:
    """Take the place of a run that this process is about to execute; False inside if another process has it.

    `tags` are those of this worker; without an incarnation tag the process is not a fleet worker and takes
    no slot.

    Raises:
        JoinRefused: this worker's code is not the main machine's. Nothing was begun.
    """
    incarnation = tags.get(INCARNATION_TAG)
    if incarnation is None:
        yield True
        return
    with _open(settings) as database:
        _check_version(database)
        is_first = _begin(database, run, tags[WORKER_TAG], incarnation)
    try:
        yield is_first
    finally:
        if is_first:
            # Where the database is away, the worker's next beats see that the process is gone.
            with suppress(InfrastructureError), _open(settings) as database:
                workers.end_runs(database, [run.run_id])


@contextmanager
def _open(settings: Settings) -> Iterator[Database]:
    """No connection is kept while the run lasts."""
    database = connect(settings)
    try:
        yield database
    finally:
        database.close()


def _check_version(database: Database) -> None:
    try:
        check_not_ahead(recorded_version(database) or 0, migrations())
    except DatabaseUnavailable as error:
        raise JoinRefused(str(error)) from error
    main = workers.fleet(database).main
    if main is not None and main.member.code_version != code_version():
        raise JoinRefused(
            f"the main machine has rss_pipeline {main.member.code_version}, this one {code_version()}"
        )


def _begin(database: Database, run: dg.DagsterRun, worker: str, incarnation: str) -> bool:
    shard = run.tags.get(SHARD_TAG)
    return workers.begin_run(
        database,
        run_id=run.run_id,
        worker=worker,
        incarnation=incarnation,
        job=run.job_name,
        queue=run.tags.get(QUEUE_TAG, ""),
        pid=os.getpid(),
        detail=None if shard is None else f"shard {shard}",
    )
