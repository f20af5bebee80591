"""The schema: made once, whoever makes it; brought up to date; never on a database that is ahead."""

import json
import multiprocessing
import re
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage import schema
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline_tests.storage.values import NOW
from rss_pipeline_tests.support.databases import make_oldest


def migrate_there(path: Path) -> list[str]:
    database = SqliteDatabase(path)
    try:
        return schema.migrate(database)
    finally:
        database.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    return tmp_path / "fresh.sqlite"


NEWEST = schema.migrations()[-1].version
OLD_ROWS = (
    """INSERT INTO feeds (id, url, host, next_fetch_at, created_at) VALUES
      ('a', 'https://a.example/', 'a.example', '2026-02-18T08:00:00Z', '2026-01-01T00:00:00Z')""",
    """INSERT INTO items
      (id, feed_id, guid, pub_date, created_at, guid_source, pub_date_source, arrived) VALUES
      ('i', 'a', 'g', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', 'guid', 'feed', 1)""",
    """INSERT INTO users (id, name, password_hash, preferences, created_at) VALUES
      ('ann', 'ann', 'x', '{}', '2026-01-01T00:00:00Z'),
      ('bob', 'bob', 'x', '{"order":"oldest","theme":"dark"}', '2026-01-01T00:00:00Z')""",
)


def shape(database: Database) -> dict[str, object]:
    """Tables and what is theirs: columns in whatever order, keys, indexes, triggers."""
    found: dict[str, object] = {}
    for row in database.query(
        "SELECT type, name, sql FROM sqlite_master"
        " WHERE name NOT GLOB 'sqlite_*' AND name <> 'schema_migrations'"
    ).rows:
        if row["type"] != "table":
            found[row["name"]] = " ".join(row["sql"].split())
            continue
        found[row["name"]] = (
            "WITHOUT ROWID" in row["sql"],
            sorted(re.findall(r"CHECK \(.+\)", row["sql"])),
            *(
                sorted(
                    json.dumps([value for key, value in each.items() if key not in ("cid", "seq", "id")])
                    for each in database.query(f"SELECT * FROM pragma_{pragma}('{row['name']}')").rows
                )
                for pragma in ("table_info", "foreign_key_list", "index_list")
            ),
        )
    return found


def test_a_new_database_has_what_migrations_give_the_oldest(sqlite: SqliteDatabase, fresh: Path) -> None:
    with closing(SqliteDatabase(fresh)) as oldest:
        make_oldest(oldest)
        assert schema.migrate(oldest) == [each.name for each in schema.migrations()], (
            "each of them, and none of a new database"
        )
        assert shape(oldest) == shape(sqlite)
        assert schema.migrate(oldest) == []
        for rows in OLD_ROWS:
            oldest.query(rows)
            sqlite.query(rows)
        for table in ("feeds", "items", "users"):
            found = [each.query(f"SELECT * FROM {table} ORDER BY id").rows for each in (oldest, sqlite)]
            assert found[0] == found[1], "in whatever order the columns came"


def test_rows_of_the_oldest_are_as_they_were_and_decisions_too(empty_database: Database) -> None:
    make_oldest(empty_database)
    for rows in OLD_ROWS:
        empty_database.query(rows)
    before = [dict(row) for row in empty_database.query("SELECT * FROM items").rows]
    schema.migrate(empty_database)
    after = empty_database.query("SELECT * FROM items").rows
    assert [{name: row[name] for name in old} for row, old in zip(after, before, strict=True)] == before
    users.insert(empty_database, id="cyd", name="cyd", password_hash="x", now=NOW)
    found = {
        row["id"]: json.loads(row["preferences"])
        for row in empty_database.query("SELECT id, preferences FROM users ORDER BY id").rows
    }
    # Who was there before a second order of items keeps the first.
    assert found == {
        "ann": {"order": "newest"},
        "bob": {"order": "oldest", "theme": "dark"},
        "cyd": {"order": "published", "stories": True},
    }


class Dying:
    """A database with a process that ends after this many more statements, in a transaction or between
    two."""

    def __init__(self, database: SqliteDatabase, after: int) -> None:
        self._database, self._left = database, after

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self._database.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if self._left < len(statements):
            return self._database.batch([*statements[: self._left], Statement("SELECT * FROM it_ends_here")])
        self._left -= len(statements)
        return self._database.batch(statements)

    def close(self) -> None:
        self._database.close()


@pytest.mark.slow
def test_an_upgrade_that_ends_at_any_of_its_statements_goes_on_and_the_old_code_says_so(fresh: Path) -> None:
    with closing(SqliteDatabase(fresh)) as database:
        make_oldest(database)
        for rows in OLD_ROWS:
            database.query(rows)
        expected = None
        old_code = [schema.Migration(31, "0031_not_before.sql", ())]
        path = fresh.with_name("killed.sqlite")
        after = 0
        while expected is None:
            with closing(sqlite3.connect(fresh)) as whole, closing(sqlite3.connect(path)) as copy:
                whole.backup(copy)
            with closing(SqliteDatabase(path)) as killed:
                with suppress(DatabaseUnavailable):
                    schema.migrate(Dying(killed, after))
                    expected = shape(killed)
                version = schema.schema_version(killed)
                if version > 31:
                    with pytest.raises(DatabaseUnavailable, match="this code knows 31 at most: update"):
                        schema.check_not_ahead(version, old_code)
                schema.migrate(killed)
                assert schema.schema_version(killed) == NEWEST
                assert killed.query("SELECT id, guid FROM items").rows == [{"id": "i", "guid": "g"}]
                ends = shape(killed)
            path.unlink()
            after += 1
        assert ends == expected
        assert after > 50


@pytest.mark.parametrize(
    "left", ["DELETE FROM schema_migrations WHERE version = 31", "UPDATE items SET arrived = NULL"]
)
def test_one_that_is_older_than_the_oldest_is_left_alone_with_a_sentence_that_says_the_way(
    fresh: Path, left: str
) -> None:
    with closing(SqliteDatabase(fresh)) as database:
        make_oldest(database)
        for rows in (*OLD_ROWS, left):
            database.query(rows)
        before = shape(database)
        with pytest.raises(DatabaseUnavailable, match=r"first run `rss-pipeline migrate` .* commit a06a6dd"):
            schema.migrate(database)
        assert shape(database) == before


def test_to_migrate_twice_is_to_migrate_once(fresh: Path) -> None:
    assert migrate_there(fresh) == ["schema.sql"]
    with closing(SqliteDatabase(fresh)) as database:
        before = database.query("SELECT * FROM sqlite_master").rows
        assert schema.migrate(database) == []
        assert database.query("SELECT * FROM sqlite_master").rows == before
        assert schema.schema_version(database) == NEWEST


def test_versions_rise_and_none_is_there_twice() -> None:
    versions = [migration.version for migration in schema.migrations()]
    assert versions == sorted(set(versions))
    assert versions[0] > 31


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
    assert sum(map(len, applied)) == 1
    database = SqliteDatabase(fresh)
    assert schema.schema_version(database) == NEWEST
    database.close()


class Overtaken:
    """A database that another process migrates between our look and our first write."""

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
    assert schema.schema_version(database) == NEWEST
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
    for statements in (
        schema.split(schema.schema_text()),
        *(each.statements for each in schema.migrations()),
    ):
        for statement in statements:
            assert statement.split()[0] in {"CREATE", "ALTER", "INSERT", "UPDATE", "DROP"}
            assert len(statement.encode()) < 100_000
