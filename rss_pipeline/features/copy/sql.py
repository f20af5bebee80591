"""Tables from one database into another, page by page, and fingerprints to compare them.

Whether a copy may be made, and in which order, is service.py's.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rss_pipeline.batched import batched
from rss_pipeline.errors import StorageRejected
from rss_pipeline.features import FEATURES
from rss_pipeline.progress import Progress
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database, Row, Statement, Value, item_bytes
from rss_pipeline.storage.items.items import fitted
from rss_pipeline.storage.sql import chunked, compact, number

TABLES: Mapping[str, tuple[str, ...]] = {
    "feeds": ("id",),
    "items": ("id",),
    "image_tasks": ("id",),
    "item_versions": ("item_id", "replaced_at"),
    "expired_items": ("feed_id", "guid"),
    "item_aliases": ("feed_id", "guid"),
    "hosts": ("host",),
    "feed_holds": ("feed_id",),
    "image_holds": ("host",),
    "host_gaps": ("kept", "host"),
    "image_urls": ("day", "url_hash"),
    "image_referers": ("host",),
    "sequences": ("name",),
    "installation": ("name",),
    "users": ("id",),
    "app_passwords": ("id",),
    "subscriptions": ("user_id", "feed_id"),
    "folders": ("user_id", "name"),
    "item_states": ("user_id", "feed_id", "arrived"),
    "new_addresses": ("user_id", "address"),
    **{table: key for feature in FEATURES for table, key in feature.copied_tables.items()},
}
"""Table to the columns of its primary key, the first one text; a table comes after those it refers to;
those of features at the end.

The tables of topics are not copied: the first sync in the target makes them from feeds.yaml, so that every
topic is published there, into the bucket that the target has for topics. Sessions, failed logins, known
clients and marks to undo are not copied either: users log in again. The machines of a fleet join by
themselves, the HTML of items is made again, and robots.txt is requested again.
"""
_OF_ITEMS = frozenset({"items", "item_versions"})
"""The tables that have the texts of items."""
PAGE_ROWS = 500
PAGE_BYTES = 500_000
"""A page's bytes as stored. Their JSON is seldom twice as long, so a page is one or two parameters."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A table's rows, or a store's objects, in key order: how many, and a SHA-256 over all of them."""

    count: int
    sha256: str


def fingerprint(
    database: Database, table: str, *, item_bytes: int, progress: Progress | None = None
) -> Fingerprint:
    """A table's fingerprint, read page by page, as it is in a database with room for `item_bytes` bytes of
    the row of one item."""
    digest, count = hashlib.sha256(), 0
    columns = _columns(database, table)
    for page in _pages(database, table, columns):
        for row in page:
            digest.update(_canonical(_fitted(table, row, item_bytes), columns).encode() + b"\n")
        count += len(page)
        if progress is not None:
            progress.advance("check", len(page))
    return Fingerprint(count, digest.hexdigest())


def copy_table(source: Database, target: Database, table: str, progress: Progress) -> tuple[int, int]:
    """Make the target's table hold these rows; how many were written, and how many are cut there because the
    target has less room for the text of an item (storage/items/items.py)."""
    columns = _columns(source, table)
    progress.begin(table, count_rows(source, table))
    written = cut = 0
    for page in _pages(source, table, columns):
        fitting = [_fitted(table, row, item_bytes(target)) for row in page]
        cut += sum(ours != theirs for ours, theirs in zip(page, fitting, strict=True))
        written += sum(target.batch([upsert])[0].changes for upsert in _upserts(table, columns, fitting))
        progress.advance(table, len(page))
    return written, cut


def _fitted(table: str, row: Row, item_bytes: int) -> Row:
    return fitted(row, item_bytes=item_bytes) if table in _OF_ITEMS else row


def _upserts(table: str, columns: Mapping[str, bool], page: Sequence[Row]) -> Iterator[Statement]:
    """Statements that make these rows the target's. A row that is there already is not written."""
    key = TABLES[table]
    updates = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
    ours, theirs = (", ".join(f"{who}.{column}" for column in columns) for who in (table, "excluded"))
    into = f"INSERT INTO {table} ({', '.join(columns)})"
    upsert = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {updates} WHERE ({ours}) IS NOT ({theirs})"
    if not updates:
        upsert = f"ON CONFLICT ({', '.join(key)}) DO NOTHING"
    fields = (f"json_extract(value, '$[{n}]')" for n in range(len(columns)))
    extracted = ", ".join(
        number(field) if is_number else field
        for field, is_number in zip(fields, columns.values(), strict=True)
    )
    small: list[str] = []
    for row in page:
        text = _canonical(row, columns)
        if len(text.encode()) + 2 <= MAX_PARAMETER_BYTES:
            small.append(text)
            continue
        # As JSON it may be too long for a value although no column of it is.
        values = [row[column] for column in columns]
        marks = ", ".join(number("?") if is_number else "?" for is_number in columns.values())
        sql = f"{into} SELECT {marks} WHERE true {upsert}"
        yield Statement(sql, values, name=f"copy {table}", holds_item=table in _OF_ITEMS)
    for chunk in chunked(small):
        sql = f"{into} SELECT {extracted} FROM json_each(?) WHERE true {upsert}"
        yield Statement(sql, [chunk], name=f"copy {table}")


def _pages(database: Database, table: str, columns: Mapping[str, bool]) -> Iterator[list[Row]]:
    """All rows in key order, in pages that fit into memory, here and in the Worker."""
    key = TABLES[table]
    keys, named = ", ".join(key), ", ".join(f"{column} AS k_{column}" for column in key)
    order = ", ".join(f"k_{column}" for column in key)
    same = " AND ".join(f"{table}.{column} = page.k_{column}" for column in key)
    lengths = [f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns]
    # In groups: SQLite takes expressions of 100 levels, and a chain of sums has one for each.
    size = " + ".join(f"({' + '.join(some)})" for some in batched(lengths, 20))
    first: list[Value] = [0 if columns[column] else "" for column in key]
    last: list[Value] | None = None
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
            [*(last or first), PAGE_ROWS, PAGE_BYTES],
            name="read a page of rows",
        ).rows
        if not rows:
            return
        yield rows
        last = [rows[-1][column] for column in key]


def _canonical(row: Row, columns: Iterable[str]) -> str:
    return compact([_value(row[column]) for column in columns])


def _value(value: object) -> object:
    """One form for one value: a whole number may come as an integer or as a double."""
    if isinstance(value, bytes | list):
        raise StorageRejected("a column holds bytes; all of ours hold text or numbers")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _columns(database: Database, table: str) -> dict[str, bool]:
    """The columns of a table, each with whether it holds whole numbers: in an order that all databases share,
    new ones and those that migrations brought up to date."""
    rows = database.query(
        "SELECT name, type FROM pragma_table_info(?) ORDER BY name", [table], name="read columns"
    ).rows
    return {row["name"]: row["type"] == "INTEGER" for row in rows}


def count_rows(database: Database, table: str) -> int:
    """The number of rows of a table."""
    return int(database.query(f"SELECT count(*) AS n FROM {table}", name="count rows").rows[0]["n"])
