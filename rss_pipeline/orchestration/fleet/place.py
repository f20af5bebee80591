"""The place of a run at a worker: the row that says which worker executes it, from its begin to its end.

A worker with other code than the main machine's begins none. Which runs are lost with a dead worker is
pipeline/fleet's.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import dagster as dg

from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, JoinRefused
from rss_pipeline.orchestration.fleet.names import INCARNATION_TAG
from rss_pipeline.orchestration.queueing import QUEUE_TAG, WORKER_TAG
from rss_pipeline.pipeline.fleet.code_version import code_version
from rss_pipeline.pipeline.triggers.shards import SHARD_TAG
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.fleet import workers
from rss_pipeline.storage.schema import check_not_ahead, migrations, recorded_version


@contextmanager
def run_place(settings: Settings, run: dg.DagsterRun, tags: Mapping[str, str]) -> Iterator[bool]:
    """Take the place of a run that this process is about to execute; False inside if another process has it.

    `tags` are those of this worker; without an incarnation it is none of a fleet, and takes no place.

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
