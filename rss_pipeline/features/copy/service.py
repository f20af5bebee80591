"""A copy of all rows and objects from one pair of stores into another, and the check that both are equal.

Nothing is ever deleted, on neither side, but the HTML that the target has kept of items. Leases stay behind:
they belong to runs, and none may be alive.
Where both sides have one object store, or one database, only what is in the other one is copied.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rss_pipeline.environment import EnvironmentReader
from rss_pipeline.errors import CopyRefused, SettingMistake, SettingsError
from rss_pipeline.features.copy.sql import (
    TABLES,
    Fingerprint,
    copy_table,
    count_rows,
    fingerprint,
)
from rss_pipeline.progress import Progress
from rss_pipeline.storage.backends.backend import DatabaseBackend, ObjectsBackend
from rss_pipeline.storage.backends.connect import DATABASES, OBJECTS, folder_address, opened
from rss_pipeline.storage.backends.folder.backend import OBJECTS_FOLDER, FolderBackend
from rss_pipeline.storage.backends.sqlite.backend import DATABASE_FILE, SqliteBackend
from rss_pipeline.storage.database import Database, item_bytes
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline.storage.sql import NOW, compact

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


MARKER = "copies/into-here.json"
"""An object in the target: the source of the copy, and the rows' fingerprints when it was complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The contents that both sides now have, and how much of it this call wrote."""

    tables: dict[str, Fingerprint]
    """Empty where both sides are one database."""
    objects: Fingerprint | None
    """None where both sides have one object store."""
    rows_written: int
    items_cut: int
    """Items, and earlier versions of them, whose row the target has no room for: they are cut there."""
    objects_written: int
    object_bytes: int


def copy(source: Side, target: Side, *, progress: Progress) -> Copied:
    """Make the target hold what the source holds, row for row and byte for byte, and check that it does. An
    item that is too large for the target is cut.

    The target is empty, or an unfinished copy of this source, or a finished one that has not changed
    since. Called again after an end at any point, it goes on; what is there already is not written again.

    Raises:
        CopyRefused: both sides are the same stores, a run is alive on either, the target holds something
            else, or the sides differ at the end because one of them was used meanwhile.
        StorageRejected: a row or object does not fit into the target.
        InfrastructureError: a store cannot work now; call again.
    """
    if _is_same_database(source, target) and _is_same_objects(source, target):
        raise CopyRefused(f"{source.name} and {target.name} are the same stores: there is nothing to copy")
    for side in (source, target):
        refuse_live_lease(side)
        side.objects.probe()
    _refuse_other_data(source, target)
    _put_marker(target, source, None)
    copied = _tables(source, target)
    if copied:
        # It was made of rows that may be written anew now.
        target.database.query("DELETE FROM item_html", name="drop HTML of all items")
    counts = [copy_table(source.database, target.database, table, progress) for table in copied]
    objects, objects_written, object_bytes = None, 0, 0
    if not _is_same_objects(source, target):
        objects, objects_written, object_bytes = copy_objects(source.objects, target.objects, progress)
    for side in (source, target):
        refuse_live_lease(side)
    tables = _check_rows(source, target, progress)
    _check_objects(source, target)
    _put_marker(target, source, tables)
    return Copied(
        tables=tables,
        objects=objects,
        rows_written=sum(written for written, _ in counts),
        items_cut=sum(cut for _, cut in counts),
        objects_written=objects_written,
        object_bytes=object_bytes,
    )


def _is_same_database(source: Side, target: Side) -> bool:
    return source.database_backend.place == target.database_backend.place


def _is_same_objects(source: Side, target: Side) -> bool:
    return source.objects_backend.place == target.objects_backend.place


def _tables(source: Side, target: Side) -> Sequence[str]:
    """The tables to copy."""
    return () if _is_same_database(source, target) else tuple(TABLES)


def refuse_live_lease(side: Side) -> None:
    """Raise CopyRefused where a run holds feeds, by the database's own clock."""
    rows = side.database.query(
        f"SELECT run_id, expires_at FROM leases WHERE expires_at > {NOW}",
        name="find live leases",
    ).rows
    if rows:
        raise CopyRefused(
            f"run {rows[0]['run_id']} is at work in {side.name} ({side.identity}) until"
            f" {rows[0]['expires_at']} at least: end it, stop the daemon, and start the copy again"
        )


def _refuse_other_data(source: Side, target: Side) -> None:
    held = {table: count_rows(target.database, table) for table in _tables(source, target)}
    found = [f"{count} {table}" for table, count in held.items() if count]
    if not _is_same_objects(source, target):
        found += ["objects"] * any(True for _ in islice(copied_keys(target.objects), 1))
    if not found:
        return
    marker = _marker(source, target)
    if marker is None:
        raise CopyRefused(
            f"{_named(target)} already holds {', '.join(found)}: a copy goes into empty"
            f" stores only, for two histories cannot be merged. {_to_empty(source, target)}"
        )
    if marker["identity"] != source.identity:
        raise CopyRefused(
            f"{_named(target)} is a copy of {marker['from']} ({marker['identity']}), not of"
            f" {_named(source)}. {_to_empty(source, target)}"
        )
    for table, (count, sha256) in (marker["tables"] or {}).items():
        there = fingerprint(target.database, table, item_bytes=item_bytes(target.database))
        if there != Fingerprint(count, sha256):
            raise CopyRefused(
                f"{_named(target)} was used since it was copied ({table} has changed): a"
                f" copy would undo that. {_to_empty(source, target)}"
            )


def _named(side: Side) -> str:
    return f"{side.name} ({side.identity})"


def _to_empty(source: Side, target: Side) -> str:
    """The sentence that says how to get an empty target."""
    wanted = []
    if not _is_same_database(source, target):
        is_file = target.database_backend.is_here
        wanted.append(f"move {target.database_backend.place} away" if is_file else "use an empty database")
    if not _is_same_objects(source, target):
        is_folder = target.objects_backend.is_here
        wanted.append(f"move {target.objects_backend.place} away" if is_folder else "use an empty bucket")
    sentence = " and ".join(wanted)
    # A store of the source that is in the home would be another one, too.
    is_source_elsewhere = not (source.database_backend.is_here or source.objects_backend.is_here)
    if is_source_elsewhere and (target.database_backend.is_here or target.objects_backend.is_here):
        sentence += ", or name another folder as RSS_PIPELINE_HOME"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _marker_key(source: Side, target: Side) -> str:
    """One object store has a marker for each database beside it."""
    is_shared = _is_same_objects(source, target)
    return f"copies/into-{target.database_backend.name}.json" if is_shared else MARKER


def _into(target: Side) -> str:
    """The target's database, as its marker names it. In the home, it is where the marker is."""
    is_embedded = target.database_backend.is_here and target.objects_backend.is_here
    return "rss.sqlite" if is_embedded else target.database_backend.place


def _marker(source: Side, target: Side) -> dict[str, Any] | None:
    found = target.objects.get(_marker_key(source, target))
    known = None if found is None else dict(json.loads(found[0]))
    # Another database with the same objects is not what the marker speaks of. Older ones do not name it.
    return known if known is not None and known.get("into", _into(target)) == _into(target) else None


def _put_marker(target: Side, source: Side, tables: dict[str, Fingerprint] | None) -> None:
    known: dict[str, object] = {
        "from": source.name,
        "identity": source.identity,
        "into": _into(target),
        "tables": None
        if tables is None
        else {name: [made.count, made.sha256] for name, made in tables.items()},
    }
    key = _marker_key(source, target)
    target.objects.put(key, compact(known).encode(), content_type="application/json")


def _check_rows(source: Side, target: Side, progress: Progress) -> dict[str, Fingerprint]:
    copied = _tables(source, target)
    progress.begin("check", 2 * sum(count_rows(source.database, table) for table in copied))
    tables = {}
    for table in copied:
        most = item_bytes(target.database)
        ours, theirs = (
            fingerprint(side.database, table, item_bytes=most, progress=progress) for side in (source, target)
        )
        if ours != theirs:
            raise CopyRefused(
                f"{table} differs after the copy: {ours.count} rows in {source.name}, {theirs.count} in"
                f" {target.name}, hashes {ours.sha256[:12]} and {theirs.sha256[:12]}. {USED_MEANWHILE}"
            )
        tables[table] = ours
    return tables


def _check_objects(source: Side, target: Side) -> None:
    """Bodies were read back one by one; what is left is that neither side has a key more, or another size."""
    if _is_same_objects(source, target):
        return
    ours, theirs = sizes(source.objects), sizes(target.objects)
    if ours != theirs:
        raise CopyRefused(
            f"objects differ after the copy: {ours.count} in {source.name}, {theirs.count} in {target.name}."
            f" {USED_MEANWHILE}"
        )


# Objects from one store into another, several at once, each read back.

OBJECTS_AT_ONCE = 8

_NOT_COPIED = ("copies/", "probe/")
USED_MEANWHILE = "One of them was used meanwhile: stop the daemon and start the copy again."


def copied_keys(store: ObjectStore) -> Iterator[ObjectInfo]:
    """The objects of a store that a copy includes: all but its own marks."""
    return (info for info in store.list("") if not info.key.startswith(_NOT_COPIED))


def _beside(source: ObjectStore, target: ObjectStore) -> Iterator[tuple[ObjectInfo, ObjectInfo | None]]:
    """Every object of the source and what the target has under its key, both listings side by side."""
    theirs = copied_keys(target)
    other = next(theirs, None)
    for ours in copied_keys(source):
        while other is not None and other.key < ours.key:
            other = next(theirs, None)
        yield ours, other if other is not None and other.key == ours.key else None


@dataclass(frozen=True, slots=True)
class _Object:
    key: str
    size: int
    sha256: str
    written: bool


def copy_objects(
    source: ObjectStore, target: ObjectStore, progress: Progress
) -> tuple[Fingerprint, int, int]:
    """Make the target hold these objects, each read back; with how many were written, and all their bytes."""
    progress.begin("objects", sum(1 for _ in copied_keys(source)))
    digest, count, written, total = hashlib.sha256(), 0, 0, 0
    with ThreadPoolExecutor(OBJECTS_AT_ONCE, "copy") as pool:
        under_way: deque[Future[_Object | None]] = deque()

        def arrived() -> Iterator[_Object | None]:
            for ours, theirs in _beside(source, target):
                under_way.append(pool.submit(_copy_object, source, target, ours, theirs))
                if len(under_way) >= 2 * OBJECTS_AT_ONCE:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()

        try:
            for made in arrived():
                progress.advance("objects")
                if made is not None:
                    digest.update(compact([made.key, made.size, made.sha256]).encode() + b"\n")
                    count, written, total = count + 1, written + made.written, total + made.size
        finally:
            for future in under_way:
                future.cancel()
    return Fingerprint(count, digest.hexdigest()), written, total


def _copy_object(
    source: ObjectStore, target: ObjectStore, ours: ObjectInfo, theirs: ObjectInfo | None
) -> _Object | None:
    """Make one object the target's and read it back; None where it has gone from the source."""
    found = source.get(ours.key)
    if found is None:
        return None
    body, info = found
    info = replace(info, content_type=info.content_type or "application/octet-stream")
    made = _Object(ours.key, len(body), hashlib.sha256(body).hexdigest(), written=False)
    if theirs is not None and theirs.size == len(body) and _same(target, body, info):
        return made
    target.put(ours.key, body, content_type=str(info.content_type), metadata=info.metadata)
    if not _same(target, body, info):
        raise CopyRefused(f"{ours.key} differs after it was copied. {USED_MEANWHILE}")
    return replace(made, written=True)


def _same(store: ObjectStore, body: bytes, info: ObjectInfo) -> bool:
    there = store.get(info.key)
    return (
        there is not None
        and there[0] == body
        and there[1].content_type == info.content_type
        and dict(there[1].metadata) == dict(info.metadata)
    )


def sizes(store: ObjectStore) -> Fingerprint:
    """The fingerprint of its keys and sizes alone."""
    digest, count = hashlib.sha256(), 0
    for info in copied_keys(store):
        digest.update(compact([info.key, info.size]).encode() + b"\n")
        count += 1
    return Fingerprint(count, digest.hexdigest())
