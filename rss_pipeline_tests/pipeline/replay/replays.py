"""Replays and restores of a whole pipeline, and what of its state they must give back.

Real parts throughout, in this process as the commands run them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import dagster as dg

from rss_pipeline.orchestration.jobs import REPLAY_BACKUPS
from rss_pipeline.orchestration.registry_partitions import register, register_keys
from rss_pipeline.pipeline.replay.replay import FeedReplay, replay_feeds
from rss_pipeline.pipeline.replay.restore import Restored, restore
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.progress import Progress
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.pipeline import Pipeline

HOLDS = ("hosts", "feed_holds", "image_holds")
TABLES = ("feeds", "items", "image_tasks", "leases", "expired_items", "item_versions", *HOLDS)
BOOKKEEPING = {"images_extracted_at", "arrived"}
"""Of an item: when a run looked for its images, and the number it got as it came in."""
TASK_BOOKKEEPING = {"created_at", "updated_at"}


@contextmanager
def session(
    pipeline: Pipeline,
    *,
    progress: Progress | None = None,
    database: Database | None = None,
    objects: ObjectStore | None = None,
) -> Iterator[Session]:
    with Session(
        settings=pipeline.settings,
        database=database or pipeline.database,
        objects=objects or pipeline.objects,
        run_id="replay",
        clock=pipeline.clock,
        progress=progress,
    ) as opened:
        yield opened


def replays_of(opened: Session, ids: Sequence[str], **options: bool) -> Iterator[FeedReplay]:
    """Replay these feeds with the parts of a session."""
    return replay_feeds(ids, run=opened.run, pool=opened.parser_pool, spool=opened.spool, **options)


def replayed(pipeline: Pipeline, *ids: str, dry_run: bool = False, repair: bool = False) -> list[FeedReplay]:
    """Replay these feeds, or all."""
    wanted = list(ids) or [row["id"] for row in pipeline.rows("SELECT id FROM feeds ORDER BY id")]
    with session(pipeline) as opened:
        return list(replays_of(opened, wanted, dry_run=dry_run, repair=repair))


def restored(pipeline: Pipeline, **parts: Any) -> Restored:
    with session(pipeline, **parts) as opened:
        return restore(
            opened.run,
            pool=opened.parser_pool,
            spool=opened.spool,
            on_registry=partial(register, opened.run.database, pipeline.instance),
            on_feeds=partial(register_keys, opened.run.database, pipeline.instance),
        )


def run_replay_job(
    pipeline: Pipeline, id: str, *, resources: Mapping[str, Any] | None = None, **config: bool
) -> dg.ExecuteInProcessResult:
    """A run of the job `replay_backups` for one partition."""
    job = pipeline.definitions(resources=resources).resolve_job_def(REPLAY_BACKUPS)
    return job.execute_in_process(
        instance=pipeline.instance,
        partition_key=id,
        raise_on_error=False,
        run_config={"ops": {"open_backups": {"config": config}}},
    )


def drop_database(pipeline: Pipeline) -> None:
    """Lose every table, and begin with an empty schema."""
    if pipeline.settings.d1 is None:
        pipeline.database.close()
        for path in pipeline.settings.home.glob("rss.sqlite*"):
            path.unlink()
        pipeline.database = connect(pipeline.settings)
    else:
        names = [
            row["name"]
            for row in pipeline.rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*'"
                " AND name NOT GLOB 'sqlite_*'"
            )
        ]
        drops = [Statement(f'DROP TABLE "{name}"') for name in names]
        pipeline.database.batch([Statement("PRAGMA defer_foreign_keys = ON"), *drops])
    migrate(pipeline.database)


def all_rows(pipeline: Pipeline) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, byte for byte."""
    return {name: pipeline.rows(f"SELECT * FROM {name} ORDER BY 1, 2") for name in TABLES}


def collected(pipeline: Pipeline) -> dict[str, list[dict[str, Any]]]:
    """All that readers see of what was collected: items and image tasks without a run's bookkeeping."""
    return {
        "items": [
            _without(row, BOOKKEEPING) for row in pipeline.rows("SELECT * FROM items ORDER BY feed_id, guid")
        ],
        "image_tasks": [
            _without(row, TASK_BOOKKEEPING) for row in pipeline.rows("SELECT * FROM image_tasks ORDER BY id")
        ],
    }


def _without(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
