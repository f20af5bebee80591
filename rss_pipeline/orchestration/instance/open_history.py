"""Dagster's SQLite files of a run, held open while it runs.

Dagster opens and closes a file for each event. Where no other connection to a file is open, closing one makes
SQLite copy the write-ahead log into the file, wait for the disk and delete the log. With one more connection
that stays open an event takes half the time.
https://www.sqlite.org/wal.html
"""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import dagster as dg

from rss_pipeline.orchestration.dagster_private import INDEX_SHARD_NAME, SqliteEventLogStorage


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
