"""The sides of a copy: a database and an object store, by a name that the command line takes.

What is copied between two sides is stores.py's.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

DatabaseKind = Literal["sqlite", "d1", "postgres"]
ObjectsKind = Literal["folder", "r2", "s3"]

_DATABASES: dict[DatabaseKind, tuple[str, ...]] = {
    "sqlite": (),
    "d1": ("D1_PROXY_URL", "D1_PROXY_TOKEN"),
    "postgres": ("DATABASE_URL",),
}
_OBJECTS: dict[ObjectsKind, tuple[str, ...]] = {
    "folder": (),
    "r2": ("R2_ENDPOINT_URL", "R2_BUCKET", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY"),
    "s3": ("S3_BUCKET", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"),
}
"""Kind of store to the variables that name one; a file and a folder are in the home."""

_OF_A_FLEET = ("RSS_BROKER_URL", "DAGSTER_DATABASE_URL")
"""A copy needs neither, and they are refused beside other databases than Postgres."""

SIDES = (
    "embedded",
    "cloudflare",
    "postgres",
    *(f"{database}+{objects}" for database in _DATABASES for objects in _OBJECTS),
)
"""Names of sides. A `+` is between the kinds of the two stores; the first three are short for those that most
people have (see `_kinds`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One pair of stores. `identity` distinguishes two of a kind: a path, or a URL and a bucket."""

    name: str
    identity: str
    database_kind: DatabaseKind
    database_place: str
    objects_kind: ObjectsKind
    objects_place: str
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
    needed = (*_DATABASES[database_kind], *_OBJECTS[objects_kind])
    missing = tuple(variable for variable in needed if not environ.get(variable, "").strip())
    if missing:
        of_it = "needs it" if len(needed) == 1 else f"needs all {len(needed)}: {', '.join(needed)}"
        raise SettingsError(SettingMistake(missing, f"not set; a copy from or to {name} {of_it}"))
    settings = Settings.from_environ(_alone(environ, needed), cwd=cwd)
    if as_source:
        _check_home(settings)
    s3 = settings.s3
    objects_place = str(settings.objects_path) if s3 is None else f"{s3.endpoint_url}/{s3.bucket}"
    with ExitStack() as stack:
        database = stack.enter_context(open_database(settings))
        is_embedded = database_kind == "sqlite" and objects_kind == "folder"
        yield Side(
            name=name,
            identity=str(settings.home) if is_embedded else f"{settings.database_place} {objects_place}",
            database_kind=database_kind,
            database_place=settings.database_place,
            objects_kind=objects_kind,
            objects_place=objects_place,
            database=database,
            objects=open_objects(settings),
        )


def side_of(settings: Settings, *, database: DatabaseKind | None = None, folder: bool = False) -> str:
    """The name of the side of these settings; of one with another database, or the folder in the home for
    objects, where that is said."""
    here: DatabaseKind = "d1" if settings.d1 else "postgres" if settings.postgres else "sqlite"
    objects = "folder" if folder or settings.s3 is None else settings.s3.prefix.lower()
    name = f"{database or here}+{objects}"
    return "embedded" if name == "sqlite+folder" else name


def _kinds(name: str, environ: Mapping[str, str]) -> tuple[DatabaseKind, ObjectsKind]:
    """The stores that a name means."""
    buckets: list[ObjectsKind] = [
        kind for kind in ("r2", "s3") if environ.get(f"{kind.upper()}_BUCKET", "").strip()
    ]
    match name:
        case "embedded":
            return "sqlite", "folder"
        case "cloudflare":
            return "d1", next(iter(buckets), "r2")
        case "postgres":
            if len(buckets) > 1:
                message = "both are set, and there is one bucket; write postgres+r2 or postgres+s3"
                raise SettingsError(SettingMistake(("R2_BUCKET", "S3_BUCKET"), message))
            return "postgres", next(iter(buckets), "folder")
    for database in _DATABASES:
        for objects in _OBJECTS:
            if name == f"{database}+{objects}":
                return database, objects
    raise ValueError(f"no side of a copy has the name {name}")


def _alone(environ: Mapping[str, str], needed: Sequence[str]) -> dict[str, str]:
    """The environment of an installation with these stores: an installation with more would be refused."""
    others = {"D1_", "DATABASE_", "R2_", "S3_"} - {f"{name.partition('_')[0]}_" for name in needed}
    return {
        name: text
        for name, text in environ.items()
        if not name.startswith(tuple(others)) and name not in _OF_A_FLEET
    }


def _check_home(settings: Settings) -> None:
    """Raise SettingsError where a store of the source is to be in the home and is not there: to open it would
    make an empty one."""
    needed = [settings.database_path] * settings.has_embedded_database
    if settings.s3 is None and not settings.has_embedded_database:
        needed.append(settings.objects_path)
    for path in needed:
        if not path.exists():
            message = f"there is no {path} to copy from; name the right folder"
            raise SettingsError(SettingMistake(("RSS_PIPELINE_HOME",), message))
