"""Replays and restores of a whole pipeline, and what of its state they must give back.

Real parts throughout, in this process as the commands run them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from rss_pipeline.features.replay.restore import Restored, restore
from rss_pipeline.features.replay.service import FeedReplay, replay_feeds
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

HOLDS = ("hosts", "feed_holds", "image_holds")
TABLES = ("feeds", "items", "image_tasks", "leases", "expired_items", "item_aliases", "item_versions", *HOLDS)
BOOKKEEPING = {"images_extracted_at", "arrived"}
"""The instant at which a run looked for an item's images, and its arrival number."""
TASK_BOOKKEEPING = {"created_at", "updated_at"}


def replays_of(session: Session, ids: Sequence[str], **options: Any) -> Iterator[FeedReplay]:
    """Replay these feeds with the parts of a session."""
    return replay_feeds(ids, run=session.run, pool=session.parser_pool, spool=session.spool, **options)


def replayed(pipeline: Pipeline, *ids: str, dry_run: bool = False, repair: bool = False) -> list[FeedReplay]:
    """Replay these feeds, or all."""
    wanted = list(ids) or [row["id"] for row in pipeline.rows("SELECT id FROM feeds ORDER BY id")]
    with pipeline.session() as session:
        return list(replays_of(session, wanted, dry_run=dry_run, repair=repair))


def restored(pipeline: Pipeline, **parts: Any) -> Restored:
    """Restore; no Dagster instance learns of the feeds."""
    with pipeline.session(**parts) as session:
        return restore(
            session.run,
            pool=session.parser_pool,
            spool=session.spool,
            on_registry=_ignore,
            on_feeds=_ignore,
        )


def _ignore(_found: object) -> None: ...


def drop_database(pipeline: Pipeline) -> None:
    """Lose every table, and begin with an empty schema."""
    if isinstance(server := pipeline.settings.database, PostgresBackend):
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
    elif not pipeline.settings.pays_by_row:
        pipeline.database.close()
        for path in pipeline.settings.home.glob("rss.sqlite*"):
            path.unlink()
        pipeline.database = connect(pipeline.settings)
    else:
        names = [
            row["name"]
            for row in pipeline.rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*'"
                " AND name NOT GLOB 'sqlite_*' ORDER BY rowid DESC"
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


def serve(pipeline: Pipeline, server: FeedServer, id: str, *bodies: bytes, **options: Any) -> None:
    """A feed with these documents, one after the other."""
    number = 10 + len(pipeline.feeds)
    answers = [Answer(body=body, etag=etag_of(body)) for body in bodies]
    pipeline.register(server.route(f"127.0.0.{number}", "/feed", *answers), id, **options)


def poll_over_time(pipeline: Pipeline, times: int) -> None:
    for _ in range(times):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(hours=3)
