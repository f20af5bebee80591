"""Postgres as a Database: connections, transactions and the binding of values.

The translation of statements is dialect.py's, SQL is elsewhere; limits are in storage.database.

Statements are written for stores in which one batch after the other writes, and so it is here: a batch that
writes holds a lock of the database from before its first statement until it is committed. Batches that only
read wait for no one, and see one moment. Claims are the exception: they wait for other claims only.

The order of locks, so that no two batches wait for each other: the writers' lock, the claims' lock, rows. Who
has the claims' lock alone waits for no row, and who claims rows skips those that are locked.
"""

import random
import re
import select
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from queue import LifoQueue

import psycopg

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.storage.backends.postgres.connection import (
    SET_LOCALLY,
    SILENT_SECONDS,
    Connection,
    connected,
)
from rss_pipeline.storage.backends.postgres.dialect import SCHEMA, translate
from rss_pipeline.storage.backends.postgres.server_errors import failed
from rss_pipeline.storage.backends.postgres.skip_locked import Beside, claim_beside, heal_beside
from rss_pipeline.storage.database import (
    LARGE_ITEM_BYTES,
    Result,
    Statement,
    Value,
    check_batch,
    only_reads,
)
from rss_pipeline.storage.feeds.claims import Claiming

CONNECTIONS = 16
RESERVE_BYTES = 2_097_152
"""Room for the first page of what `VACUUM` writes beside each table and index, and for some tombstones."""
_RESERVE = f"{SCHEMA}.reserve"
_PAGE_BYTES = 8_192
TRIES = 8
"""Tries of a batch that the server broke off because of another one."""
_PAUSE_SECONDS = 0.02
_WRITERS = 7_236_871
"""The number of the advisory lock of batches that write."""
_CLAIMS = 7_236_872
"""That of batches which choose feeds, or make leases hold more or longer."""

_BEGIN_TO_READ = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
# Locks come first, and each statement sees what was committed before it: all of the batches before this one.
# Such statements find rows by their keys. A plan that was made for an empty table must do so, too: it is kept
# until the server has counted the table's rows anew.
_PLAN_ONCE = (
    "SET LOCAL plan_cache_mode = force_generic_plan",
    *(f"SET LOCAL enable_{way} = off" for way in ("seqscan", "hashjoin", "mergejoin")),
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_LOCK_WRITERS = f"SELECT pg_advisory_xact_lock({_WRITERS})"
_LOCK_CLAIMS = f"SELECT pg_advisory_xact_lock({_CLAIMS})"
_LOCKS_BESIDE: dict[Beside, tuple[str, ...]] = {"choose": (_LOCK_CLAIMS,), "take": ()}
_WRITES_LEASES = re.compile(r"\b(?:INSERT\s+INTO|UPDATE)\s+leases\b", re.IGNORECASE)
_GROWING = (
    "items",
    "item_versions",
    "image_tasks",
    "item_streams",
    "item_states",
    "expired_items",
    "feeds",
    "topics",
)
_COUNTED = ("INSERT", "UPDATE", "DELETE")

_Prepared = tuple[str, list[Value]]


class PostgresDatabase:
    """A `Database` in Postgres, safe to share between threads: as many connections as threads that use it at
    once, at most CONNECTIONS, and one for batches that write. Of those one runs at a time anyway, and so they
    are planned once for all threads. Nothing is connected before the first statement.

    `where` names the database in errors and logs, without a password.
    """

    takes_bytes = True
    writes_in_turn = True
    own_migrations = "_postgres.sql"
    item_bytes = LARGE_ITEM_BYTES

    def __init__(self, url: str, *, where: str, silent_seconds: float = SILENT_SECONDS) -> None:
        self._url = url
        self._where = where
        self._silent_seconds = silent_seconds
        self._open: list[Connection] = []
        self._idle: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(CONNECTIONS):
            self._idle.put(None)
        self._writer: Connection | None = None
        self._writing = threading.Lock()
        self._is_closed = False

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        return self._tried(statements, _begin(statements))

    def batch_beside(self, statements: Sequence[Statement], beside: Beside) -> list[Result]:
        return self._tried(statements, [*_begin_to_write(statements), *_LOCKS_BESIDE[beside]])

    def claim_feeds(self, claiming: Claiming) -> tuple[Result, Result]:
        return claim_beside(self, claiming)

    def heal_schedules(self, now: datetime, clock: str | None) -> None:
        heal_beside(self, now, clock)

    def _tried(self, statements: Sequence[Statement], begin: Sequence[str]) -> list[Result]:
        check_batch(statements, item_bytes=self.item_bytes)
        prepared = [self._prepared(statement) for statement in statements]
        for attempt in range(1, TRIES + 1):
            try:
                return self._run(statements, prepared, begin)
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as error:
                if attempt == TRIES:
                    raise failed(error, statements, self._where) from error
                # Nothing of it was applied: a batch is tried again as a whole.
                time.sleep(random.uniform(0.5, 1.5) * _PAUSE_SECONDS * attempt)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        self._is_closed = True
        for connection in self._open:
            connection.close()

    def shrink(self) -> None:
        """Make the room of deleted rows free for others at once; what is at the end of a table is returned.
        The server does the same by itself some time later. On a full disk it needs a page of its own for some
        tables: these are left to the server."""
        for table in _GROWING:
            vacuum = Statement(f"VACUUM {table}", name="free the room of rows")
            with self._connection() as connection:
                try:
                    connection.execute(vacuum.sql, prepare=False)
                except psycopg.errors.DiskFull:
                    continue
                except psycopg.Error as error:
                    raise failed(error, [vacuum], self._where) from error

    def use_reserve(self) -> None:
        """Return the pages of the reserve and of the HTML of items, which is made again, to the disk: neither
        needs a free one, but for the second where there was no reserve.

        The room of deleted rows is for rows of their own table; `VACUUM` and tombstones need pages of
        others.
        """
        html = "TRUNCATE item_html"
        if not (self._tried_on_full(f"DROP TABLE IF EXISTS {_RESERVE}") and self._tried_on_full(html)):
            # Its file shrinks to nothing, if it was ever vacuumed.
            self._tried_on_full("DELETE FROM item_html")
            if self._tried_on_full("VACUUM item_html"):
                self._tried_on_full(html)

    def keep_reserve(self) -> None:
        """Keep RESERVE_BYTES, where there are so many."""
        # Rows of integers are not compressed; with this fillfactor some 20 of them take a page.
        self._tried_on_full(
            f"""CREATE TABLE IF NOT EXISTS {_RESERVE} WITH (fillfactor = 10, autovacuum_enabled = off)
            AS SELECT n FROM generate_series(1, {RESERVE_BYTES // _PAGE_BYTES * 22}) AS s (n)"""
        )

    def _tried_on_full(self, sql: str) -> bool:
        """Run this by itself; False where it needs more room than there is, or another one does it now."""
        statement = Statement(sql, name="make room")
        with self._connection() as connection:
            try:
                connection.execute(statement.sql, prepare=False)
            except (
                psycopg.errors.DiskFull,
                psycopg.errors.DuplicateObject,
                psycopg.errors.InsufficientPrivilege,
                psycopg.errors.LockNotAvailable,
                psycopg.errors.UniqueViolation,
            ):
                return False
            except psycopg.Error as error:
                raise failed(error, [statement], self._where) from error
        return True

    def is_prepared(self) -> bool:
        """True if the database has the functions of this code."""
        return bool(self.query(VERSION_SQL, name="read functions").rows == [{"version": version()}])

    def prepare(self) -> None:
        """Make the functions that our statements use, or renew them, and the reserve."""
        if not self.is_prepared():
            self._make_functions()
        self.keep_reserve()

    def _make_functions(self) -> None:
        making = Statement(script(), name="make functions")
        in_one = f"BEGIN; SELECT pg_advisory_xact_lock({_WRITERS}); {making.sql}; COMMIT"
        with self._connection() as connection:
            try:
                connection.execute(in_one, prepare=False)
            except psycopg.Error as error:
                self._roll_back(connection)
                raise failed(error, [making], self._where) from error

    def _prepared(self, statement: Statement) -> _Prepared:
        try:
            sql = translate(statement.sql)
        except ValueError as error:
            raise DatabaseUnavailable(f"{self._where}: {error}. Statement: {statement.name}") from error
        return sql, [int(value) if isinstance(value, bool) else value for value in statement.params]

    def _run(
        self, statements: Sequence[Statement], prepared: Sequence[_Prepared], begin: Sequence[str]
    ) -> list[Result]:
        with self._of_writer() if _LOCK_WRITERS in begin else self._connection() as connection:
            cursors: list[psycopg.Cursor[tuple[object, ...]]] = []
            try:
                if begin is _BEGIN_TO_READ and len(prepared) == 1 and not connection.is_pooled:
                    return [_result(connection.execute(*prepared[0]))]
                with connection.pipeline():
                    for sql in (begin[0], *([SET_LOCALLY] if connection.is_pooled else ()), *begin[1:]):
                        connection.execute(sql)
                    for sql, params in prepared:
                        cursor = connection.cursor()
                        cursors.append(cursor)
                        cursor.execute(sql, params)
                    connection.execute("COMMIT")
                return [_result(cursor) for cursor in cursors]
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                self._roll_back(connection)
                raise
            except psycopg.Error as error:
                self._roll_back(connection)
                raise failed(error, _from_failed(statements, cursors), self._where) from error
            except BaseException:
                # Cut off half-way: what the server still answers is not to be taken for another answer.
                connection.close()
                raise

    def _roll_back(self, connection: Connection) -> None:
        with suppress(psycopg.Error):
            connection.rollback()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection that no other thread uses; waits where all are in use."""
        connection = self._idle.get()
        try:
            connection = self._alive(connection)
            yield connection
        finally:
            self._idle.put(connection)

    @contextmanager
    def _of_writer(self) -> Iterator[Connection]:
        """The connection of batches that write; waits for those of other threads."""
        with self._writing:
            self._writer = self._alive(self._writer)
            yield self._writer

    def _alive(self, connection: Connection | None) -> Connection:
        """This connection, or a new one in its place."""
        if self._is_closed:
            raise DatabaseUnavailable(f"{self._where}: the database was closed")
        if connection is not None and _is_alive(connection):
            return connection
        new = connected(self._url, self._where, silent_seconds=self._silent_seconds)
        self._open.append(new)
        if connection is not None:
            connection.close()
            self._open.remove(connection)
        return new


def _begin(statements: Sequence[Statement]) -> Sequence[str]:
    """The statements that begin a batch: with the locks that it needs, in their order."""
    if all(only_reads(statement.sql) for statement in statements):
        return _BEGIN_TO_READ
    begin = [*_begin_to_write(statements), _LOCK_WRITERS]
    if any(_WRITES_LEASES.search(statement.sql) for statement in statements):
        begin.append(_LOCK_CLAIMS)
    return begin


def _begin_to_write(statements: Sequence[Statement]) -> list[str]:
    is_planned_once = any(statement.planned_once for statement in statements)
    return [_BEGIN, *(_PLAN_ONCE if is_planned_once else ())]


def _is_alive(connection: Connection) -> bool:
    """False where the server has ended the connection: of an idle one there is nothing else to read."""
    if connection.closed or connection.broken:
        return False
    readable, _, _ = select.select([connection.fileno()], [], [], 0)
    return not readable


def _result(cursor: psycopg.Cursor[tuple[object, ...]]) -> Result:
    names = tuple([column.name for column in cursor.description or ()])
    command = (cursor.statusmessage or "").partition(" ")[0]
    values = cursor.fetchall() if cursor.description else []
    if "rowid" in names:
        # `*` does not show it in SQLite.
        shown = [place for place, name in enumerate(names) if name != "rowid"]
        names = tuple([names[place] for place in shown])
        values = [tuple([row[place] for place in shown]) for row in values]
    return Result(names, values, max(cursor.rowcount, 0) if command in _COUNTED else 0)


def _from_failed(
    statements: Sequence[Statement], cursors: Sequence[psycopg.Cursor[tuple[object, ...]]]
) -> Sequence[Statement]:
    """The statements from the one on that failed: the first without a result."""
    for number, cursor in enumerate(cursors):
        result = cursor.pgresult
        if result is None or result.status not in (
            psycopg.pq.ExecStatus.COMMAND_OK,
            psycopg.pq.ExecStatus.TUPLES_OK,
        ):
            return statements[number:]
    return statements


# The functions of functions.sql in a database: whether they are there, and making them.

VERSION_SQL = f"""SELECT obj_description(to_regnamespace('{SCHEMA}'), 'pg_namespace') AS version"""
"""The version of the functions that a database has: NULL without any."""


@cache
def version() -> str:
    """The version of this code's functions: the hash of their file."""
    return sha256(_script().encode()).hexdigest()


def script() -> str:
    """The statements that make the functions, to be run in one transaction."""
    return f"""CREATE SCHEMA IF NOT EXISTS {SCHEMA};
{_script()}
COMMENT ON SCHEMA {SCHEMA} IS '{version()}';"""


@cache
def _script() -> str:
    return files("rss_pipeline.storage.backends.postgres").joinpath("functions.sql").read_text("utf-8")
