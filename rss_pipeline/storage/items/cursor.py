"""The order in which items came in: the numbers that inserts give, and the positions between them.

A number is the database's clock in microseconds, or one more than the highest so far where that is more. All
writes of a database go one after another and the number is given inside the transaction, so numbers grow in
the order in which transactions commit: who has read up to one has missed nothing below it, whatever became of
clocks, retention or several writers. As numbers follow the clock, a database that was rebuilt, or put back
from an older copy, gives numbers beyond those of its former life: what comes then is not taken for read.

What is read by these numbers is reading.py's.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.storage.database import Database, Statement, Value
from rss_pipeline.storage.sql import HIGHEST

NEXT_ARRIVAL = f"max(CAST(strftime('%s', 'now') AS INTEGER) * 1000000, {HIGHEST}) + 1"
"""The number of the first row of an insert; those after it add their place to it."""

_CURSOR = re.compile(r"(\d{1,16})-([0-9a-f]*~?)")
_ABOVE_ALL_IDS = "~"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two items in the order of arrival: behind the item `id` with the number `arrival`."""

    arrival: int = 0
    id: str = ""

    def __str__(self) -> str:
        return f"{self.arrival}-{self.id}"

    @classmethod
    def of(cls, cursor: str) -> "Position":
        """The inverse of `str`.

        Raises:
            ValueError: the text is none of ours.
        """
        match = _CURSOR.fullmatch(cursor)
        if match is None:
            raise ValueError(f"{cursor!r} is no cursor: pass the `cursor` of an item, as it was")
        return cls(int(match[1]), match[2])

    @classmethod
    def at(cls, moment: datetime) -> "Position":
        """Before all that came in at this moment or later, by the database's clock.

        Raises:
            ValueError: the moment names no time zone.
        """
        if moment.tzinfo is None:
            raise ValueError(f"{moment.isoformat()} names no time zone; use an aware datetime")
        return cls(max(0, int(moment.timestamp()) * 1_000_000))


_CAME = f"""SELECT max(arrived) AS newest FROM items INDEXED BY items_age
  WHERE feed_id = ? AND created_at = ? AND arrived > {HIGHEST}"""


def has_come(feed_id: str, created_at: str) -> tuple[str, list[Value]]:
    """A condition with its parameters: an insert of the same batch, into this feed and of a document fetched
    then, has brought something in. Only before `count_on`."""
    return f"(SELECT newest FROM ({_CAME})) IS NOT NULL", [feed_id, created_at]


def count_on(feed_id: str, created_at: str) -> Statement:
    """Record the highest number after an insert into this feed of a document fetched then; goes into the same
    batch, right behind it.

    It writes only where something came in.
    """
    return Statement(
        f"""INSERT INTO sequences (name, value)
        SELECT 'items', newest FROM ({_CAME}) WHERE newest IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        [feed_id, created_at],
        name="count arrivals",
        planned_once=True,
    )


def end(database: Database) -> Position:
    """Behind all that is stored now."""
    rows = database.query(f"SELECT {HIGHEST} AS highest", name="read last arrival").rows
    return Position(int(rows[0]["highest"]), _ABOVE_ALL_IDS)


def highest_number() -> Statement:
    """A query for the highest number given so far, in one row with `number`; 0 for none.

    In a batch with others it is the end of what they can see.
    """
    return Statement(f"SELECT {HIGHEST} AS number", name="read highest arrival number", is_kept=True)
