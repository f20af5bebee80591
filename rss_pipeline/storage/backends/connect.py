"""The backends that there are, and the stores of those that settings name.

Outside of runs too: sensors and the command line open them here, and Dagster's resources do so within. The
duties of a backend are in backend.py.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import DatabaseFull, DatabaseLost, InfrastructureError
from rss_pipeline.storage.backends.backend import (
    Backend,
    DatabaseBackend,
    ObjectsBackend,
    check_place,
    missing_duties,
)
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.folder.backend import FolderBackend
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.s3.backend import R2Backend, S3Backend
from rss_pipeline.storage.backends.sqlite.backend import SqliteBackend
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import (
    check_not_ahead,
    check_not_behind,
    check_prepared,
    migrate,
    migrations,
    recorded_version,
    schema_version,
)

DATABASES: tuple[type[DatabaseBackend], ...] = (SqliteBackend, D1Backend, PostgresBackend)
OBJECTS: tuple[type[ObjectsBackend], ...] = (FolderBackend, R2Backend, S3Backend)
"""Every backend. The first of each is in the home, and used where no variable names another one."""

_FOLDER_ADDRESS = "RSS_OBJECTS_PUBLIC_URL"
_FACE = "rss_pipeline/storage/backends/backend.py"
_B = TypeVar("_B", bound=Backend)


class Backends(Protocol):
    """The two backends of an installation: its settings, or a side of a copy."""

    @property
    def database(self) -> DatabaseBackend: ...
    @property
    def objects(self) -> ObjectsBackend: ...


def read_database(reader: EnvironmentReader, *, ca_file: Path | None) -> DatabaseBackend | None:
    """The database that variables name, or None; two of them are a mistake."""
    both = "both set; the tables are in {} or in {}: take one of them out"
    return _read(DATABASES, reader, ca_file, both)


def read_objects(reader: EnvironmentReader, *, ca_file: Path | None) -> ObjectsBackend | None:
    """The object store that variables name, or None; two of them are a mistake."""
    both = "both are set, and there is one bucket; unset one of them"
    return _read(OBJECTS, reader, ca_file, both)


def folder_address(
    reader: EnvironmentReader, *, others: Sequence[type[ObjectsBackend]] = OBJECTS[1:]
) -> str | None:
    """The public address of the folder of objects, or None. Each of the others has one of its own, and is not
    to be set beside it."""
    url = reader.text(_FOLDER_ADDRESS)
    if url is None:
        return None
    check_place(reader, _FOLDER_ADDRESS, url)
    for kind in others:
        if reader.text(kind.main_variable()) is not None:
            public = f"{prefixes([kind])[0]}PUBLIC_URL"
            reader.add(f"set, but the objects are in a bucket; set {public} instead", _FOLDER_ADDRESS)
    return url


def _read(kinds: Sequence[type[_B]], reader: EnvironmentReader, ca_file: Path | None, both: str) -> _B | None:
    found: _B | None = None
    is_set: list[type[_B]] = []
    for kind in kinds:
        if missing := missing_duties(kind):
            if any(reader.text(name) is not None for name in kind.variables):
                sentence = f"set, but the backend {kind.__name__} lacks {', '.join(missing)}: see {_FACE}"
                reader.add(sentence, *kind.variables)
            continue
        here = kind.read(reader, ca_file=ca_file)
        if here is not None:
            for other in is_set:
                sentence = both.format(
                    f"{other.maker} {other.title}".strip(), f"{kind.maker} {kind.title}".strip()
                )
                reader.add(sentence, other.main_variable(), kind.main_variable())
        if kind.variables and reader.text(kind.main_variable()) is not None:
            is_set.append(kind)
        found = found or here
    return found


def prefixes(kinds: Sequence[type[Backend]]) -> tuple[str, ...]:
    """The beginnings of the names of all variables of these backends."""
    return tuple(dict.fromkeys(name.partition("_")[0] + "_" for kind in kinds for name in kind.variables))


def side_of(stores: Backends, *, at_home: bool = False, folder: bool = False) -> str:
    """The name of these stores in `copy`; of those with the database in the home, or the folder in the home
    for objects, where that is said."""
    database = DATABASES[0] if at_home else stores.database
    objects = OBJECTS[0] if folder else stores.objects
    name = f"{database.name}+{objects.name}"
    return "embedded" if name == "sqlite+folder" else name


def open_database(
    settings: Backends,
    *,
    for_requests: bool = False,
    alone_where_full: bool = False,
    is_restored: bool = False,
) -> AbstractContextManager[Database]:
    """The database of these settings, as of `opened`. `is_restored`: the caller fills it from the backups.

    Raises:
        DatabaseLost: see `check_not_lost`.
    """
    objects = None if is_restored else settings.objects
    return opened(
        settings.database, for_requests=for_requests, alone_where_full=alone_where_full, beside=objects
    )


def check_not_lost(database: Database, backend: DatabaseBackend, objects: ObjectsBackend) -> None:
    """Refuse to take an embedded database that is empty for a new one, where there are backups.

    Raises:
        DatabaseLost: with a sentence that says what to do.
    """
    if not backend.is_here or recorded_version(database) is not None or schema_version(database):
        return
    has_backups = False
    # A store that is away says nothing of a new installation; the first poll probes it.
    with suppress(InfrastructureError):
        store = objects.open()
        has_backups = any(next(iter(store.list(prefix)), None) is not None for prefix in _OF_A_DATABASE)
    if has_backups:
        raise DatabaseLost(
            f"{backend.place} is empty, but {objects.described} has backups of feeds or users: it was"
            " probably lost. Put a copy of it back, or run `rss-pipeline restore`, which makes feeds, items"
            " and what users have from the backups. To begin with an empty one all the same, run"
            " `rss-pipeline migrate --empty`"
        )


_OF_A_DATABASE = ("backups/", "state/")
"""Keys below which only an installation with a database writes."""


@contextmanager
def opened(
    backend: DatabaseBackend,
    *,
    for_requests: bool = False,
    alone_where_full: bool = False,
    beside: ObjectsBackend | None = None,
) -> Iterator[Database]:
    """The database, its schema checked: the embedded one is brought up to date, a server's must be.

    `for_requests`: for many people at once, none of whom waits for long. `alone_where_full`: for a command
    that reads or makes room, also on a disk without any; others wait for its end then. `beside`: an object
    store in which the backups of an embedded database would be.

    Raises:
        DatabaseUnavailable: it cannot be reached, or its schema is not this code's.
    """
    database = backend.connect(for_requests=for_requests, alone_where_full=alone_where_full)
    try:
        if backend.is_here:
            if beside is not None:
                check_not_lost(database, backend, beside)
            try:
                migrate(database)
            except DatabaseFull:
                # What is left of it is for later, if the tables are there.
                if not alone_where_full:
                    raise
                check_schema(database)
        else:
            check_schema(database)
        yield database
    finally:
        database.close()


@contextmanager
def open_database_to_read(settings: Backends) -> Iterator[Database]:
    """The database for a command that only reads: as `open_database`, but neither the right to write nor
    room on the disk is needed.

    An embedded one that this user may not write is opened as it is; its schema must be this code's.
    """
    reader = settings.database.connect_to_read()
    if reader is None:
        with open_database(settings, alone_where_full=True) as database:
            yield database
        return
    try:
        check_schema(reader)
        yield reader
    finally:
        reader.close()


def check_schema(database: Database) -> None:
    """Raise DatabaseUnavailable unless the database has exactly this code's schema."""
    known = migrations()
    current = recorded_version(database)
    if current is None:
        current = schema_version(database)
    check_not_ahead(current, known)
    check_not_behind(current, known)
    check_prepared(database)


def connect(settings: Backends) -> Database:
    """The database as it is, whatever its schema."""
    return settings.database.connect()


def open_objects(settings: Backends) -> ObjectStore:
    """The object store."""
    return settings.objects.open()
