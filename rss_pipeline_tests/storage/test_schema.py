"""Migrations: once each, whoever runs them, and never onto a database that is ahead."""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement, Value


def migrate_there(path: Path) -> list[str]:
    database = SqliteDatabase(path)
    try:
        return schema.migrate(database)
    finally:
        database.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    return tmp_path / "fresh.sqlite"


def test_to_migrate_twice_is_to_migrate_once(fresh: Path) -> None:
    names = [migration.name for migration in schema.migrations()]
    assert names[0] == "0001_initial.sql"
    assert migrate_there(fresh) == names
    database = SqliteDatabase(fresh)
    before = database.query("SELECT * FROM sqlite_master").rows
    assert schema.migrate(database) == []
    assert database.query("SELECT * FROM sqlite_master").rows == before
    assert schema.schema_version(database) == schema.migrations()[-1].version
    database.close()


def test_versions_rise_and_none_is_there_twice() -> None:
    versions = [migration.version for migration in schema.migrations()]
    assert versions == sorted(set(versions))
    assert versions[0] == 1


def test_an_empty_database_has_version_zero(fresh: Path) -> None:
    database = SqliteDatabase(fresh)
    assert schema.schema_version(database) == 0
    database.close()


def test_a_database_ahead_of_the_code_is_left_alone(sqlite: SqliteDatabase) -> None:
    sqlite.query("INSERT INTO schema_migrations VALUES (999, '0999_future.sql', '2030-01-01T00:00:00Z')")
    with pytest.raises(DatabaseUnavailable, match=r"has schema 999, this code knows .* update rss_pipeline"):
        schema.migrate(sqlite)


def test_a_database_of_another_program_is_left_alone(fresh: Path) -> None:
    database = SqliteDatabase(fresh)
    database.query("CREATE TABLE feeds (id INTEGER)")
    with pytest.raises(DatabaseUnavailable, match="not ours; use another one"):
        schema.migrate(database)
    assert database.query("SELECT name FROM sqlite_master").rows == [{"name": "feeds"}]
    database.close()


@pytest.mark.slow
def test_two_processes_at_once_migrate_once(fresh: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as processes:
        applied = list(processes.map(migrate_there, [fresh] * 6))
    assert sum(map(len, applied)) == len(schema.migrations())
    database = SqliteDatabase(fresh)
    assert schema.schema_version(database) == schema.migrations()[-1].version
    database.close()


class Overtaken:
    """A database that another process migrates between our look at it and our first write."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self._database.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        migrate_there(self._database.path)
        return self._database.batch(statements)

    def close(self) -> None:
        self._database.close()


def test_who_is_overtaken_while_migrating_finds_it_done(fresh: Path) -> None:
    database = Overtaken(SqliteDatabase(fresh))
    assert schema.migrate(database) == []
    assert schema.schema_version(database) == schema.migrations()[-1].version
    database.close()


def test_a_migration_that_fails_leaves_nothing(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = schema.Migration(1, "0001_broken.sql", ("CREATE TABLE feeds (id TEXT)", "CREATE TABLE ("))
    monkeypatch.setattr(schema, "migrations", lambda: [broken])
    database = SqliteDatabase(fresh)
    with pytest.raises(DatabaseUnavailable):
        schema.migrate(database)
    assert database.query("SELECT name FROM sqlite_master").rows == []
    database.close()


def test_a_script_is_split_at_its_statements_and_not_at_its_lines() -> None:
    script = """-- What this is for; and more.
CREATE TABLE a (
  id TEXT, -- not the end; of it

  -- a comment of its own; too
  note TEXT DEFAULT 'one; two'
);
  -- indented
CREATE INDEX a_note ON a (note) WHERE note <> ';';

CREATE TRIGGER t AFTER INSERT ON a BEGIN
  DELETE FROM a WHERE id = '';
  DELETE FROM a WHERE id = ' ';
END;
"""
    statements = schema.split(script)
    assert [statement.split()[1] for statement in statements] == ["TABLE", "INDEX", "TRIGGER"]
    assert not any(statement.endswith(";") for statement in statements)
    assert "DEFAULT 'one; two'" in statements[0]
    assert statements[2].count("DELETE") == 2


def test_a_script_that_stops_short_is_refused() -> None:
    with pytest.raises(ValueError, match="ends inside a statement"):
        schema.split("CREATE TABLE a (id TEXT);\nCREATE TABLE b (")


def test_no_statement_is_one_that_d1_refuses() -> None:
    for migration in schema.migrations():
        for statement in migration.statements:
            assert statement.split()[0] in {"CREATE", "ALTER", "INSERT", "UPDATE", "DROP"}
            assert len(statement.encode()) < 100_000
