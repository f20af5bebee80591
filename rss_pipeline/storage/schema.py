"""Migrations: those of this code, those a database has, and applying the missing ones.

The statements themselves are the files of migrations/, one set for all databases. Files with names that end
in `_postgres.sql` change nothing in others.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol, runtime_checkable

from rss_pipeline.errors import DatabaseUnavailable, RssPipelineError, TableMissing
from rss_pipeline.storage.database import Database, Row, SkipsLocked, Statement
from rss_pipeline.storage.sql import NOW, compact, number

_LEDGER = """CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"""

_WITH_ITEMS_ARRIVED = 24
"""The migration that made the index by which old items are found."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    statements: tuple[str, ...]

    def statements_for(self, database: Database) -> tuple[str, ...]:
        """Its statements on this database: none of those for Postgres on others."""
        is_for_postgres = self.name.endswith("_postgres.sql")
        return () if is_for_postgres and not isinstance(database, SkipsLocked) else self.statements


@runtime_checkable
class Prepared(Protocol):
    """A `Database` that needs something of its own before the first migration."""

    def is_prepared(self) -> bool:
        """True if it is there, as this code needs it."""
        ...

    def prepare(self) -> None:
        """Make it, or renew it."""
        ...


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration of this code, oldest first. Each opening of a database compares with them."""
    found = []
    for file in files("rss_pipeline.storage").joinpath("migrations").iterdir():
        if match := re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name):
            found.append(Migration(int(match[1]), file.name, tuple(split(file.read_text("utf-8")))))
    return tuple(sorted(found, key=lambda migration: migration.version))


def split(script: str) -> list[str]:
    """A script's statements, without comment lines. D1's exec would split at newlines instead."""
    statements: list[str] = []
    pending = ""
    for line in script.splitlines():
        if not line.strip() or line.lstrip().startswith("--"):
            continue
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip().rstrip(";"))
            pending = ""
    if pending.strip():
        raise ValueError(f"a migration ends inside a statement: {pending[:80]!r}")
    return statements


def schema_version(database: Database) -> int:
    """The newest migration this database has; 0 for an empty database.

    Raises:
        DatabaseUnavailable: the database has tables but no ledger of ours, or is not there.
    """
    tables = {
        row["name"]
        for row in database.query(
            "SELECT name FROM sqlite_master WHERE type = 'table'", name="read tables"
        ).rows
    }
    if "schema_migrations" not in tables:
        if "feeds" in tables:
            raise DatabaseUnavailable("the database has a table `feeds` that is not ours; use another one")
        return 0
    rows = database.query(
        "SELECT coalesce(max(version), 0) AS version FROM schema_migrations", name="read schema version"
    ).rows
    return int(rows[0]["version"])


def migrate(database: Database) -> list[str]:
    """Apply what is missing, one batch a migration; the names of those applied. Then number old items.

    Raises:
        DatabaseUnavailable: the database is ahead of this code.
    """
    known = migrations()
    current = schema_version(database)
    check_not_ahead(current, known)
    if isinstance(database, Prepared):
        database.prepare()
    applied = []
    for migration in known:
        if migration.version <= current:
            continue
        statements = migration.statements_for(database)
        ledger = Statement(
            f"INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, {NOW})",
            [migration.version, migration.name],
            name="record migration",
        )
        try:
            database.batch(
                [
                    Statement(_LEDGER, name="create ledger"),
                    *(Statement(sql, name=f"migrate {migration.name}") for sql in statements),
                    ledger,
                ]
            )
        except RssPipelineError:
            # Another process may have been first; the whole batch of the second one rolls back.
            if schema_version(database) < migration.version:
                raise
        else:
            applied.append(migration.name)
    if known[-1].version >= _WITH_ITEMS_ARRIVED:
        number_old_items(database)
    return applied


def recorded_version(database: Database) -> int | None:
    """The newest migration by the ledger, in one query; None where there is no ledger."""
    try:
        rows = database.query(
            "SELECT coalesce(max(version), 0) AS version FROM schema_migrations", name="read schema version"
        ).rows
    except TableMissing:
        return None
    except DatabaseUnavailable as error:
        # Neither SQLite nor D1 has a code for this: its words are SQLite's own, and the only sign there is.
        if "no such table" not in str(error):
            raise
        return None
    return int(rows[0]["version"])


def check_prepared(database: Database) -> None:
    """Raise DatabaseUnavailable where a database lacks what it needs besides the migrations."""
    if isinstance(database, Prepared) and not database.is_prepared():
        raise DatabaseUnavailable(
            "the functions in the database are not those of this code: run `rss-pipeline migrate`"
        )


def check_not_behind(current: int, known: Sequence[Migration]) -> None:
    """Raise DatabaseUnavailable where migrations of this code are not applied yet."""
    newest = known[-1].version
    if current < newest:
        raise DatabaseUnavailable(
            f"the database has schema {current}, this code needs {newest}: run `rss-pipeline migrate`"
        )


def check_not_ahead(current: int, known: Sequence[Migration]) -> None:
    """Raise DatabaseUnavailable where the database knows migrations that this code does not."""
    newest = known[-1].version
    if current > newest:
        raise DatabaseUnavailable(
            f"the database has schema {current}, this code knows {newest} at most: update rss_pipeline"
        )


# Arrival numbers for items from before there were any (migration 0006), in chunks.
#
# Readers find items by these numbers alone, and see none without one. `migrate` gives them behind the
# migrations: one statement over all rows of a large D1 would not end in time. What a killed process leaves is
# done by the next one.

_CHUNK_ITEMS = 1_000
_SECOND = 1_000_000

_FIND = f"""SELECT id, coalesce(CAST(strftime('%s', created_at) AS INTEGER) * {_SECOND}, 0) AS second
  FROM items INDEXED BY items_arrived
  WHERE arrived IS NULL LIMIT {_CHUNK_ITEMS}"""
_TAKEN = f"""SELECT s.second,
    (SELECT max(arrived) FROM items WHERE arrived >= s.second AND arrived < s.second + {_SECOND}) AS highest
  FROM (SELECT {number("j.value")} AS second FROM json_each(?) AS j) AS s"""
# Another process may number items at the same time, or insert some: a number that was taken meanwhile is not
# given again, and the item is among those of the next chunk.
_NUMBER = f"""UPDATE items SET arrived = {number("j.value")} FROM json_each(?) AS j
  WHERE items.id = j.key AND items.arrived IS NULL
    AND NOT EXISTS (SELECT 1 FROM items AS other WHERE other.arrived = {number("j.value")})"""
_COUNT_ON = """INSERT INTO sequences (name, value) VALUES ('items', ?)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE sequences.value < excluded.value"""


def number_old_items(database: Database) -> int:
    """Give every item without an arrival number one of its own, in the second of its fetch; how many got one.

    The number is not below what stood in for it (`items.cursor.ARRIVAL`): whoever has read up to a place
    misses nothing behind it.
    """
    numbered = 0
    while rows := database.query(_FIND, name="find items without a number").rows:
        seconds = sorted({int(row["second"]) for row in rows})
        taken = database.query(_TAKEN, [compact(seconds)], name="find numbers that are taken").rows
        numbers = _numbers(rows, {int(row["second"]): row["highest"] for row in taken})
        _, written = database.batch(
            [
                Statement(_COUNT_ON, [max(numbers.values())], name="count old items"),
                Statement(_NUMBER, [compact(numbers)], name="number old items"),
            ]
        )
        numbered += written.changes
    return numbered


def _numbers(rows: Sequence[Row], taken: Mapping[int, float | None]) -> dict[str, int]:
    """Item id to number: those of one second follow each other, behind those that the second has already."""
    free = {second: second if highest is None else int(highest) + 1 for second, highest in taken.items()}
    numbers: dict[str, int] = {}
    for row in rows:
        second = int(row["second"])
        numbers[row["id"]] = free[second]
        free[second] += 1
    return numbers
