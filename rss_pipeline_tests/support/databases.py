"""SQLite files with the schema in them: copies of one that is migrated once in each process.

To make all tables takes longer than a copy, and most tests begin with a database.
"""

import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.schema import Prepared, migrate, split


def migrated(path: Path) -> SqliteDatabase:
    """A new database, as if `migrate` had made it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_migrated_file())
    return SqliteDatabase(path)


def make_oldest(database: Database) -> None:
    """The tables of the oldest schema that is brought up to date, in an empty database."""
    if isinstance(database, Prepared):
        database.prepare()
    script = files(__package__).joinpath("schema_0031.sql").read_text("utf-8")
    database.batch([Statement(each) for each in split(script)])


@cache
def _migrated_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder, "rss.sqlite"))
        migrate(database)
        # Closing its only connection puts the write-ahead log into the file.
        database.close()
        return database.path.read_bytes()


@cache
def migrated_schema() -> dict[str, str]:
    """Names of the schema's tables and indexes, and their SQL."""
    with tempfile.TemporaryDirectory() as folder:
        database = migrated(Path(folder, "rss.sqlite"))
        rows = database.query(
            "SELECT name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*' AND sql NOT NULL"
        ).rows
        database.close()
    return {row["name"]: row["sql"] for row in rows}


@cache
def migrated_rows() -> list[dict[str, Any]]:
    """Statements, as the Worker takes them, of the rows in a new database: the ledger and numbers."""
    with tempfile.TemporaryDirectory() as folder:
        database = migrated(Path(folder, "rss.sqlite"))
        found = [
            {"sql": f'INSERT INTO "{name}" VALUES ({", ".join("?" * len(row))})', "params": [*row.values()]}
            for name, sql in migrated_schema().items()
            if sql.startswith("CREATE TABLE")
            for row in database.query(f'SELECT * FROM "{name}"').rows
        ]
        database.close()
    return found
