"""The tables of a database: all at once for a new one, by migrations for one of an earlier version.

`schema.sql` has them all, with a comment for each; `migrations/` what an installation lacks that is older. A
test holds that both lead to the same tables. One text serves all databases. What is of one alone is in a
file with a name that ends in one of `_OF_ONE`, beside schema.sql and in migrations/.
"""

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Protocol, runtime_checkable

from rss_pipeline.errors import DatabaseUnavailable, RssPipelineError, TableMissing
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.sql import NOW

_LEDGER = """CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"""

_OLDEST = 31
"""The oldest schema that is brought up to date: that of the commit which the sentence below names."""
_OF_ONE = ("_postgres.sql",)


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    statements: tuple[str, ...]

    def statements_for(self, database: Database) -> tuple[str, ...]:
        """Its statements on this database: none of those that are for another one."""
        own = database.own_migrations if isinstance(database, Prepared) else ""
        is_of_one = self.name.endswith(_OF_ONE)
        return () if is_of_one and not (own and self.name.endswith(own)) else self.statements


@runtime_checkable
class Prepared(Protocol):
    """A `Database` that needs something of its own before the first migration."""

    own_migrations: str
    """The end of the names of its own migrations."""

    def is_prepared(self) -> bool:
        """True if it is there, as this code needs it."""
        ...

    def prepare(self) -> None:
        """Make it, or renew it."""
        ...


def schema_text(own: str = "") -> str:
    """All tables of a new database, as SQL with a comment for each. `own`: what one database has besides."""
    name = f"schema{own}" if own else "schema.sql"
    return files("rss_pipeline.storage").joinpath(name).read_text("utf-8")


def _for_new(database: Database, version: int) -> Migration:
    """The migration that makes all tables of this version in an empty database."""
    script = schema_text()
    if isinstance(database, Prepared) and database.own_migrations in _OF_ONE:
        script += schema_text(database.own_migrations)
    return Migration(version, "schema.sql", tuple(split(script)))


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
    """Make all tables in an empty database, or apply what is missing, one batch a migration; their names.

    Raises:
        DatabaseUnavailable: the database is ahead of this code, or too old for it.
    """
    known = migrations()
    current = schema_version(database)
    check_not_ahead(current, known)
    if 0 < current < _OLDEST or (0 < current < known[-1].version and _has_unnumbered_items(database)):
        raise DatabaseUnavailable(
            f"the database has schema {current}, and this code updates {_OLDEST} and later: first run"
            " `rss-pipeline migrate` of rss_pipeline's commit a06a6dd, then this one"
        )
    if isinstance(database, Prepared):
        database.prepare()
    missing = [each for each in known if each.version > current]
    if not current:
        missing = [_for_new(database, known[-1].version)]
    applied = []
    for migration in missing:
        ledger = Statement(
            f"INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, {NOW})",
            [migration.version, migration.name],
            name="record migration",
        )
        statements = [
            Statement(sql, name=f"migrate {migration.name}") for sql in migration.statements_for(database)
        ]
        try:
            database.batch([Statement(_LEDGER, name="create ledger"), *statements, ledger])
        except RssPipelineError:
            # Another process may have been first; the whole batch of the second one rolls back.
            if schema_version(database) < migration.version:
                raise
        else:
            applied.append(migration.name)
    return applied


def _has_unnumbered_items(database: Database) -> bool:
    """True where an older version was killed before it had numbered the items of one older still."""
    found = database.query(
        "SELECT 1 AS one FROM items INDEXED BY items_arrived WHERE arrived IS NULL LIMIT 1",
        name="find items without a number",
    )
    return bool(found.rows)


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
