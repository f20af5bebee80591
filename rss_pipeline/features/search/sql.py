"""Items as the search index takes them: read from the database in the order of their arrival.

Both stores are read alike, by the number that every insert gives (items/cursor.py) and the index on it, so
nothing is met twice and nothing is left out. What becomes of the texts is index_build.py's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.items.body_parts import body_text
from rss_pipeline.storage.items.cursor import highest_number
from rss_pipeline.storage.items.items import published_authors
from rss_pipeline.storage.sql import compact, number

PAGE_ITEMS = 1_000
PAGE_BYTES = 3_000_000
"""Size of the texts read at once, as stored; a larger item comes alone."""
MOST_CHARACTERS = 500_000
"""The part of a text that is indexed; the rest is not found."""
SHOWN_CHARACTERS = 60_000
"""The part of a text from which a snippet is made."""

_TEXT = body_text("i")
_COLUMNS = f"""i.arrived, i.feed_id, i.title, i.author, i.authors, i.pub_date,
  substr({_TEXT}, 1, {MOST_CHARACTERS}) AS html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSource:
    """An item with what is searched of it."""

    arrived: int
    feed_id: str
    title: str
    authors: tuple[str, ...]
    published_at: datetime
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEnds:
    """The ends of the database; the index has not yet what is behind its own."""

    arrived: int
    """The highest arrival number."""
    version_row: int
    """The last row of item_versions; 0 for none."""
    version_at: str
    identity: str
    """A mark of this database alone: when it was made."""


def ends(database: Database) -> IndexEnds:
    """All of one moment: three rows are read."""
    number, version, birth = database.batch(
        [
            highest_number(),
            Statement(
                "SELECT rowid AS row, replaced_at FROM item_versions ORDER BY rowid DESC LIMIT 1",
                name="find the last version of an item",
            ),
            Statement(
                "SELECT applied_at FROM schema_migrations ORDER BY version LIMIT 1",
                name="read birth of the database",
            ),
        ]
    )
    last: Row = version.rows[0] if version.rows else {"row": 0, "replaced_at": ""}
    return IndexEnds(
        arrived=int(number.rows[0]["number"]),
        version_row=int(last["row"]),
        version_at=last["replaced_at"],
        identity=str(birth.rows[0]["applied_at"]),
    )


def behind(database: Database, arrived: int, *, up_to: int) -> list[IndexSource]:
    """The next items behind an arrival number, oldest first; none where there are no more up to `up_to`."""
    sql = f"""WITH next AS (
        SELECT i.rowid AS place, i.arrived, coalesce(length({_TEXT}), 0) AS size
        FROM items AS i INDEXED BY items_arrived
        WHERE i.arrived > ? AND i.arrived <= ? ORDER BY i.arrived LIMIT {PAGE_ITEMS}),
      page AS (SELECT place, arrived, sum(size) OVER (ORDER BY arrived) AS total,
        row_number() OVER (ORDER BY arrived) AS nth FROM next)
      SELECT {_COLUMNS} FROM page CROSS JOIN items AS i ON i.rowid = page.place
      WHERE page.nth = 1 OR page.total <= {PAGE_BYTES} ORDER BY page.arrived"""
    return [*map(_source, database.query(sql, [arrived, up_to], name="read items to index").rows)]


def replaced(
    database: Database, *, version_row: int, version_at: str, up_to: int
) -> tuple[list[IndexSource], tuple[int, str]]:
    """Items that a repair rewrote behind a row of item_versions, as they are now, with the place of the last
    one looked at; oldest rows first, some at a time.

    Where that row is gone, and so its number may be given again, all versions of the day before it count.
    """
    rows = database.query(
        """SELECT v.rowid AS row, v.item_id, v.replaced_at FROM item_versions AS v
        WHERE v.rowid > ? AND v.rowid <= ? ORDER BY v.rowid LIMIT 200""",
        [version_row, up_to],
        name="find rewritten items",
    ).rows
    if not rows:
        return [], (up_to, version_at)
    found = database.query(
        f"""SELECT {_COLUMNS} FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
        WHERE i.arrived IS NOT NULL ORDER BY i.arrived""",
        [compact(sorted({row["item_id"] for row in rows}))],
        name="read rewritten items",
    ).rows
    return [*map(_source, found)], (int(rows[-1]["row"]), rows[-1]["replaced_at"])


def version_place(database: Database, *, version_row: int, version_at: str) -> int:
    """The row of item_versions from which on to look: the one given, where it is still the same version."""
    if version_row == 0:
        return 0
    rows = database.query(
        "SELECT replaced_at FROM item_versions WHERE rowid = ?",
        [version_row],
        name="find a version of an item",
    ).rows
    if rows and rows[0]["replaced_at"] == version_at:
        return version_row
    # Rows at the end went with their items, and others may have their numbers now.
    rows = database.query(
        """SELECT coalesce(min(rowid), 1) - 1 AS row FROM item_versions
        WHERE replaced_at >= strftime('%Y-%m-%dT%H:%M:%SZ', ?, '-1 days')""",
        [version_at],
        name="find versions of the last days",
    ).rows
    return int(rows[0]["row"])


def counts_by_feed(database: Database, *, up_to: int) -> dict[str, int]:
    """The number of items of each feed with an arrival number up to this one."""
    rows = database.query(
        """SELECT feed_id, count(*) AS n FROM items INDEXED BY items_of_feed WHERE arrived <= ?
        GROUP BY feed_id""",
        [up_to],
        name="count items to index",
    ).rows
    return {row["feed_id"]: int(row["n"]) for row in rows}


def gone(database: Database, numbers: Sequence[int]) -> list[int]:
    """The arrival numbers among these that no item has any more."""
    rows = database.query(
        f"""SELECT j.value AS arrived FROM json_each(?) AS j
        WHERE NOT EXISTS (SELECT 1 FROM items AS i INDEXED BY items_arrived
          WHERE i.arrived = {number("j.value")})""",
        [compact(list(numbers))],
        name="find items that are gone",
    ).rows
    return [int(row["arrived"]) for row in rows]


def shown_texts(numbers: Sequence[int]) -> Statement:
    """A query for the start of the HTML of items by arrival number: rows with `arrived` and `html`. The
    users of the items are not checked."""
    return Statement(
        f"""SELECT i.arrived, substr({_TEXT}, 1, {SHOWN_CHARACTERS}) AS html
        FROM json_each(?) AS j CROSS JOIN items AS i INDEXED BY items_arrived
          ON i.arrived = {number("j.value")}""",
        [compact(list(numbers))],
        name="read texts of found items",
    )


def subscribed_feeds(user_id: str) -> Statement:
    """A query for `id`, `title` and `own_title` of the feeds that a user subscribes to."""
    return Statement(
        """SELECT s.feed_id AS id, f.title, s.title AS own_title FROM subscriptions AS s
        CROSS JOIN feeds AS f ON f.id = s.feed_id WHERE s.user_id = ?""",
        [user_id],
        name="find feeds to search",
    )


def _source(row: Row) -> IndexSource:
    return IndexSource(
        arrived=int(row["arrived"]),
        feed_id=row["feed_id"],
        title=row["title"] or "",
        authors=published_authors(row),
        published_at=datetime.fromisoformat(row["pub_date"]),
        html=row["html"] or "",
    )
