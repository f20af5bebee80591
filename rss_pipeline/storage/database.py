"""The database as the rest of the project sees it: a protocol, its results and D1's limits.

No SQL of ours is here (see feeds/, items/, images/), nor an implementation (backends/).
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Protocol, Self, runtime_checkable

from rss_pipeline.errors import StorageRejected

MAX_PARAMETERS = 100
MAX_SQL_BYTES = 100_000
MAX_VALUE_BYTES = 2_000_000
"""Size of one bound value, and of one row (Cloudflare D1, "Limits")."""
LARGE_ITEM_BYTES = 8_000_000
"""Size of the row of one item where a store has room. A run takes some 35 MB of memory to store one."""
MAX_PARAMETER_BYTES = 1_000_000
"""The most bytes of one JSON parameter of ours, so that a request stays small."""
MAX_REQUEST_BYTES = 4_000_000
"""The most bytes of a whole batch as JSON that the proxy Worker accepts."""
MAX_INTEGER = 2**53
"""D1 binds every number as a double."""

Value = str | int | float | bytes | None
"""Bytes are for stores that take them: `TakesBytes`."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with its positional parameters (`?`).

    `name` says in a few words what it does ("close visit"): errors, logs and tests go by it.
    `holds_item` says that the row of one item is among the parameters: where a store has room, its text, and
    nothing else, may be larger than D1's limits.
    `is_kept` says that it only reads, and that its result stays the same while the user's version does
    (storage.accounts.user_rows.read_version): where rows that are read are paid for, the result is kept.
    `planned_once` is for what runs at each visit: the best plan does not depend on the values, and Postgres
    need not look for it each time, which takes as long as the statement itself.
    """

    sql: str
    params: Sequence[Value] = ()
    name: str = field(default="", kw_only=True)
    planned_once: bool = field(default=False, kw_only=True)
    holds_item: bool = field(default=False, kw_only=True)
    is_kept: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Result:
    """The rows that a statement returned, and how many rows it changed."""

    names: tuple[str, ...]
    """The names of the columns; empty where a store gives none for a result without rows."""
    values: list[tuple[Any, ...]]
    """The values of each row, in the order of `names`."""
    changes: int

    @classmethod
    def of_rows(cls, rows: Sequence[Row], changes: int) -> Self:
        """A result from rows that all have the same columns. KeyError for others."""
        names = tuple(rows[0]) if rows else ()
        return cls(names, [tuple([row[name] for name in names]) for row in rows], changes)

    @cached_property
    def rows(self) -> list[Row]:
        """Column name to value."""
        return [dict(zip(self.names, row, strict=True)) for row in self.values]

    def columns(self, *names: str) -> list[tuple[Any, ...]]:
        """The values of these columns, row by row. Of hundreds, they take a fifth of the time of `rows`.

        KeyError for a column that the result does not have.
        """
        if names == self.names or not self.values:
            return self.values
        if names == self.names[: len(names)]:
            return [row[: len(names)] for row in self.values]
        places = {name: place for place, name in enumerate(self.names)}
        chosen = [places[name] for name in names]
        if len(chosen) == 1:
            [place] = chosen
            return [(row[place],) for row in self.values]
        return list(map(itemgetter(*chosen), self.values))


class Database(Protocol):
    """SQLite's dialect, with D1's limits and D1's binding of numbers.

    Every number is bound as a double, so a number bound into a TEXT column reads `1.0`: bind strings for
    TEXT. Safe to call from several threads.

    Raises:
        StorageRejected: this statement's data is refused (constraint, limit, U+0000, lone surrogate).
        DatabaseUnavailable: the database cannot work now; nothing of the call was applied.
    """

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        """One statement, in a transaction of its own; `name` as a `Statement`'s."""
        ...

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        """All statements in order in one transaction, or none. An empty batch is a ValueError."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class TakesBytes(Protocol):
    """A `Database` that takes bytes as values, and gives them back."""

    takes_bytes: bool


@runtime_checkable
class WritesInTurn(Protocol):
    """A `Database` in which one batch writes at a time: several threads would only wait for each other."""

    writes_in_turn: bool


@runtime_checkable
class HasRoom(Protocol):
    """A `Database` whose rows of items may be larger than D1's."""

    @property
    def item_bytes(self) -> int:
        """The most bytes of one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The bytes of a database, how many of them are free for rows, and whether `shrink` returns those."""

    bytes: int
    free: int
    shrinks: bool

    @property
    def needed(self) -> int:
        """The bytes that must be free on the disk to write it anew: its rows twice, and a little more."""
        return 2 * (self.bytes - self.free) * 102 // 100


@runtime_checkable
class Shrinks(Protocol):
    """A `Database` whose deleted rows leave room that has to be made usable, or can be returned."""

    def shrink(self) -> None:
        """Make the room of deleted rows free for others, or return it to the disk."""
        ...


@runtime_checkable
class HasReserve(Shrinks, Protocol):
    """A `Database` in which deleted rows leave no room for rows of other tables: it keeps some for that."""

    def use_reserve(self) -> None:
        """Give up what is kept, and what can be made again, for others."""
        ...

    def keep_reserve(self) -> None:
        """Keep some room again, where there is any."""
        ...


@runtime_checkable
class InFile(Shrinks, Protocol):
    """A `Database` that is a file of this machine."""

    def room(self) -> Room:
        """The size of the file, and what of it is free for rows."""
        ...

    def compact(self) -> None:
        """Write the file anew, so that it shrinks by itself from then on."""
        ...


def shrink(database: Database) -> None:
    """`Shrinks.shrink`, where there is one: D1 needs none."""
    if isinstance(database, Shrinks):
        database.shrink()


def item_bytes(database: Database) -> int:
    """The most bytes of the row of one item in this database."""
    return database.item_bytes if isinstance(database, HasRoom) else MAX_VALUE_BYTES


def described(statement: Statement, *, characters: int) -> str:
    """Name and SQL of a statement in one line, of the SQL so many characters."""
    sql = " ".join(statement.sql.split())[:characters]
    return f"{statement.name}: {sql}" if statement.name else sql


def check_batch(statements: Sequence[Statement], *, item_bytes: int = MAX_VALUE_BYTES) -> None:
    """Refuse what D1 would refuse, before anything is sent, so that nothing works at home only.

    `item_bytes` is the size of the row of one item for which the store has room.
    """
    if not statements:
        raise ValueError("an empty batch")
    for statement in statements:
        check_limits(statement, most=item_bytes if statement.holds_item else MAX_VALUE_BYTES)
    if item_bytes > MAX_VALUE_BYTES:
        statements = [statement for statement in statements if not statement.holds_item]
    # A character takes six bytes at most (\u001f): most batches need not be written out to be sure. Bytes are
    # never sent so.
    texts = [len(text) for one in statements for text in (one.sql, *one.params) if isinstance(text, str)]
    if 6 * sum(texts) + 32 * sum(len(one.params) + 1 for one in statements) > MAX_REQUEST_BYTES:
        sent = [as_request(statement, has_bytes=False) for statement in statements]
        size = len(as_json(sent))
        if size > MAX_REQUEST_BYTES:
            raise StorageRejected(f"a batch of {size:,} bytes; at most {MAX_REQUEST_BYTES:,} can be sent")


def as_request(statement: Statement, *, has_bytes: bool = True) -> dict[str, object]:
    """A statement as the proxy Worker takes it, without parameters of bytes if not `has_bytes`. It knows no
    truth values; SQLite keeps numbers."""
    params = [
        int(value) if isinstance(value, bool) else value
        for value in statement.params
        if has_bytes or not isinstance(value, bytes)
    ]
    return {"sql": statement.sql, "params": params}


def as_json(value: object) -> bytes:
    """JSON in UTF-8, without escapes that would double Chinese and Japanese text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def check_limits(statement: Statement, *, most: int = MAX_VALUE_BYTES) -> None:
    """One statement's own limits; `most` are the bytes of a value."""
    sql = statement.sql
    # A character takes four bytes at most: most statements need not be encoded to be sure.
    if 4 * len(sql) > MAX_SQL_BYTES and len(sql.encode()) > MAX_SQL_BYTES:
        raise StorageRejected(f"a statement has more than {MAX_SQL_BYTES:,} bytes of SQL")
    if len(statement.params) > MAX_PARAMETERS:
        raise StorageRejected(f"{len(statement.params)} parameters; at most {MAX_PARAMETERS} may be bound")
    for position, value in enumerate(statement.params, start=1):
        if isinstance(value, str):
            # Most are like this, and a request of the reader has dozens.
            if not (len(value) <= most and value.isascii() and "\0" not in value):
                _check_text(value, position, most)
        elif isinstance(value, bytes):
            _check_size(len(value), position, most)
        elif isinstance(value, int) and abs(value) > MAX_INTEGER:
            raise StorageRejected(f"parameter {position}: integers above 2^53 lose digits in D1")
        elif isinstance(value, float) and not math.isfinite(value):
            raise StorageRejected(f"parameter {position}: {value} is no number that JSON can carry")


def _check_text(value: str, position: int, most: int) -> None:
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise StorageRejected(f"parameter {position}: a lone surrogate cannot be stored") from error
    _check_size(size, position, most)
    if "\0" in value:
        raise StorageRejected(f"parameter {position}: U+0000 cannot be stored: stores differ on it")


def _check_size(size: int, position: int, most: int) -> None:
    if size > most:
        raise StorageRejected(f"parameter {position}: {size:,} bytes; a value has at most {most:,}")


def one(result: Result) -> Row | None:
    """The first row, or None."""
    return dict(zip(result.names, result.values[0], strict=True)) if result.values else None


_WRITES = re.compile(r"\b(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)


@lru_cache(maxsize=1_000)
def only_reads(sql: str) -> bool:
    """True for a SELECT. Behind WITH there may be a write; where in doubt, it is taken for one."""
    words = sql.split(None, 1)
    if not words:
        return False
    first = words[0].upper()
    return first == "SELECT" or (first == "WITH" and _WRITES.search(sql) is None)
