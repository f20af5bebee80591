"""A database in Postgres with the schema, emptied before each test, which takes 4 ms; a copy takes 80."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg

from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.waiting import soon

SHARED = "shared"
"""The database of all tests of a session."""


def tables_of(database: PostgresDatabase) -> list[str]:
    """Names of its tables."""
    found = database.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [row["name"] for row in found.rows]


@contextmanager
def emptied_database(running: Postgres, name: str) -> Iterator[Callable[[], PostgresDatabase]]:
    """A function that gives the database without rows, also where a test changed the schema."""
    running.create(name)
    database = PostgresDatabase(running.url(name), where=name)
    schema.migrate(database)
    tables = tables_of(database)
    newest = schema.migrations()[-1].version
    emptying = "; ".join(
        [
            *(f"DELETE FROM {table}" for table in tables if table != "schema_migrations"),
            f"DELETE FROM schema_migrations WHERE version > {newest}",
        ]
    )
    # In whatever order, and without a look at what refers to a row.
    options = "-c session_replication_role=replica"
    with psycopg.connect(running.url(name), autocommit=True, options=options) as connection:

        def emptied() -> PostgresDatabase:
            if tables_of(database) != tables:
                running.execute(name, "DROP SCHEMA public CASCADE;\nCREATE SCHEMA public")
                schema.migrate(database)
            connection.execute(emptying.encode())
            return database

        yield emptied
    database.close()


@contextmanager
def batch_that_writes(database: PostgresDatabase, watching: PostgresDatabase, sql: str) -> Iterator[None]:
    """Within, a batch of another machine has run this statement and is not committed."""
    batch = [Statement(sql), Statement("SELECT pg_sleep(300), 'unfinished'")]
    with ThreadPoolExecutor(1) as thread:
        going = thread.submit(database.batch, batch)
        soon(lambda: _sleeping(watching))
        pid = _sleeping(watching)
        yield
        assert not going.done(), "within, nobody has waited for it"
        watching.query(f"SELECT pg_terminate_backend({pid}, 10000)")
        assert going.exception(20)


def _sleeping(database: PostgresDatabase) -> int | None:
    found = database.query(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE '%unfinished%' AND state = 'active'"
        " AND wait_event = 'PgSleep'"
    ).rows
    return int(found[0]["pid"]) if found else None
