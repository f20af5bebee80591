"""Moving house: all rows and objects of one pair of stores into another, and the proof that they are there.

Nothing is ever deleted, on neither side. Leases stay behind: they belong to runs, and none may be alive.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, Protocol, get_args

from rss_pipeline.errors import CopyRefused, SettingsError, StorageRejected
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database, Row
from rss_pipeline.storage.feeds import chunked
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline.storage.opening import open_database, open_objects
from rss_pipeline.storage.rows import compact

SideName = Literal["embedded", "cloudflare"]
SIDES: tuple[SideName, ...] = get_args(SideName)

TABLES = {
    "feeds": ("id",),
    "items": ("id",),
    "image_tasks": ("id",),
    "item_versions": ("item_id", "replaced_at"),
    "expired_items": ("feed_id", "guid"),
    "hosts": ("host",),
    "image_holds": ("host",),
}
"""Table to the columns of its primary key, all text; a table comes after those it refers to."""
PAGE_ROWS = 500
PAGE_BYTES = 500_000
"""Of a page's texts as stored. Their JSON is seldom twice as long, so a page is one or two parameters."""
OBJECTS_AT_ONCE = 8

MARKER = "copies/into-here.json"
"""Lies in the target's object store: whose copy it is, and what the rows were when it was complete."""
_NOT_COPIED = ("copies/", "probe/")


class CopyProgress(Protocol):
    """Told of rows and objects as they are through. `step` is a table or `objects`."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self, step: str, by: int = 1) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One pair of stores. `identity` tells two of a kind apart: a path, or a URL and a bucket."""

    name: SideName
    identity: str
    database: Database
    objects: ObjectStore


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A table's rows, or a store's objects, in key order: how many, and a SHA-256 over all of them."""

    count: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What now lies on both sides alike, and how much of it was written by this call."""

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
        settings = replace(settings, d1=None, r2=None)
        identity = str(settings.home)
        if as_source and not settings.database_path.exists():
            raise SettingsError(
                f"RSS_PIPELINE_HOME: there is no {settings.database_path} to copy from; name the right folder"
            )
    else:
        if settings.d1 is None or settings.r2 is None:
            missing = [
                *([] if settings.d1 else ["D1_PROXY_URL", "D1_PROXY_TOKEN"]),
                *(
                    []
                    if settings.r2
                    else ["R2_ENDPOINT_URL", "R2_BUCKET", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY"]
                ),
            ]
            raise SettingsError(f"{', '.join(missing)}: not set; a copy from or to Cloudflare needs all six")
        identity = f"{settings.d1.url} {settings.r2.endpoint_url}/{settings.r2.bucket}"
    with ExitStack() as stack:
        database = stack.enter_context(open_database(settings))
        yield Side(name=name, identity=identity, database=database, objects=open_objects(settings))


def copy(source: Side, target: Side, *, progress: CopyProgress) -> Copied:
    """Make the target hold what the source holds, row for row and byte for byte, and check that it does.

    The target is empty, or an unfinished copy of this source, or a finished one that nobody has changed
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
    rows_written = sum(_copy_table(source, target, table, progress) for table in TABLES)
    objects, objects_written, object_bytes = _copy_objects(source, target, progress)
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
        "SELECT run_id, expires_at FROM leases WHERE expires_at > strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
    ).rows
    if rows:
        raise CopyRefused(
            f"run {rows[0]['run_id']} is at work in {side.name} ({side.identity}) until"
            f" {rows[0]['expires_at']} at least: end it, stop the daemon, and start the copy again"
        )


def fingerprint(database: Database, table: str, *, progress: CopyProgress | None = None) -> Fingerprint:
    """A table's fingerprint, read page by page."""
    digest, count = hashlib.sha256(), 0
    columns = _columns(database, table)
    for page in _pages(database, table, columns):
        for row in page:
            digest.update(_canonical(row, columns).encode() + b"\n")
        count += len(page)
        if progress is not None:
            progress.advance("check", len(page))
    return Fingerprint(count, digest.hexdigest())


def _refuse_other_data(source: Side, target: Side) -> None:
    marker = _marker(target)
    if marker is None:
        held = {table: _count(target.database, table) for table in TABLES}
        found = [f"{count} {table}" for table, count in held.items() if count]
        found += ["objects"] * any(True for _ in islice(_objects(target.objects), 1))
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


def _copy_table(source: Side, target: Side, table: str, progress: CopyProgress) -> int:
    columns = _columns(source.database, table)
    progress.begin(table, _count(source.database, table))
    written = 0
    for page in _pages(source.database, table, columns):
        written += sum(target.database.query(*upsert).changes for upsert in _upserts(table, columns, page))
        progress.advance(table, len(page))
    return written


def _upserts(table: str, columns: Sequence[str], page: Sequence[Row]) -> Iterator[tuple[str, list[Any]]]:
    """Statements that make these rows the target's. A row that is there already is not written."""
    key = TABLES[table]
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
    ours, theirs = (", ".join(f"{who}.{column}" for column in columns) for who in (table, "excluded"))
    into = f"INSERT INTO {table} ({', '.join(columns)})"
    upsert = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {updates} WHERE ({ours}) IS NOT ({theirs})"
    extracted = ", ".join(f"json_extract(value, '$[{n}]')" for n in range(len(columns)))
    small: list[str] = []
    for row in page:
        text = _canonical(row, columns)
        if len(text.encode()) + 2 <= MAX_PARAMETER_BYTES:
            small.append(text)
            continue
        # As JSON it may be too long for a value although no column of it is.
        values = [row[column] for column in columns]
        yield f"{into} SELECT {', '.join('?' * len(columns))} WHERE true {upsert}", values
    for chunk in chunked(small):
        yield f"{into} SELECT {extracted} FROM json_each(?) WHERE true {upsert}", [chunk]


def _pages(database: Database, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
    """All rows in key order, in pages that fit into memory, here and in the Worker."""
    key = TABLES[table]
    keys, named = ", ".join(key), ", ".join(f"{column} AS k_{column}" for column in key)
    order = ", ".join(f"k_{column}" for column in key)
    same = " AND ".join(f"{table}.{column} = page.k_{column}" for column in key)
    size = " + ".join(f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns)
    last: list[str] | None = None
    while True:
        rows = database.query(
            f"""WITH page AS (
              SELECT {order}, sum(size) OVER (ORDER BY {order}) AS total,
                row_number() OVER (ORDER BY {order}) AS n
              FROM (SELECT {named}, {size} AS size FROM {table}
                WHERE ({keys}) {">=" if last is None else ">"} ({", ".join("?" * len(key))})
                ORDER BY {keys} LIMIT ?))
            SELECT {", ".join(f"{table}.{column}" for column in columns)} FROM page
            JOIN {table} ON {same} WHERE n = 1 OR total <= ? ORDER BY {order}""",
            [*(last or [""] * len(key)), PAGE_ROWS, PAGE_BYTES],
        ).rows
        if not rows:
            return
        yield rows
        last = [rows[-1][column] for column in key]


def _canonical(row: Row, columns: Sequence[str]) -> str:
    return compact([_value(row[column]) for column in columns])


def _value(value: object) -> object:
    """One form for one value: a whole number may come as an integer or as a double."""
    if isinstance(value, bytes | list):
        raise StorageRejected("a column holds bytes; all of ours hold text or numbers")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _columns(database: Database, table: str) -> list[str]:
    rows = database.query("SELECT name FROM pragma_table_info(?) ORDER BY cid", [table]).rows
    return [row["name"] for row in rows]


def _count(database: Database, table: str) -> int:
    return int(database.query(f"SELECT count(*) AS n FROM {table}").rows[0]["n"])


def _check_rows(source: Side, target: Side, progress: CopyProgress) -> dict[str, Fingerprint]:
    progress.begin("check", 2 * sum(_count(source.database, table) for table in TABLES))
    tables = {}
    for table in TABLES:
        ours, theirs = (fingerprint(side.database, table, progress=progress) for side in (source, target))
        if ours != theirs:
            raise CopyRefused(
                f"{table} differs after the copy: {ours.count} rows in {source.name}, {theirs.count} in"
                f" {target.name}, hashes {ours.sha256[:12]} and {theirs.sha256[:12]}. {_USED_MEANWHILE}"
            )
        tables[table] = ours
    return tables


_USED_MEANWHILE = "One of them was used meanwhile: stop the daemon and start the copy again."


def _objects(store: ObjectStore) -> Iterator[ObjectInfo]:
    return (info for info in store.list("") if not info.key.startswith(_NOT_COPIED))


def _beside(source: ObjectStore, target: ObjectStore) -> Iterator[tuple[ObjectInfo, ObjectInfo | None]]:
    """Every object of the source and what the target has under its key, both listings side by side."""
    theirs = _objects(target)
    other = next(theirs, None)
    for ours in _objects(source):
        while other is not None and other.key < ours.key:
            other = next(theirs, None)
        yield ours, other if other is not None and other.key == ours.key else None


@dataclass(frozen=True, slots=True)
class _Object:
    key: str
    size: int
    sha256: str
    written: bool


def _copy_objects(source: Side, target: Side, progress: CopyProgress) -> tuple[Fingerprint, int, int]:
    progress.begin("objects", sum(1 for _ in _objects(source.objects)))
    digest, count, written, total = hashlib.sha256(), 0, 0, 0
    with ThreadPoolExecutor(OBJECTS_AT_ONCE, "copy") as pool:
        under_way: deque[Future[_Object | None]] = deque()

        def arrived() -> Iterator[_Object | None]:
            for ours, theirs in _beside(source.objects, target.objects):
                under_way.append(pool.submit(_copy_object, source.objects, target.objects, ours, theirs))
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
        raise CopyRefused(f"{ours.key} differs after it was copied. {_USED_MEANWHILE}")
    return replace(made, written=True)


def _same(store: ObjectStore, body: bytes, info: ObjectInfo) -> bool:
    there = store.get(info.key)
    return (
        there is not None
        and there[0] == body
        and there[1].content_type == info.content_type
        and dict(there[1].metadata) == dict(info.metadata)
    )


def _check_objects(source: Side, target: Side) -> None:
    """Bodies were read back one by one; what is left is that neither side has a key more, or another size."""
    ours, theirs = _sizes(source.objects), _sizes(target.objects)
    if ours != theirs:
        raise CopyRefused(
            f"objects differ after the copy: {ours.count} in {source.name}, {theirs.count} in {target.name}."
            f" {_USED_MEANWHILE}"
        )


def _sizes(store: ObjectStore) -> Fingerprint:
    digest, count = hashlib.sha256(), 0
    for info in _objects(store):
        digest.update(compact([info.key, info.size]).encode() + b"\n")
        count += 1
    return Fingerprint(count, digest.hexdigest())
