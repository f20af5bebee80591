"""The sides of a copy: a database and an object store, by a name that the command line takes.

What is copied between two sides is service.py's.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.storage.backends.backend import DatabaseBackend, ObjectsBackend
from rss_pipeline.storage.backends.connect import DATABASES, OBJECTS, folder_address, opened
from rss_pipeline.storage.backends.folder.backend import OBJECTS_FOLDER, FolderBackend
from rss_pipeline.storage.backends.sqlite.backend import DATABASE_FILE, SqliteBackend
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

_BY_DATABASE = {kind.name: kind for kind in DATABASES}
_BY_OBJECTS = {kind.name: kind for kind in OBJECTS}
_SHORT = {kind.side[0]: (kind.name, kind.side[1]) for kind in DATABASES if kind.side is not None}

SIDES = (*_SHORT, *(f"{database}+{objects}" for database in _BY_DATABASE for objects in _BY_OBJECTS))
"""Names of sides. A `+` is between the kinds of the two stores; the first ones are short for those that most
people have (see `_kinds`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One pair of stores. `identity` distinguishes two of a kind: a path, or a URL and a bucket."""

    name: str
    identity: str
    database_backend: DatabaseBackend
    objects_backend: ObjectsBackend
    database: Database
    objects: ObjectStore


@contextmanager
def open_side(environ: Mapping[str, str], name: str, *, cwd: Path, as_source: bool = False) -> Iterator[Side]:
    """The stores of that side. Each is in the home or what the variables name; those of other stores may be
    set as well.

    Raises:
        SettingsError: the side is not configured, or the home that is the source has no such store.
        DatabaseUnavailable: not reachable, or its schema is not this code's.
    """
    database_kind, objects_kind = _kinds(name, environ)
    needed = (*database_kind.variables, *objects_kind.variables)
    missing = tuple(variable for variable in needed if not environ.get(variable, "").strip())
    if missing:
        of_it = "needs it" if len(needed) == 1 else f"needs all {len(needed)}: {', '.join(needed)}"
        raise SettingsError(SettingMistake(missing, f"not set; a copy from or to {name} {of_it}"))
    reader = EnvironmentReader(environ, cwd)
    home, ca_file = reader.path("RSS_PIPELINE_HOME", "var"), reader.authorities("RSS_CA_FILE")
    database = database_kind.read(reader, ca_file=ca_file) or SqliteBackend(home / DATABASE_FILE)
    objects = objects_kind.read(reader, ca_file=ca_file) or FolderBackend(
        home / OBJECTS_FOLDER, public_url=folder_address(reader, others=())
    )
    if reader.mistakes:
        raise SettingsError(*reader.mistakes)
    if as_source:
        _check_home(database, objects)
    with opened(database) as opened_database:
        is_embedded = database.is_here and objects.is_here
        yield Side(
            name=name,
            identity=str(home) if is_embedded else f"{database.place} {objects.place}",
            database_backend=database,
            objects_backend=objects,
            database=opened_database,
            objects=objects.open(),
        )


def _kinds(name: str, environ: Mapping[str, str]) -> tuple[type[DatabaseBackend], type[ObjectsBackend]]:
    """The stores that a name means: a short one, the bucket that is set, if one is."""
    database, _, objects = name.partition("+")
    if name not in _SHORT:
        return _BY_DATABASE[database], _BY_OBJECTS[objects]
    database, objects = _SHORT[name]
    buckets = {
        kind.name: kind.main_variable()
        for kind in OBJECTS
        if kind.variables and environ.get(kind.main_variable(), "").strip()
    }
    if not _BY_DATABASE[database].variables or objects in buckets or not buckets:
        return _BY_DATABASE[database], _BY_OBJECTS[objects]
    if len(buckets) > 1:
        names = " or ".join(f"{name}+{kind}" for kind in buckets)
        message = f"both are set, and there is one bucket; write {names}"
        raise SettingsError(SettingMistake(tuple(buckets.values()), message))
    return _BY_DATABASE[database], _BY_OBJECTS[next(iter(buckets))]


def _check_home(database: DatabaseBackend, objects: ObjectsBackend) -> None:
    """Raise SettingsError where a store of the source is to be in the home and is not there: to open it would
    make an empty one. A home without objects has a database, at least."""
    for path in (database.file, None if database.is_here else objects.folder):
        if path is not None and not path.exists():
            message = f"there is no {path} to copy from; name the right folder"
            raise SettingsError(SettingMistake(("RSS_PIPELINE_HOME",), message))
