"""Dagster's SQLite files of a run, held open while it runs.

Dagster opens and closes a file for each event. Where no other connection to a file is open, closing one makes
SQLite copy the write-ahead log into the file, wait for the disk and delete the log. With one more connection
that stays open an event takes half the time.
https://www.sqlite.org/wal.html
"""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage


@contextmanager
def history_held_open(instance: dg.DagsterInstance | None, run_id: str) -> Iterator[None]:
    """Hold the run's own file and the file that all runs share open, while the block runs.

    Nothing where events are stored elsewhere (Postgres, memory).
    """
    with ExitStack() as held:
        storage = None if instance is None else instance.event_log_storage
        if isinstance(storage, SqliteEventLogStorage):
            for shard in (run_id, INDEX_SHARD_NAME):
                path = Path(storage.path_for_shard(shard))
                if not path.exists():
                    continue
                # The resources of a run are not always closed in the thread that opened them.
                connection = sqlite3.connect(path, check_same_thread=False)
                held.enter_context(closing(connection))
                # A connection joins the log with its first statement; no transaction stays open.
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield


# The files of runs and ticks in Dagster's home, by their names. No Dagster is imported.

RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Only such an id becomes part of a path."""
_LOG = re.compile(r"([0-9]{1,18}|[0-9]{8}_[0-9]{6})\.(out|err|complete)(\.partial)?")
"""A tick's id, or the time of a test in the UI. Files of users' assets may be in the same folder."""


def ids_in(folder: Path) -> Iterator[tuple[str, float]]:
    """Run ids in the names of files and folders, with the time of their last change."""
    with os.scandir(folder) as entries:
        for entry in entries:
            id = entry.name.partition(".")[0]
            with suppress(FileNotFoundError):
                if RUN_ID.fullmatch(id):
                    yield id, entry.stat().st_mtime


def logs_in(folder: Path, before: datetime) -> Iterator[tuple[Path, int | None]]:
    """Log files last written before then, with the tick's id if the name of the file has it."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            named = _LOG.fullmatch(entry.name)
            with suppress(FileNotFoundError):
                if (
                    named is not None
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_mtime < before.timestamp()
                ):
                    yield Path(entry.path), int(named[1]) if named[1].isdigit() else None
