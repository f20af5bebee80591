"""Dagster's SQLite storages with files that stay open: dagster.yaml names the class `OpenSqliteStorage`.

Dagster opens and closes a file for each statement. The last connection that is closed copies the write-ahead
log into the file, waits for the disk and deletes the log, so that even reading writes: at rest 18 GB and
293,000 waits a day, for ticks and heartbeats alone. It also reads alembic's 89 revisions for each file of
each instance, and a sensor has a new instance at each tick. Here each process keeps a connection to a file,
and looks at a file's schema once. A power cut may lose the last events of a run, never a file;
`end_dead_runs` ends such a run. Our own database waits for the disk as before. What runs print is kept in
files alone (`RunOutput`).
https://www.sqlite.org/wal.html
"""

import atexit
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

import sqlalchemy as sa
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool
from watchdog.events import FileSystemEvent
from watchdog.observers import Observer

from rss_pipeline.errors import InfrastructureError
from rss_pipeline.orchestration.dagster_private import (
    INDEX_SHARD_NAME,
    IO_TYPE_EXTENSION,
    CapturedLogContext,
    ComputeIOType,
    ConfigurableClassData,
    DagsterSqliteStorage,
    EventHandlerFn,
    LocalComputeLogManager,
    SqlEventLogStorageMetadata,
    SqliteEventLogStorage,
    SqliteEventLogStorageWatchdog,
    SqliteRunStorage,
    SqliteScheduleStorage,
    create_db_conn_string,
    event_logs_directory,
    get_alembic_config,
    redirect_to_file,
    runs_directory,
    schedule_directory,
    sqlite_event_log,
)

MOST_OPEN = 8
"""Files at once in a process: three of all runs, and those of single runs. The oldest is closed first."""
BUSY_SECONDS = 60.0
"""Time for which a statement waits for those of other processes."""

_VERSION_TABLE = (
    "CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n\t"
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)"
)


@dataclass(frozen=True, slots=True)
class _File:
    engine: sa.Engine
    identity: tuple[int, int]
    """Device and inode: a file that was removed or replaced is another one."""


class OpenFiles:
    """The SQLite files that this process keeps open, by their paths."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[str, _File] = OrderedDict()
        self._inherited: list[object] = []

    def engine(self, path: str) -> sa.Engine | None:
        """The engine of this file; None for one without Dagster's schema, or that is not there."""
        identity = _identity(path)
        with self._lock:
            known = self._files.get(path)
            if known is not None and known.identity == identity:
                self._files.move_to_end(path)
                return known.engine
            if known is not None:
                self._close(path)
            if identity is None:
                return None
            engine = _new_engine(path)
            if not _is_complete(engine):
                engine.dispose()
                return None
            self._files[path] = _File(engine, identity)
            while len(self._files) > MOST_OPEN:
                self._close(next(iter(self._files)))
        return engine

    def close(self) -> None:
        """Close all. A process that is about to fork calls it: no child may use what its parent opened."""
        with self._lock:
            for path in list(self._files):
                self._close(path)

    def abandon(self) -> None:
        """In a child, begin anew. What the parent had open is kept and never touched: to close it is an act
        on the parent's files."""
        self._inherited.append(self._files)
        self._lock = threading.Lock()
        self._files = OrderedDict()

    def _close(self, path: str) -> None:
        # A connection that is in use is closed when it is returned.
        self._files.pop(path).engine.dispose()


OPEN_FILES = OpenFiles()
atexit.register(OPEN_FILES.close)
os.register_at_fork(after_in_child=OPEN_FILES.abandon)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _new_engine(path: str) -> sa.Engine:
    # One connection stays open. More are opened where threads meet, or one statement is within another.
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=path),
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=-1,
        connect_args={"timeout": BUSY_SECONDS},
    )
    sa.event.listen(engine, "connect", _without_waits)
    return engine


def _without_waits(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


def _is_complete(engine: sa.Engine) -> bool:
    """True where the version of the schema is there, which is written last."""
    try:
        with engine.connect() as connection:
            return connection.exec_driver_sql("SELECT 1 FROM alembic_version").first() is not None
    except OperationalError:
        return False


@contextmanager
def _transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    with engine.connect() as connection, connection.begin():
        yield connection


class OpenRunStorage(SqliteRunStorage):
    """The runs of an instance, in a file that stays open."""

    @classmethod
    def from_local(cls, base_dir: str, inst_data: ConfigurableClassData | None = None) -> Self:
        if OPEN_FILES.engine(_path(base_dir, _RUNS)) is None:
            return super().from_local(base_dir, inst_data)
        return cls(create_db_conn_string(base_dir, _RUNS), inst_data)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with _connection(self._conn_string, super().connect) as connection:
            yield connection


class OpenScheduleStorage(SqliteScheduleStorage):
    """The ticks and states of sensors and schedules, in a file that stays open."""

    @classmethod
    def from_local(
        cls, base_dir: str, inst_data: ConfigurableClassData | None = None
    ) -> SqliteScheduleStorage:
        if OPEN_FILES.engine(_path(base_dir, _SCHEDULES)) is None:
            return super().from_local(base_dir, inst_data)
        return cls(create_db_conn_string(base_dir, _SCHEDULES), inst_data)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        with _connection(self._conn_string, super().connect) as connection:
            yield connection


_RUNS, _SCHEDULES = "runs", "schedules"


def _path(base_dir: str, name: str) -> str:
    return os.path.join(os.path.abspath(base_dir), f"{name}.db")


@contextmanager
def _connection(
    url: str, as_dagster: Callable[[], AbstractContextManager[sa.Connection]]
) -> Iterator[sa.Connection]:
    engine = OPEN_FILES.engine(sa.make_url(url).database or "")
    # Dagster makes the tables, and says what is missing in a file without them.
    with as_dagster() if engine is None else _transaction(engine) as connection:
        yield connection


class OpenEventLogStorage(SqliteEventLogStorage):
    """The events of an instance: files that stay open, each run's own one among them.

    Dagster makes a run's file with its first event: each table and index in a transaction of its own, and
    alembic reads its revisions three times: 97 ms of processor time and 87 waits for the disk, here 20 and 6.
    """

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sa.Connection]:
        path = self.path_for_shard(shard)
        engine = OPEN_FILES.engine(path)
        if engine is None:
            self._make(shard)
            engine = OPEN_FILES.engine(path)
        if engine is None:
            raise InfrastructureError(f"{path} has no tables of Dagster")
        with _transaction(engine) as connection:
            yield connection

    def has_table(self, table_name: str) -> bool:
        with self.index_connection() as connection:
            return bool(sa.inspect(connection).has_table(table_name))

    def _make(self, shard: str) -> None:
        url = self.conn_string_for_shard(shard)
        engine = sa.create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
        is_index = shard == INDEX_SHARD_NAME
        if not is_index and not os.path.exists(self.path_for_shard(shard)) and (found := self._revision()):
            # Where another process makes the same file, it is that one's, or Dagster's own way waits for it.
            with suppress(DatabaseError):
                _make_file(engine, found)
                return
        self._initdb(engine, for_index_shard=is_index)

    def _revision(self) -> str | None:
        """The revision of the files of new runs; None where the history is of another version of Dagster."""
        with self.index_connection() as connection:
            revision = MigrationContext.configure(connection).get_current_revision()
        return revision if revision == newest_revision() else None

    def watch(self, run_id: str, cursor: str | None, callback: EventHandlerFn) -> None:
        """Call back for each event of this run from now on: the UI shows them while it lasts."""
        observer: Any = self._obs
        if observer is None:
            observer = Observer()
            cast("Any", self)._obs = observer
            observer.start()
        handler = _LiveRun(self, run_id, callback, cursor)
        watched = observer.schedule(handler, self._base_dir, recursive=True)
        self._watchers[run_id][callback] = handler, watched


class _LiveRun(SqliteEventLogStorageWatchdog):
    """The events of a run as they are written: to the log beside its file, while anyone has that open."""

    @property
    def patterns(self) -> list[str]:
        return [self._log_path, f"{self._log_path}-wal"]

    def on_modified(self, event: FileSystemEvent) -> None:
        self._process_log()


@cache
def newest_revision() -> str | None:
    """The revision of the files of runs in this version of Dagster. To find it loads a hundred modules."""
    config = get_alembic_config(sqlite_event_log.__file__)
    return ScriptDirectory.from_config(config).get_current_head()


class RunOutput(LocalComputeLogManager):
    """The output of runs, in the files where Dagster has it, and nowhere else.

    Dagster's own class starts four processes a run that copy it back to the terminal: 10 MB, and a tenth of a
    second of processor time. `rss-pipeline up` prints a line for each run.
    """

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Self:
        place = os.path.join(config_value["base_dir"], "storage")
        return cls(**{**config_value, "base_dir": place}, inst_data=inst_data)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[CapturedLogContext]:
        with ExitStack() as stack:
            for stream, kind in ((sys.stdout, ComputeIOType.STDOUT), (sys.stderr, ComputeIOType.STDERR)):
                path = self.get_captured_local_path(log_key, IO_TYPE_EXTENSION[kind])
                os.makedirs(os.path.dirname(path), exist_ok=True)
                stack.enter_context(redirect_to_file(stream, path))
            yield CapturedLogContext(log_key)
        Path(self.complete_artifact_path(log_key)).touch()  # type: ignore[no-untyped-call]


def _make_file(engine: sa.Engine, revision: str) -> None:
    with closing(engine.connect()) as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
        # Python's sqlite3 begins no transaction for the definition of a table.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        SqlEventLogStorageMetadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql(_VERSION_TABLE)
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (revision,))
        connection.commit()


class OpenSqliteStorage(DagsterSqliteStorage):
    """The three storages of an instance, for `storage: custom:` in dagster.yaml."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super(DagsterSqliteStorage, self).__init__()  # type: ignore[no-untyped-call]
        self.base_dir = base_dir
        self._inst_data = inst_data
        self._run_storage = OpenRunStorage.from_local(runs_directory(base_dir))
        self._event_log_storage = OpenEventLogStorage(event_logs_directory(base_dir))
        self._schedule_storage = OpenScheduleStorage.from_local(schedule_directory(base_dir))

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> "OpenSqliteStorage":
        # Dagster's own makes its own class.
        return cls.from_local(inst_data=inst_data, **config_value)
