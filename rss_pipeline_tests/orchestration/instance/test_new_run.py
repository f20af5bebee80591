"""The file of a new run's events: the one that Dagster would make."""

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from sqlalchemy.engine import Engine

from rss_pipeline.orchestration.instance.home import open_instance
from rss_pipeline.orchestration.instance.new_run import new_run
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def content(path: Path) -> tuple[object, ...]:
    with closing(sqlite3.connect(path)) as connection:
        schema = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        version = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        mode = connection.execute("PRAGMA journal_mode").fetchall()
    return {(*row[:3], row[3] and " ".join(row[3].split())) for row in schema}, version, mode


def test_it_is_the_file_that_dagster_makes_and_none_beside_a_history_of_another_version(
    pipeline: Pipeline,
) -> None:
    runs = pipeline.settings.home / "dagster" / "history" / "runs"
    with open_instance(pipeline.settings) as instance:
        run_id = new_run(instance)
        storage = instance.event_log_storage
        assert isinstance(storage, SqliteEventLogStorage)
        with storage.run_connection("dagster"):
            pass
        assert content(runs / f"{run_id}.db") == content(runs / "dagster.db")

        with closing(sqlite3.connect(runs / "index.db")) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = '567bc23fd1ac'")
        assert not (runs / f"{new_run(instance)}.db").exists()


def test_alembic_writes_into_no_run_of_a_poll(dagster_pipeline: DagsterPipeline, server: FeedServer) -> None:
    statements: list[tuple[str, str]] = []

    def note(connection: sqlalchemy.Connection, cursor: object, statement: str, *_: object) -> None:
        statements.append((Path(connection.engine.url.database or "").stem, statement))

    dagster_pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    sqlalchemy.event.listen(Engine, "before_cursor_execute", note)
    try:
        [round_] = dagster_pipeline.poll()
    finally:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", note)
    assert round_.error is None
    to_run = [statement for name, statement in statements if name == round_.run_id]
    assert [each for each in to_run if "INSERT INTO alembic_version" in each] == [
        "INSERT INTO alembic_version VALUES (?)"
    ]
    assert sum(each.startswith("INSERT INTO event_logs") for each in to_run) > 10
