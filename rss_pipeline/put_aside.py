"""Files of the home that are damaged, or that something else is in the place of: they get another name beside
their own, so that what is made anew can begin, and nothing is lost.
"""

import json
import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

_BESIDE = ("", "-wal", "-shm", "-journal")
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LARGEST_READ = 64_000_000
"""Bytes of a file that is read as a whole at each start, in some tenths of a second."""


def put_aside(path: Path) -> Path:
    """Rename a file or folder, with what SQLite has beside it; return its new path.

    Raises:
        OSError: the folder cannot be written.
    """
    stem = f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    aside, number = path.with_name(stem), 1
    while os.path.lexists(aside):
        number += 1
        aside = path.with_name(f"{stem}-{number}")
    for suffix in reversed(_BESIDE):
        # The file itself last: whoever is killed here finds it again.
        with suppress(FileNotFoundError):
            path.with_name(f"{path.name}{suffix}").rename(aside.with_name(f"{aside.name}{suffix}"))
    return aside


def damage_of_tables(path: Path, *, documents: str) -> str | None:
    """A clause about a file of SQLite that cannot be used; None for one that can, for an empty one, which
    gets its tables, and for none. A larger file is read in part. `documents` is a query for columns of JSON:
    bytes that were changed within a value are no fault to SQLite."""
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        return "it is no file"
    if not os.access(path, os.R_OK | os.W_OK):
        return "it cannot be read and written"
    try:
        if path.stat().st_size == 0:
            return None
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5.0)) as tables:
            tables.execute("SELECT count(*) FROM sqlite_master").fetchall()
            if path.stat().st_size <= _LARGEST_READ:
                [(found,), *_] = tables.execute("PRAGMA quick_check(1)").fetchall()
                if found != "ok":
                    return str(found).splitlines()[-1]
                for row in tables.execute(documents):
                    for text in row:
                        json.loads(text or "null")
    except ValueError:
        return "a value in it cannot be read"
    except sqlite3.Error as error:
        if "decode" in str(error) and not hasattr(error, "sqlite_errorcode"):
            return "a value in it is no text"
        # A lock, a full disk, or tables of another version are no damage.
        return str(error) if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN else None
    return None
