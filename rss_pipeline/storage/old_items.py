"""Arrival numbers for items from before there were any (migration 0006), in chunks.

Readers find items by these numbers alone, and see none without one. `migrate` gives them behind the
migrations: one statement over all rows of a large D1 would not end in time. What a killed process leaves is
done by the next one.
"""

from collections.abc import Mapping, Sequence

from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.sql import compact, number

_CHUNK_ITEMS = 1_000
_SECOND = 1_000_000

_FIND = f"""SELECT id, coalesce(CAST(strftime('%s', created_at) AS INTEGER) * {_SECOND}, 0) AS second
  FROM items INDEXED BY items_arrived
  WHERE arrived IS NULL LIMIT {_CHUNK_ITEMS}"""
_TAKEN = f"""SELECT s.second,
    (SELECT max(arrived) FROM items WHERE arrived >= s.second AND arrived < s.second + {_SECOND}) AS highest
  FROM (SELECT {number("j.value")} AS second FROM json_each(?) AS j) AS s"""
# Another process may number items at the same time, or insert some: a number that was taken meanwhile is not
# given again, and the item is among those of the next chunk.
_NUMBER = f"""UPDATE items SET arrived = {number("j.value")} FROM json_each(?) AS j
  WHERE items.id = j.key AND items.arrived IS NULL
    AND NOT EXISTS (SELECT 1 FROM items AS other WHERE other.arrived = {number("j.value")})"""
_COUNT_ON = """INSERT INTO sequences (name, value) VALUES ('items', ?)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE sequences.value < excluded.value"""


def number_old_items(database: Database) -> int:
    """Give every item without an arrival number one of its own, in the second of its fetch; how many got one.

    The number is not below what stood in for it (`items.cursor.ARRIVAL`): whoever has read up to a place
    misses nothing behind it.
    """
    numbered = 0
    while rows := database.query(_FIND, name="find items without a number").rows:
        seconds = sorted({int(row["second"]) for row in rows})
        taken = database.query(_TAKEN, [compact(seconds)], name="find numbers that are taken").rows
        numbers = _numbers(rows, {int(row["second"]): row["highest"] for row in taken})
        _, written = database.batch(
            [
                Statement(_COUNT_ON, [max(numbers.values())], name="count old items"),
                Statement(_NUMBER, [compact(numbers)], name="number old items"),
            ]
        )
        numbered += written.changes
    return numbered


def _numbers(rows: Sequence[Row], taken: Mapping[int, float | None]) -> dict[str, int]:
    """Item id to number: those of one second follow each other, behind those that the second has already."""
    free = {second: second if highest is None else int(highest) + 1 for second, highest in taken.items()}
    numbers: dict[str, int] = {}
    for row in rows:
        second = int(row["second"])
        numbers[row["id"]] = free[second]
        free[second] += 1
    return numbers
