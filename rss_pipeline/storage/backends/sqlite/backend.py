"""The embedded database: one SQLite file in WAL mode in the home, without a server.

The connections, the binding and the mapping of errors; limits are in storage/database.py, SQL elsewhere.
"""

import contextlib
import os
import re
import shutil
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Self

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import DatabaseFull, DatabaseUnavailable, StorageRejected, disk_full, disk_is_full
from rss_pipeline.storage.backends.backend import REQUEST_SECONDS, DatabaseBackend, ServerAnswer, shown
from rss_pipeline.storage.database import (
    LARGE_ITEM_BYTES,
    MAX_PARAMETERS,
    MAX_SQL_BYTES,
    MAX_VALUE_BYTES,
    Database,
    Result,
    Room,
    Statement,
    Value,
    check_batch,
    described,
    only_reads,
)

BUSY_TIMEOUT_SECONDS = 20.0
_READS_AT_ONCE = max(4, os.cpu_count() or 1)
"""More would wait for a processor anyway, and each connection has a cache of 2 MB, or that of requests: with
forty readers at once, answers take half as long again as with four."""
_CACHE_OF_REQUESTS = "cache_size=-16000"
"""In KiB, as far as it is used: the unread items of some thousand feeds are looked up in indexes larger than
2 MB, which would be read anew for each list."""
_INCREMENTAL = 2
_PAGES_AT_ONCE = 2_000
"""Some 8 MB: others may write in between."""
_FEWEST_PAGES = 100
_CHECKPOINT_PAGES = 1_000
"""SQLite's default."""
_CACHE_KILOBYTES = 64_000
"""The changes of a transaction that are kept in memory where there is little room."""
_SIZE = ("page_count", "page_size")
OLDEST_SQLITE = (3, 35, 0)
"""RETURNING."""

_D1_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: MAX_SQL_BYTES,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: MAX_PARAMETERS,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 5,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 32,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
}
"""Limits that a statement alone does not show, above all a row that is too long (Cloudflare D1, "Limits")."""

DATA_ERRORS = frozenset({sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH})
_OF_ITEMS = re.compile(r"\bitem(?:s|_versions)\b")
"""Statements on the tables that hold the texts of items, or that read one of them."""
_CACHE = "cache_size=-4000"
"""4 MB for what writes: a batch of a poll touches more pages than the usual 2 MB hold, and those that do not
fit are written, and read again, within it."""
_LIMIT_ERRORS = re.compile(
    "too many (?:columns|terms|arguments)|pattern too complex|expression tree is too large", re.IGNORECASE
)
"""Limits that only SQLite's words show; the Worker knows the same ones."""


class SqliteDatabase:
    """A `Database` over one file: a connection behind a lock, which alone writes, and others that only read.

    A read never waits for a write: while the first connection is in use, it takes another one. With
    `for_requests` it always does, so that no write waits for a long read either, and a write waits for at
    most `busy_timeout` seconds until those of other threads are done.

    A file that no process has open needs another one beside it, and so some room on the disk. With
    `alone_where_full`, a command reads and deletes without: no other process can use the file meanwhile.

    `synchronous=NORMAL`: after a loss of power the newest transactions may be gone, but always a suffix of
    them: items and the validators that would hide them go together, and the feeds are due again.
    """

    takes_bytes = True
    writes_in_turn = True
    item_bytes = LARGE_ITEM_BYTES

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout: float = BUSY_TIMEOUT_SECONDS,
        for_requests: bool = False,
        alone_where_full: bool = False,
    ) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise DatabaseUnavailable(
                f"this Python carries SQLite {sqlite3.sqlite_version}; 3.35 or newer is needed"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseUnavailable(f"{path}: {error}; check the path, its rights and the disk") from error
        settings: tuple[str, ...] = (
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
            # As SQLite is shipped by itself; Debian's writes each deleted page once more, for its zeros.
            "secure_delete=FAST",
            _CACHE,
        )
        # Only before there is a page; it would write to an old file.
        is_new = not path.exists() or (path.is_file() and path.stat().st_size == 0)
        if is_new:
            settings = ("auto_vacuum=INCREMENTAL", *settings)
        try:
            self._open(path, str(path), settings, busy_timeout, for_requests=for_requests)
        except DatabaseFull:
            if not alone_where_full or is_new:
                raise
            settings = ("locking_mode=EXCLUSIVE", *settings)
            self._open(path, str(path), settings, busy_timeout, for_requests=False)
            self._is_alone = True
        if alone_where_full and not is_new:
            self._writer.spare_room()

    @classmethod
    def to_read(cls, path: Path, *, is_beside_writable: bool) -> Self:
        """The existing file at `path`, for a user who may not write it; `is_beside_writable`: but its folder.

        SQLite reads a file in WAL mode with the help of two files beside it. Where they are not there and
        cannot be made, no other process has the file open, and it is read without them.
        """
        wal = path.with_name(f"{path.name}-wal")
        is_alone = not is_beside_writable and not wal.exists()
        uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_alone else ''}"
        database = cls.__new__(cls)
        database._open(path, uri, ("query_only=ON",), BUSY_TIMEOUT_SECONDS, for_requests=False)
        return database

    def _open(
        self, path: Path, uri: str, settings: Sequence[str], busy_timeout: float, *, for_requests: bool
    ) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._for_requests = for_requests
        self._lock = threading.RLock()
        self._is_closed = False
        self._is_alone = False
        self._connect = partial(_Connection, path, uri, busy_timeout)
        self._writer = self._connect(settings)
        # LIFO: what was used last has the most in its cache.
        self._idle_readers: deque[_Connection] = deque()
        self._reads = threading.BoundedSemaphore(_READS_AT_ONCE)
        self._reader_settings = ("query_only=ON", *([_CACHE_OF_REQUESTS] if for_requests else []))

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        check_batch(statements, item_bytes=self.item_bytes)
        if all(only_reads(statement.sql) for statement in statements):
            with self._reading() as connection:
                # Several see one moment.
                return connection.run(statements, begin=None if len(statements) == 1 else "BEGIN")
        with self._writing(statements[0]) as connection:
            connection.undo_in(memory=any(statement.planned_once for statement in statements))
            try:
                return connection.run(statements, begin="BEGIN IMMEDIATE")
            except DatabaseFull:
                # The log of what was written before may have the room that is missing.
                if not connection.checkpoint():
                    raise
            return connection.run(statements, begin="BEGIN IMMEDIATE")

    def room(self) -> Room:
        """The size of the file, and what of it is free for rows."""
        page, pages, free, mode = (
            int(row[name])
            for name in ("page_size", "page_count", "freelist_count", "auto_vacuum")
            for row in self.query(f"SELECT * FROM pragma_{name}").rows
        )
        return Room(bytes=page * pages, free=page * free, shrinks=mode == _INCREMENTAL)

    def shrink(self) -> None:
        """Return what is free in the file to the disk, where the file can: others write meanwhile."""
        pages = _PAGES_AT_ONCE
        while (room := self.room()).shrinks and room.free:
            try:
                with self._lock:
                    self._writer.free_pages(pages)
            except DatabaseFull:
                # Each page is written into the log first.
                if pages < _FEWEST_PAGES:
                    break
                pages //= 10
                continue
            if self.room().free >= room.free:
                break
        with self._lock:
            self._writer.checkpoint()

    def compact(self) -> None:
        """Write the file anew, without what is free in it; it shrinks by itself from then on.

        It takes room for two copies of the rows for that time, below the file's folder, and no other process
        can write meanwhile.
        """
        with self._lock:
            try:
                self._writer.vacuum(self.path.parent)
            finally:
                # Also where it failed: its log may have taken the room.
                self._writer.checkpoint()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._writer.close()
        with contextlib.suppress(IndexError):
            while True:
                self._idle_readers.pop().close()

    @contextmanager
    def _reading(self) -> Iterator["_Connection"]:
        if self._is_closed:
            yield self._writer  # It says so by itself.
            return
        if self._is_alone:
            with self._lock:
                yield self._writer
            return
        if not self._for_requests and self._lock.acquire(blocking=False):
            try:
                yield self._writer
            finally:
                self._lock.release()
            return
        with self._reads:
            try:
                connection = self._idle_readers.pop()
            except IndexError:
                connection = self._connect(self._reader_settings)
            try:
                yield connection
            finally:
                if self._is_closed:
                    connection.close()
                else:
                    self._idle_readers.append(connection)

    @contextmanager
    def _writing(self, statement: Statement) -> Iterator["_Connection"]:
        began = time.monotonic()
        if not self._lock.acquire(timeout=self._busy_timeout if self._for_requests else -1):
            raise DatabaseUnavailable(
                f"{self.path}: other requests have waited to write for {self._busy_timeout:g} s;"
                f" {_ADVICE[sqlite3.SQLITE_BUSY]}. Statement: {described(statement, characters=200)}"
            )
        try:
            if self._for_requests:
                self._writer.wait_for(max(0.0, self._busy_timeout - (time.monotonic() - began)))
            yield self._writer
        finally:
            self._lock.release()


class _Connection:
    """One connection with D1's limits. Used by one thread at a time."""

    def __init__(self, path: Path, uri: str, busy_timeout: float, settings: Sequence[str]) -> None:
        self._path = path
        self._spares = False
        try:
            self._connection = sqlite3.connect(
                uri,
                timeout=busy_timeout,
                isolation_level=None,
                check_same_thread=False,
                uri=uri.startswith("file:"),
            )
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"{path}: {error}; check the path, its rights and the disk") from error
        for limit, most in _D1_LIMITS.items():
            self._connection.setlimit(limit, most)
        self._value_bytes = MAX_VALUE_BYTES
        self._waits = round(busy_timeout, 1)
        self._undoes_in_memory = False
        try:
            for setting in settings:
                self._command(f"PRAGMA {setting}")
        except DatabaseUnavailable:
            self._connection.close()
            raise

    def run(self, statements: Sequence[Statement], *, begin: str | None) -> list[Result]:
        """The results of statements, in a transaction that begins so; None: of one, without."""
        if begin is None:
            return [self._execute(statement) for statement in statements]
        self._command(begin)
        try:
            results = [self._execute(statement) for statement in statements]
            self._command("COMMIT")
        except BaseException:
            # The first error says what went wrong, not a second one of the ROLLBACK.
            with contextlib.suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            raise
        return results

    def undo_in(self, *, memory: bool) -> None:
        """Keep what undoes a statement in memory, or in a temporary file: each document's insert would make
        one, and others may change a whole table."""
        if memory != self._undoes_in_memory:
            self._command(f"PRAGMA temp_store = {'MEMORY' if memory else 'DEFAULT'}")
            self._undoes_in_memory = memory

    def wait_for(self, seconds: float) -> None:
        """Wait so long, at most, for a lock of another process."""
        if (rounded := round(seconds, 1)) != self._waits:
            self._command(f"PRAGMA busy_timeout = {round(rounded * 1_000)}")
            self._waits = rounded

    def vacuum(self, folder: Path) -> None:
        """Write the file anew; what it needs meanwhile is in this folder, not in that of the system."""
        # A variable of the environment would be too late: SQLite reads it once, when the program begins.
        place = str(folder.absolute()).replace("'", "''")
        self.undo_in(memory=False)
        self._command(f"PRAGMA temp_store_directory = '{place}'")
        try:
            self._command("PRAGMA auto_vacuum = INCREMENTAL")
            self._command("VACUUM")
        finally:
            self._command("PRAGMA temp_store_directory = ''")

    def free_pages(self, most: int) -> None:
        """Take so many pages that are free off the end of the file, in one transaction."""
        sql = f"PRAGMA incremental_vacuum({most})"
        try:
            # `execute` takes one step of a statement without columns, which is one page.
            self._connection.executescript(sql)
        except sqlite3.Error as error:
            raise self._unavailable(error, Statement(sql, name="shrink the file")) from error

    def checkpoint(self) -> bool:
        """Write the log into the file, as far as nobody reads what was before, and cut it; False if there was
        none, or the file has no room for it."""
        try:
            has_log = self._path.with_name(f"{self._path.name}-wal").stat().st_size > 0
        except FileNotFoundError:
            return False
        if has_log and not self._has_room_for_log():
            return False
        try:
            self._command("PRAGMA wal_checkpoint(TRUNCATE)")
            if self._spares:
                self._command(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        except DatabaseFull:
            return False
        return has_log

    def spare_room(self) -> None:
        """Leave the log as it is while the file has no room for it: an attempt would take what room there is,
        and fail. A transaction keeps in memory what it changes, so that the log takes each page once."""
        self._spares = not self._has_room_for_log()
        if self._spares:
            self._command("PRAGMA wal_autocheckpoint = 0")
            self._command(f"PRAGMA cache_size = -{_CACHE_KILOBYTES}")

    def _has_room_for_log(self) -> bool:
        """True if the disk has room for what the log adds to the file."""
        pages, size = (int(self._execute(Statement(f"PRAGMA {name}")).values[0][0]) for name in _SIZE)
        more = pages * size - self._path.stat().st_size
        return more <= 0 or more <= shutil.disk_usage(self._path.parent).free

    def close(self) -> None:
        with self._log_left() if self._spares else contextlib.nullcontext():
            self._connection.close()

    @contextmanager
    def _log_left(self) -> Iterator[None]:
        """Within, the end of this connection does not write the log into a file that has no room for it: only
        the last one does, if it may write."""
        last = None
        with contextlib.suppress(sqlite3.Error, DatabaseUnavailable):
            if not self._has_room_for_log():
                last = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
                last.execute("SELECT count(*) FROM sqlite_master")
        try:
            yield
        finally:
            if last is not None:
                last.close()

    def _command(self, sql: str) -> None:
        try:
            self._connection.execute(sql)
        except sqlite3.Error as error:
            raise self._unavailable(error, Statement(sql)) from error

    def _execute(self, statement: Statement) -> Result:
        if (most := _value_bytes(statement.sql)) != self._value_bytes:
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most)
            self._value_bytes = most
        before = self._connection.total_changes
        # D1 binds every number as a double; so do we, or `1` in a TEXT column would differ between stores.
        params = [float(value) if isinstance(value, int) else value for value in statement.params]
        try:
            cursor = self._connection.execute(statement.sql, params)
            names = tuple([column[0] for column in cursor.description or ()])
            values = cursor.fetchall()
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in DATA_ERRORS or _LIMIT_ERRORS.search(str(error)):
                raise StorageRejected(f"the database refused a value: {error}") from error
            raise self._unavailable(error, statement) from error
        return Result(names, values, self._connection.total_changes - before)

    def _unavailable(self, error: sqlite3.Error, statement: Statement) -> DatabaseUnavailable:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        if disk_is_full(error, at=self._path.parent):
            where = disk_full(self._path.parent)
            brief = described(statement, characters=200)
            return DatabaseFull(f"{where}. {self._path}: {error} ({name}). Statement: {brief}")
        advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, "see the message")
        brief = described(statement, characters=200)
        return DatabaseUnavailable(f"{self._path}: {error} ({name}): {advice}. Statement: {brief}")


@lru_cache(maxsize=1_000)
def _value_bytes(sql: str) -> int:
    """The size of a row and a value in a statement: of items that of the store, else D1's."""
    return LARGE_ITEM_BYTES if _OF_ITEMS.search(sql) else MAX_VALUE_BYTES


_ADVICE = {
    sqlite3.SQLITE_BUSY: "another process holds the write lock; end it or wait",
    sqlite3.SQLITE_LOCKED: "another connection holds a lock; end it or wait",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable",
    sqlite3.SQLITE_IOERR: "the disk failed a read or a write; check it and the room on it",
    sqlite3.SQLITE_CANTOPEN: "check the path and its rights",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy",
    sqlite3.SQLITE_NOTADB: "this is not a SQLite file; check RSS_PIPELINE_HOME",
    sqlite3.SQLITE_ERROR: "schema and code may differ; run `rss-pipeline migrate`",
}


DATABASE_FILE = "rss.sqlite"
"""Its name in the home."""


@dataclass(frozen=True, slots=True)
class SqliteBackend(DatabaseBackend):
    """A SQLite file. Opening it brings its schema up to date."""

    name = "sqlite"
    title = "SQLite"
    side = ("embedded", "folder")
    fix = "See the message."

    path: Path = shown("The SQLite file.")

    @classmethod
    def read(cls, reader: EnvironmentReader, *, ca_file: Path | None) -> None:
        """None: it is in the home, and no variable names it."""

    @property
    def place(self) -> str:
        return str(self.path)

    @property
    def file(self) -> Path:
        return self.path

    def connect(self, *, for_requests: bool = False, alone_where_full: bool = False) -> Database:
        if for_requests:
            return SqliteDatabase(self.path, busy_timeout=REQUEST_SECONDS, for_requests=True)
        return SqliteDatabase(self.path, alone_where_full=alone_where_full)

    def connect_to_read(self) -> Database | None:
        """A file that this user may not write, or on a file system that is mounted read-only, as it is."""
        path = self.path
        if not path.is_file() or (_may_write(path) and _may_write(path.parent)):
            return None
        return SqliteDatabase.to_read(path, is_beside_writable=_may_write(path.parent))

    def probe(self) -> ServerAnswer:
        return ServerAnswer(said=f"{self.path} can be read", clock=datetime.now(UTC), size_bytes=self.size())

    def size(self) -> int | None:
        """The file, with the log of what was written last."""
        beside = [path for path in (self.path, Path(f"{self.path}-wal")) if path.exists()]
        return sum(path.stat().st_size for path in beside) if beside else None


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
