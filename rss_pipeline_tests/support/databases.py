"""SQLite files with the schema in them: copies of one that is migrated once in each process.

All migrations take fifteen times as long as a copy, and most tests begin with a database.
"""

import tempfile
from functools import cache
from pathlib import Path

from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.schema import migrate


def migrated(path: Path) -> SqliteDatabase:
    """A new database, as if `migrate` had made it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_migrated_file())
    return SqliteDatabase(path)


@cache
def _migrated_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder, "rss.sqlite"))
        migrate(database)
        # Closing its only connection puts the write-ahead log into the file.
        database.close()
        return database.path.read_bytes()
