"""A copy of all rows and objects from one pair of stores into another, and the check that both are equal.

Nothing is ever deleted, on neither side. Leases stay behind: they belong to runs, and none may be alive.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, get_args

from rss_pipeline.errors import CopyRefused, SettingMistake, SettingsError
from rss_pipeline.progress import Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.copy.objects import USED_MEANWHILE, copied_keys, copy_objects, sizes
from rss_pipeline.storage.copy.tables import (
    TABLES,
    Fingerprint,
    copy_table,
    count_rows,
    fingerprint,
)
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import NOW, compact

SideName = Literal["embedded", "cloudflare"]
SIDES: tuple[SideName, ...] = get_args(SideName)

MARKER = "copies/into-here.json"
"""An object in the target: the source of the copy, and the rows' fingerprints when it was complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One pair of stores. `identity` distinguishes two of a kind: a path, or a URL and a bucket."""

    name: SideName
    identity: str
    database: Database
    objects: ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """The contents that both sides now share, and how much of it this call wrote."""

    tables: dict[str, Fingerprint]
    objects: Fingerprint
    rows_written: int
    objects_written: int
    object_bytes: int


@contextmanager
def open_side(settings: Settings, name: SideName, *, as_source: bool = False) -> Iterator[Side]:
    """That side's stores: embedded is the home, Cloudflare what the six variables name.

    Raises:
        SettingsError: the side is not configured, or the source's home has no database.
        DatabaseUnavailable: not reachable, or its schema is not this code's.
    """
    if name == "embedded":
        settings = replace(settings, d1=None, s3=None)
        identity = str(settings.home)
        if as_source and not settings.database_path.exists():
            message = f"there is no {settings.database_path} to copy from; name the right folder"
            raise SettingsError(SettingMistake(("RSS_PIPELINE_HOME",), message))
    else:
        if settings.d1 is None or settings.s3 is None:
            missing = [
                *([] if settings.d1 else ["D1_PROXY_URL", "D1_PROXY_TOKEN"]),
                *(
                    []
                    if settings.s3
                    else ["R2_ENDPOINT_URL", "R2_BUCKET", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY"]
                ),
            ]
            message = "not set; a copy from or to Cloudflare needs all six"
            raise SettingsError(SettingMistake(tuple(missing), message))
        identity = f"{settings.d1.url} {settings.s3.endpoint_url}/{settings.s3.bucket}"
    with ExitStack() as stack:
        database = stack.enter_context(open_database(settings))
        yield Side(name=name, identity=identity, database=database, objects=open_objects(settings))


def copy(source: Side, target: Side, *, progress: Progress) -> Copied:
    """Make the target hold what the source holds, row for row and byte for byte, and check that it does.

    The target is empty, or an unfinished copy of this source, or a finished one that has not changed
    since. Called again after an end at any point, it goes on; what is there already is not written again.

    Raises:
        CopyRefused: a run is alive on either side, the target holds something else, or the sides differ
            at the end because one of them was used meanwhile.
        StorageRejected: a row or object does not fit into the target.
        InfrastructureError: a store cannot work now; call again.
    """
    for side in (source, target):
        refuse_live_lease(side)
        side.objects.probe()
    _refuse_other_data(source, target)
    _put_marker(target, source, None)
    rows_written = sum(copy_table(source.database, target.database, table, progress) for table in TABLES)
    objects, objects_written, object_bytes = copy_objects(source.objects, target.objects, progress)
    for side in (source, target):
        refuse_live_lease(side)
    tables = _check_rows(source, target, progress)
    _check_objects(source, target)
    _put_marker(target, source, tables)
    return Copied(
        tables=tables,
        objects=objects,
        rows_written=rows_written,
        objects_written=objects_written,
        object_bytes=object_bytes,
    )


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
    marker = _marker(target)
    if marker is None:
        held = {table: count_rows(target.database, table) for table in TABLES}
        found = [f"{count} {table}" for table, count in held.items() if count]
        found += ["objects"] * any(True for _ in islice(copied_keys(target.objects), 1))
        if found:
            raise CopyRefused(
                f"{target.name} ({target.identity}) already holds {', '.join(found)}: a copy goes into empty"
                f" stores only, for two histories cannot be merged. {_EMPTY[target.name]}"
            )
        return
    if (marker["from"], marker["identity"]) != (source.name, source.identity):
        raise CopyRefused(
            f"{target.name} ({target.identity}) is a copy of {marker['from']} ({marker['identity']}), not of"
            f" {source.name} ({source.identity}). {_EMPTY[target.name]}"
        )
    for table, (count, sha256) in (marker["tables"] or {}).items():
        if fingerprint(target.database, table) != Fingerprint(count, sha256):
            raise CopyRefused(
                f"{target.name} ({target.identity}) was used since it was copied ({table} has changed): a"
                f" copy would undo that. {_EMPTY[target.name]}"
            )


_EMPTY: dict[SideName, str] = {
    "embedded": "Name another folder as RSS_PIPELINE_HOME, or move what is in this one away.",
    "cloudflare": "Use an empty database and an empty bucket.",
}


def _marker(target: Side) -> dict[str, Any] | None:
    found = target.objects.get(MARKER)
    return None if found is None else dict(json.loads(found[0]))


def _put_marker(target: Side, source: Side, tables: dict[str, Fingerprint] | None) -> None:
    known: dict[str, object] = {
        "from": source.name,
        "identity": source.identity,
        "tables": None
        if tables is None
        else {name: [made.count, made.sha256] for name, made in tables.items()},
    }
    target.objects.put(MARKER, compact(known).encode(), content_type="application/json")


def _check_rows(source: Side, target: Side, progress: Progress) -> dict[str, Fingerprint]:
    progress.begin("check", 2 * sum(count_rows(source.database, table) for table in TABLES))
    tables = {}
    for table in TABLES:
        ours, theirs = (fingerprint(side.database, table, progress=progress) for side in (source, target))
        if ours != theirs:
            raise CopyRefused(
                f"{table} differs after the copy: {ours.count} rows in {source.name}, {theirs.count} in"
                f" {target.name}, hashes {ours.sha256[:12]} and {theirs.sha256[:12]}. {USED_MEANWHILE}"
            )
        tables[table] = ours
    return tables


def _check_objects(source: Side, target: Side) -> None:
    """Bodies were read back one by one; what is left is that neither side has a key more, or another size."""
    ours, theirs = sizes(source.objects), sizes(target.objects)
    if ours != theirs:
        raise CopyRefused(
            f"objects differ after the copy: {ours.count} in {source.name}, {theirs.count} in {target.name}."
            f" {USED_MEANWHILE}"
        )
