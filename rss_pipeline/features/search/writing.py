"""Writes into the search index: new items, new versions of items, those that are gone, generations.

Each function writes in a transaction of its own, with the place up to which a generation now is: a process
that is killed leaves the index as it was before, and the next one goes on there. The place is compared in the
transaction, so two processes at once do the work twice but write it once.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rss_pipeline.batched import batched
from rss_pipeline.features.search.index_file import SLOTS, IndexFile, add_generation, drop_generation

WORN_SHARE = 0.25
"""Share of dead slots: with more, the index is built anew."""
_FEW_DEAD = 5_000
_ROWS_AT_ONCE = 190
"""Rows have five values, and an older SQLite takes 999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedItem:
    """An item as it is written: texts in which the words are apart (words.py)."""

    arrived: int
    feed_id: str
    published: int
    """Seconds since 1970."""
    title: str
    author: str
    content: str
    months: str
    """Marks of its year and month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generation of the index, and how far it is."""

    number: int
    is_complete: bool
    """It has had all items once, so that it serves."""
    arrived: int
    """All items up to this arrival number are in it."""
    version_row: int
    version_at: str
    dead: int
    """Slots that are dead."""
    is_worn: bool
    """It has to be built anew: an item has had too many versions, or items are missing."""


def scope_of_feed(number: int) -> str:
    """The mark of a feed in the column `scope`. No text has one: U+E000 is taken out of them."""
    return f"\ue000f{number}"


EVERY = "\ue000x"
"""The mark of every item."""


def scope_of_time(year: int, month: int | None = None) -> str:
    """The mark of a year, or of a month of it."""
    return f"\ue000y{year}" if month is None else f"\ue000m{year}{month:02}"


def generations(file: IndexFile) -> list[Generation]:
    """The generations that are needed, oldest first: the one that serves, and the one being built, if any."""
    rows = file.rows(
        """SELECT number, is_complete, arrived, version_row, version_at, dead, is_worn FROM generations
        ORDER BY number"""
    )
    found = [
        Generation(
            number=number,
            is_complete=bool(is_complete),
            arrived=arrived,
            version_row=version_row,
            version_at=version_at,
            dead=dead,
            is_worn=bool(is_worn),
        )
        for number, is_complete, arrived, version_row, version_at, dead, is_worn in rows
    ]
    newest = max((each.number for each in found if each.is_complete), default=0)
    return [each for each in found if each.number >= newest]


def start(file: IndexFile, generation: Generation, *, version_row: int, version_at: str) -> None:
    """Note the versions that a generation without items need not look at: it reads items as they are now."""
    with file.writing() as connection:
        connection.execute(
            """UPDATE generations SET version_row = ?, version_at = ?
            WHERE number = ? AND arrived = 0 AND version_row = 0""",
            [version_row, version_at, generation.number],
        )


def add(file: IndexFile, generation: Generation, documents: Sequence[IndexedItem], *, arrived: int) -> bool:
    """Add items, in the order of their arrival, after which the generation is at `arrived`; False if another
    process was first, and nothing is written."""
    n = generation.number
    with file.writing() as connection:
        at = _row(connection, "SELECT arrived FROM generations WHERE number = ?", n)
        if at is None or at[0] != generation.arrived:
            return False
        feeds = _feed_numbers(connection, (each.feed_id for each in documents))
        highest = _row(connection, f"SELECT max(slot) FROM documents_{n}")
        slot = SLOTS * ((highest[0] if highest and highest[0] is not None else -1) // SLOTS + 1)
        _insert(
            connection,
            n,
            [(slot + SLOTS * place, each, feeds[each.feed_id]) for place, each in enumerate(documents)],
        )
        connection.execute("UPDATE generations SET arrived = ? WHERE number = ?", [arrived, n])
    return True


def replace(
    file: IndexFile, generation: Generation, documents: Iterable[IndexedItem], *, version: tuple[int, str]
) -> bool:
    """Put new versions of items into their place; then the generation is at this row of item_versions. Items
    that are not in it are left out: they come with the others. False as `add`."""
    n = generation.number
    with file.writing() as connection:
        at = _row(connection, "SELECT version_row FROM generations WHERE number = ?", n)
        if at is None or at[0] != generation.version_row:
            return False
        moved, worn = [], 0
        for each in documents:
            slot = slot_of(connection, n, each.arrived)
            if slot is None:
                continue
            if slot % SLOTS == SLOTS - 1:
                worn = 1
            else:
                moved.append((slot, each))
        connection.executemany(f"DELETE FROM documents_{n} WHERE slot = ?", [[slot] for slot, _ in moved])
        feeds = _feed_numbers(connection, (each.feed_id for _, each in moved))
        _insert(connection, n, [(slot + 1, each, feeds[each.feed_id]) for slot, each in moved])
        connection.execute(
            """UPDATE generations SET version_row = ?, version_at = ?, dead = dead + ?,
              is_worn = max(is_worn, ?) WHERE number = ?""",
            [*version, len(moved), worn, n],
        )
    return True


def drop(file: IndexFile, generation: Generation, numbers: Sequence[int]) -> None:
    """Drop items by their arrival numbers."""
    n = generation.number
    with file.writing() as connection:
        slots = [slot for number in numbers if (slot := slot_of(connection, n, number)) is not None]
        connection.executemany(f"DELETE FROM documents_{n} WHERE slot = ?", [[slot] for slot in slots])
        connection.execute("UPDATE generations SET dead = dead + ? WHERE number = ?", [len(slots), n])


def complete(file: IndexFile, generation: Generation) -> None:
    """Let a generation serve, and delete those before it."""
    with file.writing() as connection:
        connection.execute("UPDATE generations SET is_complete = 1 WHERE number = ?", [generation.number])
        rows = connection.execute("SELECT number FROM generations WHERE number < ?", [generation.number])
        old = [number for (number,) in rows.fetchall()]
        for number in old:
            drop_generation(connection, number)
    if old:
        file.shrink()


def forget(file: IndexFile, generation: Generation) -> None:
    """Delete a generation."""
    with file.writing() as connection:
        drop_generation(connection, generation.number)


def rebuild(file: IndexFile) -> None:
    """Begin a new generation, in place of one that is being built already; the last complete one serves."""
    with file.writing() as connection:
        rows = connection.execute("SELECT number, is_complete FROM generations").fetchall()
        for number, is_complete in rows:
            if not is_complete:
                drop_generation(connection, number)
        add_generation(connection, max((number for number, _ in rows), default=0) + 1)


def mark_worn(file: IndexFile, generation: Generation) -> None:
    """Note that a generation has to be built anew."""
    with file.writing() as connection:
        connection.execute("UPDATE generations SET is_worn = 1 WHERE number = ?", [generation.number])


def needs_rebuild(generation: Generation, *, documents: int) -> bool:
    """True for a generation with too many dead slots, or one that is worn."""
    return generation.is_worn or generation.dead > _FEW_DEAD + WORN_SHARE * documents


def state(file: IndexFile, name: str) -> str | None:
    """A value that was kept under a name."""
    rows = file.rows("SELECT value FROM state WHERE name = ?", [name])
    return str(rows[0][0]) if rows else None


def set_state(file: IndexFile, name: str, value: str) -> None:
    """Keep a value under a name."""
    with file.writing() as connection:
        connection.execute(
            "INSERT INTO state VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, value],
        )


def counts_by_feed(file: IndexFile, generation: Generation) -> dict[str, int]:
    """The number of items of each feed in a generation."""
    rows = file.rows(
        f"""SELECT feeds.id, d.n FROM
          (SELECT feed, count(*) AS n FROM documents_{generation.number} GROUP BY feed) AS d
        JOIN feeds ON feeds.number = d.feed"""
    )
    return {id: int(n) for id, n in rows}


def numbers_of_feeds(
    file: IndexFile, generation: Generation, feed_ids: Sequence[str], *, behind: int, limit: int
) -> list[int]:
    """Arrival numbers of the items of these feeds in a generation, behind a number."""
    rows = file.rows(
        "SELECT number FROM feeds WHERE id IN (SELECT value FROM json_each(?))", [_json(feed_ids)]
    )
    of_feeds = _json([number for (number,) in rows])
    found = file.rows(
        f"""SELECT arrived FROM documents_{generation.number}
        WHERE feed IN (SELECT value FROM json_each(?)) AND arrived > ? ORDER BY slot LIMIT ?""",
        [of_feeds, behind, limit],
    )
    return [arrived for (arrived,) in found]


def count(file: IndexFile, generation: Generation) -> int:
    """The number of items in a generation."""
    return int(file.rows(f"SELECT count(*) FROM documents_{generation.number}")[0][0])


def slot_of(connection: sqlite3.Connection, n: int, arrived: int) -> int | None:
    """The slot of an item of generation `n`, None for one that is not in it."""

    def look(slot: int) -> tuple[int, int] | None:
        return _row(
            connection, f"SELECT slot, arrived FROM documents_{n} WHERE slot >= ? ORDER BY slot LIMIT 1", slot
        )

    highest = _row(connection, f"SELECT max(slot) FROM documents_{n}")
    found = look(first_slot(look, highest[0] if highest else None, arrived))
    return found[0] if found is not None and found[1] == arrived else None


def _insert(connection: sqlite3.Connection, n: int, placed: Sequence[tuple[int, IndexedItem, int]]) -> None:
    _insert_rows(
        connection,
        f"words_{n} (rowid, content, title, author, scope)",
        [
            (slot, each.content, each.title, each.author, f"{EVERY} {scope_of_feed(feed)} {each.months}")
            for slot, each, feed in placed
        ],
    )
    _insert_rows(
        connection,
        f"documents_{n} (slot, arrived, feed, published)",
        [(slot, each.arrived, feed, each.published) for slot, each, feed in placed],
    )


def _insert_rows(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert many rows with each statement: behind every statement Python's lock is waited for, some
    milliseconds where another thread makes the next rows."""
    for some in batched(rows, _ROWS_AT_ONCE):
        marks = f"({', '.join('?' * len(some[0]))})"
        connection.execute(
            f"INSERT INTO {into} VALUES {', '.join([marks] * len(some))}", [*chain.from_iterable(some)]
        )


def _feed_numbers(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, int]:
    wanted = sorted(set(ids))
    connection.executemany(
        "INSERT INTO feeds (id) VALUES (?) ON CONFLICT DO NOTHING", [[id] for id in wanted]
    )
    rows = connection.execute(
        "SELECT id, number FROM feeds WHERE id IN (SELECT value FROM json_each(?))", [_json(wanted)]
    )
    return dict(rows.fetchall())


def _row(connection: sqlite3.Connection, sql: str, *params: object) -> tuple[Any, ...] | None:
    found: tuple[Any, ...] | None = connection.execute(sql, params).fetchone()
    return found


def _json(values: Sequence[str] | Sequence[int]) -> str:
    return json.dumps(values)


# Slots by arrival numbers: both grow together, so one is searched by halves and needs no index of its own.
# An index would be a tenth of the whole for short items.

Look = Callable[[int], tuple[int, int] | None]
"""The first row at or behind a slot: its slot and its arrival number; None where there is none."""


def first_slot(look: Look, highest: int | None, arrived: int) -> int:
    """A slot such that all rows from it on have at least this arrival number, and those before it have less.

    `highest` is the last slot there is; None for no rows.
    """
    low, high = 0, -1 if highest is None else highest + 1
    while low < high:
        middle = (low + high) // 2
        row = look(middle)
        if row is None or row[1] >= arrived:
            high = middle
        else:
            low = row[0] + 1
    return low
