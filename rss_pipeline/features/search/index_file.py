"""The file of the search index: SQLite with FTS5 beside the home, opened, checked and thrown away.

It is no part of the database and never in D1: an export of a D1 with an FTS5 table is refused. Whatever is
wrong with the file, it is deleted and built again. The tables' rows are writing.py's and finding.py's.

An index is a generation of three tables. A rebuild fills the next generation while the last one serves, and a
generation serves alone once it has all items. Slots (rowids of both tables) grow with the arrival numbers of
items, so the newest come first without a sort. Of eight slots an item takes the first; each new version of it
takes the next one, because FTS5 without contents forgets no words: a slot without a row in `documents` is
dead.

https://sqlite.org/fts5.html
"""

import contextlib
import logging
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rss_pipeline.errors import DatabaseUnavailable, InfrastructureError, disk_full, disk_is_full
from rss_pipeline.put_aside import put_aside
from rss_pipeline.settings import Settings

FORMAT = 1
"""The version of the tables and of the words in them; a file of another one is thrown away."""
SLOTS = 8
"""Texts of one item: its first one, and seven versions."""
_BUSY_SECONDS = 20.0
_PAGES_AT_ONCE = 2_000
_HASH_BYTES = 32 * 1024 * 1024
"""Memory for the words of a transaction. FTS5's own megabyte makes thirty times as many segments to merge."""

_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE feeds (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE generations (
  number INTEGER PRIMARY KEY,
  is_complete INTEGER NOT NULL DEFAULT 0,
  arrived INTEGER NOT NULL DEFAULT 0,
  version_row INTEGER NOT NULL DEFAULT 0,
  version_at TEXT NOT NULL DEFAULT '',
  dead INTEGER NOT NULL DEFAULT 0,
  is_worn INTEGER NOT NULL DEFAULT 0
);
"""
# The content is the first column: a place in another one costs two bytes more for every word of an item.
_GENERATION = """
CREATE VIRTUAL TABLE words_{n} USING fts5(content, title, author, scope, content='',
  tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
INSERT INTO words_{n} (words_{n}, rank) VALUES ('hashsize', {hash_bytes});
CREATE TABLE documents_{n} (slot INTEGER PRIMARY KEY, arrived INTEGER NOT NULL, feed INTEGER NOT NULL,
  published INTEGER NOT NULL);
"""

_NO_FTS5 = (
    "search needs SQLite with FTS5, and this Python's SQLite {version} has none: use a Python of python.org,"
    " of Debian, or of uv; everything else works without it"
)
_START = secrets.token_hex(8)
"""The mark of this process, and of all that are forked from it."""
_logger = logging.getLogger(__name__)
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SearchUnavailable(InfrastructureError):
    """The search index is not made yet, is broken, or cannot be made by this SQLite."""


class IndexBroken(SearchUnavailable):
    """The file is damaged, or of another version of this project: it has to be built again."""


class IndexFile:
    """The open file. Safe to call from several threads, one at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._inode = path.stat().st_ino

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock, self._mapped():
            return self._connection.execute(sql, params).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, with the lock of a writer from its start; all of it is applied or nothing."""
        with self._lock, self._mapped():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                raise

    def is_current(self) -> bool:
        """False where the file was deleted or replaced: this one is not used any more."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def shrink(self) -> None:
        """Give the room of what was dropped back to the file system, as far as the log of that has room."""
        with contextlib.suppress(DatabaseUnavailable):
            before = None
            while (free := self.rows("PRAGMA freelist_count")) not in ([(0,)], before):
                with self._lock, self._mapped():
                    # `execute` takes one step of a statement without columns, which is one page.
                    self._connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
                before = free

    def close(self) -> None:
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._connection.close()

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _mapped(error, self.path) from error


def index_path(settings: Settings) -> Path:
    """The search index, which may be deleted at any time."""
    return settings.home / "search.sqlite"


@contextmanager
def open_to_write(path: Path) -> Iterator[IndexFile]:
    """The file, made where there is none, and anew where it cannot be used. Each start of the program looks
    once at all of it: SQLite notices some changed bytes only where it comes across them.

    Raises:
        SearchUnavailable: this SQLite has no FTS5.
        IndexBroken: the file shows now that it is damaged; it is deleted, and the next call makes it.
        DatabaseUnavailable: the file cannot be made or written.
    """
    check_fts5()
    try:
        file = _open_whole(path)
    except IndexBroken as error:
        _logger.warning("%s", error)
        throw_away(path)
        file = _open(path)
    try:
        yield file
    except IndexBroken:
        file.close()
        throw_away(path)
        raise
    finally:
        file.close()


def _open_whole(path: Path) -> IndexFile:
    if path.is_dir():
        raise IndexBroken(f"{path} is no file; the search index is built again")
    file = _open(path)
    try:
        if file.rows("SELECT value FROM state WHERE name = 'checked'") != [(_START,)]:
            _check_all(file)
    except BaseException:
        file.close()
        raise
    return file


def _check_all(file: IndexFile) -> None:
    [(found,), *_] = file.rows("PRAGMA quick_check(1)")
    if found != "ok":
        raise IndexBroken(f"the search index is damaged ({str(found).splitlines()[-1]}); it is built again")
    with file.writing() as transaction:
        for (number,) in transaction.execute("SELECT number FROM generations").fetchall():
            transaction.execute(f"INSERT INTO words_{number} (words_{number}) VALUES ('integrity-check')")
        transaction.execute("INSERT OR REPLACE INTO state VALUES ('checked', ?)", [_START])


def open_to_read(path: Path) -> IndexFile:
    """The file as it is.

    Raises:
        SearchUnavailable: there is none yet, it is broken, or this SQLite has no FTS5.
    """
    check_fts5()
    if not path.is_file():
        raise SearchUnavailable(
            "the search index is not made yet: it is, some seconds after the reader started"
        )
    try:
        with contextlib.ExitStack() as unless_it_is_read:
            connection = unless_it_is_read.enter_context(
                contextlib.closing(_connected(f"{path.absolute().as_uri()}?mode=rw"))
            )
            connection.execute("PRAGMA query_only=ON")
            file = IndexFile(path, connection)
            _check(file)
            unless_it_is_read.pop_all()
    except sqlite3.Error as error:
        raise SearchUnavailable(f"the search index cannot be read: {error}") from error
    return file


def throw_away(path: Path) -> None:
    """Delete the file with those beside it; a process that has it open notices (`is_current`)."""
    if path.is_dir():
        # Nobody knows of what it is.
        put_aside(path)
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def check_fts5() -> None:
    """Raise SearchUnavailable where this SQLite was built without FTS5."""
    if not has_fts5():
        raise SearchUnavailable(_NO_FTS5.format(version=sqlite3.sqlite_version))


def has_fts5() -> bool:
    """True if this SQLite was built with FTS5."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        try:
            memory.execute("CREATE VIRTUAL TABLE it USING fts5(words)")
        except sqlite3.OperationalError:
            return False
    return True


def add_generation(connection: sqlite3.Connection, number: int) -> None:
    """Make the tables of an empty generation, within a transaction."""
    for sql in _GENERATION.format(n=number, hash_bytes=_HASH_BYTES).split(";\n"):
        if sql.strip():
            connection.execute(sql)
    connection.execute("INSERT INTO generations (number) VALUES (?)", [number])


def drop_generation(connection: sqlite3.Connection, number: int) -> None:
    """Delete a generation, within a transaction."""
    connection.execute(f"DROP TABLE IF EXISTS words_{number}")
    connection.execute(f"DROP TABLE IF EXISTS documents_{number}")
    connection.execute("DELETE FROM generations WHERE number = ?", [number])


def _open(path: Path) -> IndexFile:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connected(str(path))
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnavailable(f"{path}: {error}; check the path, its rights and the disk") from error
    try:
        for setting in ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=NORMAL"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("PRAGMA journal_size_limit=67108864")
        file = IndexFile(path, connection)
        with file.writing() as transaction:
            if not transaction.execute("SELECT 1 FROM sqlite_master").fetchall():
                for sql in _TABLES.split(";\n"):
                    if sql.strip():
                        transaction.execute(sql)
                transaction.execute("INSERT INTO state VALUES ('format', ?)", [FORMAT])
                add_generation(transaction, 1)
        _check(file)
    except sqlite3.Error as error:
        connection.close()
        raise _mapped(error, path) from error
    except BaseException:
        connection.close()
        raise
    return file


def _connected(name: str) -> sqlite3.Connection:
    return sqlite3.connect(
        name,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=name.startswith("file:"),
    )


def _check(file: IndexFile) -> None:
    try:
        found = file.rows("SELECT value FROM state WHERE name = 'format'")
    except DatabaseUnavailable as error:
        raise IndexBroken(f"the search index cannot be used: {error}") from error
    if found != [(FORMAT,)]:
        raise IndexBroken("the search index is of another version; it is built again")


def _mapped(error: sqlite3.Error, path: Path) -> SearchUnavailable | DatabaseUnavailable:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN:
        return IndexBroken(f"the search index is damaged ({error}); it is built again")
    if disk_is_full(error, at=path.parent):
        return DatabaseUnavailable(f"{disk_full(path.parent)}. {path}: {error}")
    return DatabaseUnavailable(f"{path}: {error}")
