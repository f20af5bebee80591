"""Postgres as a store: who may use it, what goes wrong, and in which words; many writers at once."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from rss_pipeline.errors import DatabaseUnavailable, StorageRejected
from rss_pipeline.settings import Settings
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.connect import check_schema, open_database
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.postgres.database import CONNECTIONS, PostgresDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline_tests.support.databases import make_oldest
from rss_pipeline_tests.support.services.postgres import PASSWORD, Postgres
from rss_pipeline_tests.support.services.postgres_database import batch_that_writes


@contextlib.contextmanager
def opened(url: str) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(url, where=PostgresBackend(url=url).where)
    try:
        yield database
    finally:
        database.close()


@pytest.fixture
def new(running_postgres: Postgres) -> Iterator[str]:
    """The name of a database with nothing in it, not even our functions."""
    running_postgres.create("new")
    yield "new"
    running_postgres.execute("postgres", "DROP DATABASE new WITH (FORCE)")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


Url = Callable[[Postgres], str]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            lambda it: it.tcp_url("empty", port=free_port()),
            "no server listens there; start it, or check the host",
        ),
        (lambda it: it.tcp_url("empty", password="wr0ng"), "check user and password in DATABASE_URL"),
        (lambda it: it.tcp_url("nosuch"), "check the database's name in DATABASE_URL: it is not there"),
        (
            lambda _: "postgresql://rss@nosuch.invalid/empty",
            "check the host in DATABASE_URL, and the network",
        ),
        (lambda it: f"postgresql://rss@/empty?host={it.folder}/nosuch", "no server listens there"),
        (lambda _: "postgresql://rss:wr0ng%zz@127.0.0.1/empty", "check DATABASE_URL"),
        (lambda _: "postgresql://rss@127.0.0.1/empty?nosuch=1", "check DATABASE_URL"),
    ],
    ids=["refused", "password", "database", "host", "socket", "escape", "option"],
)
def test_a_server_that_cannot_be_used_is_an_error_that_says_what_to_do(
    running_postgres: Postgres, empty_postgres: PostgresDatabase, url: Url, said: str
) -> None:
    with opened(url(running_postgres)) as database, pytest.raises(DatabaseUnavailable) as caught:
        database.query("SELECT 1")
    assert said in str(caught.value)
    assert "postgresql://" in str(caught.value)
    for secret in (PASSWORD, "wr0ng"):
        assert secret not in str(caught.value)


def test_by_tcp_with_a_password_it_works(
    running_postgres: Postgres, empty_postgres: PostgresDatabase
) -> None:
    with opened(running_postgres.tcp_url("empty")) as database:
        assert database.query("SELECT 1 AS n").rows == [{"n": 1}]


def test_a_database_in_another_encoding_is_refused_in_words(running_postgres: Postgres) -> None:
    running_postgres.execute(
        "postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
    )
    with (
        opened(running_postgres.url("latin")) as database,
        pytest.raises(DatabaseUnavailable, match="encoding is LATIN1; make one by `createdb"),
    ):
        database.query("SELECT 1")
    running_postgres.execute("postgres", "DROP DATABASE latin")


@pytest.mark.slow
def test_a_new_database_needs_migrate_and_migrate_twice_is_migrate_once(
    running_postgres: Postgres, new: str
) -> None:
    with opened(running_postgres.url(new)) as database:
        assert schema.schema_version(database) == 0
        with pytest.raises(DatabaseUnavailable, match=r"has schema 0, .* run `rss-pipeline migrate`"):
            check_schema(database)
        assert schema.migrate(database) == ["schema.sql"]
        check_schema(database)
        assert schema.migrate(database) == []
        assert schema.recorded_version(database) == schema.migrations()[-1].version


@pytest.mark.slow
def test_a_new_database_has_what_migrations_give_the_oldest(
    running_postgres: Postgres, new: str, empty_postgres: PostgresDatabase
) -> None:
    def shape(name: str) -> list[set[tuple[object, ...]]]:
        with psycopg.connect(running_postgres.url(name)) as connection:
            return [
                set(connection.execute(query).fetchall())
                for query in (
                    "SELECT table_name, column_name, data_type, is_nullable, column_default"
                    " FROM information_schema.columns"
                    " WHERE table_schema = 'public' AND column_name <> 'rowid'",
                    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
                    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
                    " FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
                )
            ]

    with opened(running_postgres.url(new)) as database:
        schema.migrate(database)
    make_oldest(empty_postgres)
    schema.migrate(empty_postgres)
    found = shape(new)
    assert found == shape("empty")
    assert any(name == "feeds_due_by_bucket" for name, _ in found[1])


@pytest.mark.slow
def test_settings_open_it_and_do_not_migrate(running_postgres: Postgres, new: str, tmp_path: Path) -> None:
    url = running_postgres.url(new)
    settings = Settings(
        home=tmp_path, feeds_file=tmp_path, user_agent="x", database_server=PostgresBackend(url=url)
    )
    with pytest.raises(DatabaseUnavailable, match="run `rss-pipeline migrate`"), open_database(settings):
        pass
    with opened(url) as database:
        schema.migrate(database)
    with open_database(settings) as database:
        assert database.query("SELECT count(*) AS n FROM feeds").rows == [{"n": 0}]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_functions_of_another_version_need_migrate(running_postgres: Postgres, new: str) -> None:
    with opened(running_postgres.url(new)) as database:
        schema.migrate(database)
        running_postgres.execute(new, "COMMENT ON SCHEMA rss_sqlite IS 'another one'")
        with pytest.raises(DatabaseUnavailable, match=r"functions .* run `rss-pipeline migrate`"):
            check_schema(database)
        assert schema.migrate(database) == []
        check_schema(database)


def test_a_schema_ahead_is_left_alone(migrated_postgres: PostgresDatabase) -> None:
    future = "INSERT INTO schema_migrations VALUES (999, '0999_future.sql', '2030-01-01T00:00:00Z')"
    migrated_postgres.query(future)
    for refused in (schema.migrate, check_schema):
        with pytest.raises(DatabaseUnavailable, match=r"has schema 999, this code knows .* update"):
            refused(migrated_postgres)


def test_a_database_of_another_program_is_left_alone(running_postgres: Postgres, new: str) -> None:
    running_postgres.execute(new, "CREATE TABLE feeds (id text)")
    with opened(running_postgres.url(new)) as database:
        with pytest.raises(DatabaseUnavailable, match="not ours; use another one"):
            schema.migrate(database)
        assert not database.is_prepared()


@pytest.mark.slow
def test_two_who_migrate_at_once_migrate_once(running_postgres: Postgres, new: str) -> None:
    def migrate_there(_: int) -> list[str]:
        with opened(running_postgres.url(new)) as database:
            return schema.migrate(database)

    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(migrate_there, range(4)))
    assert sum(map(len, applied)) == 1


def test_a_server_that_only_reads_says_to_name_the_primary(
    running_postgres: Postgres, empty_postgres: PostgresDatabase
) -> None:
    url = f"{running_postgres.url('empty')}&options=-c%20default_transaction_read_only%3Don"
    with opened(url) as database:
        assert database.query("SELECT 1 AS n").rows == [{"n": 1}]
        with pytest.raises(DatabaseUnavailable, match="name the primary in DATABASE_URL"):
            database.query("CREATE TABLE a (id TEXT)")


def test_a_server_that_takes_no_more_connections_says_so(running_postgres: Postgres, new: str) -> None:
    running_postgres.execute("postgres", "CREATE ROLE few LOGIN CONNECTION LIMIT 0")
    url = running_postgres.url(new).replace("rss@", "few@")
    with opened(url) as database, pytest.raises(DatabaseUnavailable, match="raise max_connections"):
        database.query("SELECT 1")
    running_postgres.execute("postgres", "DROP ROLE few")


def test_a_connection_that_the_server_ended_is_made_again(
    running_postgres: Postgres, empty_postgres: PostgresDatabase
) -> None:
    with opened(running_postgres.url("empty")) as database:
        [row] = database.query("SELECT pg_backend_pid() AS pid").rows
        running_postgres.execute("empty", f"SELECT pg_terminate_backend({row['pid']}, 10000)")
        [again] = database.query("SELECT pg_backend_pid() AS pid").rows
    assert again["pid"] != row["pid"]


def test_a_batch_that_the_server_ends_leaves_nothing_and_the_next_one_works(
    empty_postgres: PostgresDatabase,
) -> None:
    empty_postgres.query("CREATE TABLE a (id TEXT)")
    insert = Statement("INSERT INTO a (id) VALUES ('1')", name="insert")
    killing = Statement("SELECT pg_terminate_backend(pg_backend_pid())", name="end")
    with pytest.raises(DatabaseUnavailable, match=r"Statement: (insert|end)"):
        empty_postgres.batch([insert, killing])
    assert empty_postgres.query("SELECT count(*) AS n FROM a").rows == [{"n": 0}]


def test_the_statement_that_failed_is_the_one_in_the_message(empty_postgres: PostgresDatabase) -> None:
    good = Statement("SELECT 1", name="good one")
    with pytest.raises(DatabaseUnavailable, match=r"42P01.*Statement: bad one: .* and 1 more"):
        empty_postgres.batch([good, Statement("SELECT * FROM nosuch", name="bad one"), good])


def test_bytes_that_are_no_text_are_refused_by_the_server_as_well(empty_postgres: PostgresDatabase) -> None:
    with pytest.raises(StorageRejected, match="refused a value"):
        empty_postgres.query("SELECT chr(0)")
    with pytest.raises(StorageRejected, match="refused a value"):
        empty_postgres.query("SELECT CAST(? AS jsonb) ->> 0", ['["a\\u0000"]'])


def test_batches_that_write_come_one_after_the_other_also_from_several_machines(
    running_postgres: Postgres, empty_postgres: PostgresDatabase
) -> None:
    """Whoever looks before it writes sees what was written before: no two find the same place free."""
    empty_postgres.query("CREATE TABLE places (n INTEGER)")
    take = "INSERT INTO places (n) SELECT coalesce(max(n), 0) + 1 FROM places RETURNING n"

    def machine(_: int) -> list[int]:
        with opened(running_postgres.url("empty")) as database:
            return [int(database.query(take).rows[0]["n"]) for _ in range(25)]

    with ThreadPoolExecutor(6) as threads:
        taken = [n for found in threads.map(machine, range(6)) for n in found]
    assert sorted(taken) == list(range(1, 151))


def test_who_only_reads_waits_for_no_one(
    running_postgres: Postgres, empty_postgres: PostgresDatabase
) -> None:
    empty_postgres.query("CREATE TABLE a (id TEXT)")
    read = Statement("SELECT count(*) AS n FROM a")
    with (
        opened(running_postgres.url("empty")) as other,
        batch_that_writes(other, empty_postgres, "INSERT INTO a (id) VALUES ('1')"),
    ):
        one, same = empty_postgres.batch([read, read])
    assert (one.rows, same.rows) == ([{"n": 0}], [{"n": 0}])


def test_more_threads_than_connections_wait_for_one(empty_postgres: PostgresDatabase) -> None:
    with ThreadPoolExecutor(CONNECTIONS + 8) as threads:
        found = list(
            threads.map(lambda n: empty_postgres.query("SELECT ? AS n", [n]).rows[0]["n"], range(200))
        )
    assert found == list(range(200))


def test_a_closed_database_says_so(running_postgres: Postgres, empty_postgres: PostgresDatabase) -> None:
    with opened(running_postgres.url("empty")) as database:
        database.query("SELECT 1")
    with pytest.raises(DatabaseUnavailable, match="was closed"):
        database.query("SELECT 1")
