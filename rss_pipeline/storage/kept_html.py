"""The sanitized HTML of items in the table item_html: written with an item's images, read when it is served.

How HTML is sanitized is collector.sanitize's, how it is kept and served reader's. Only stores that
take bytes have it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rss_pipeline.fast_zlib import decompress
from rss_pipeline.storage.database import (
    MAX_PARAMETER_BYTES,
    MAX_VALUE_BYTES,
    Database,
    Result,
    Statement,
    TakesBytes,
    Value,
)
from rss_pipeline.storage.sql import compact, number

MOST_BYTES = MAX_VALUE_BYTES - 10_000
"""Bytes of one item's HTML, compressed: more does not fit into a row."""


# A dataclass takes several times as long to send from process to process.
class KeptHtml(NamedTuple):
    """An item's HTML as it is written."""

    item_id: str
    feed_bases: str | None
    title: str | None
    files: str | None
    """The enclosures that it does not show, as JSON; None if those are all."""
    size: int
    html: bytes
    """`SafeBody.marked`, compressed by zlib."""
    repaired_at: str | None
    """The last repair of the text that it is made of."""


def is_kept(database: Database) -> bool:
    """True if the database has the HTML of items."""
    return isinstance(database, TakesBytes) and database.takes_bytes


def feed_bases(link: str | None, url: str | None) -> str:
    """The feed's part of the bases of references."""
    return f"{link or ''} {url or ''}"


def keep_statements(kept: Iterable[KeptHtml], *, rules: str) -> Iterator[Statement]:
    """Write the HTML of these items, made by this version of the rules, each statement with some 1 MB of it
    and of its rows, which a hostile feed makes long: they have its link and the items' titles.

    An item that is gone, or was repaired since its text was read, has none.
    """
    rows: list[str] = []
    pieces: list[bytes] = []
    size = rows_size = 0
    for each in kept:
        row = [
            each.item_id,
            rules,
            each.feed_bases,
            each.title,
            each.files,
            each.size,
            len(each.html),
            each.repaired_at,
        ]
        text = compact(row)
        length = len(text.encode())
        if length > MAX_PARAMETER_BYTES:
            # Its HTML is made when somebody reads it.
            continue
        if pieces and max(size + len(each.html), rows_size + length) > MAX_PARAMETER_BYTES:
            yield _keep(rows, pieces)
            rows, pieces, size, rows_size = [], [], 0, 0
        # `substr` counts from 1.
        rows.append(f"[{size + 1},{text[1:]}")
        pieces.append(each.html)
        size += len(each.html)
        rows_size += length + 10
    if pieces:
        yield _keep(rows, pieces)


def _keep(rows: Sequence[str], pieces: Sequence[bytes]) -> Statement:
    return Statement(_INSERT, [b"".join(pieces), f"[{','.join(rows)}]"], name="keep HTML of items")


_FIELDS = [f"json_extract(j.value, '$[{n}]')" for n in range(9)]
_INSERT = f"""INSERT INTO item_html (arrived, rules, feed_bases, title, files, size, html)
  SELECT i.arrived, {_FIELDS[2]}, {_FIELDS[3]}, {_FIELDS[4]}, {_FIELDS[5]}, {number(_FIELDS[6])},
    substr(?, {number(_FIELDS[0])}, {number(_FIELDS[7])})
  FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = {_FIELDS[1]}
  WHERE i.arrived IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM item_versions AS v
      WHERE v.item_id = i.id AND v.replaced_at > coalesce({_FIELDS[8]}, ''))
  ON CONFLICT (arrived) DO UPDATE SET rules = excluded.rules, feed_bases = excluded.feed_bases,
    title = excluded.title, files = excluded.files, size = excluded.size, html = excluded.html"""


def drop_where(items: str, params: Sequence[Value]) -> Statement:
    """Delete the HTML of the items for which this condition holds. It goes before a statement that deletes
    them."""
    return Statement(
        f"""DELETE FROM item_html
        WHERE arrived IN (SELECT items.arrived FROM items WHERE items.arrived IS NOT NULL AND {items})""",
        params,
        name="drop HTML of items",
    )


@dataclass(frozen=True, slots=True)
class FoundHtml:
    """The HTML of one item as it was found."""

    feed_bases: str | None
    title: str | None
    files: str | None
    packed: bytes | None
    """None where it has no room on this page."""

    def is_valid(self, feed_link: str | None, feed_url: str) -> bool:
        """False if it has references that were resolved against other addresses of the feed."""
        return self.feed_bases is None or self.feed_bases == feed_bases(feed_link, feed_url)

    @property
    def marked(self) -> bytes:
        """As `safe_body` made it."""
        assert self.packed is not None
        return decompress(self.packed)


def read(numbers: Sequence[int], *, rules: str, most_bytes: int) -> Statement:
    """A query, for `found_of`, for the HTML of items by arrival number, made by these rules: that of
    the first within `most_bytes` together, at least one, and of the others that there is some."""
    return Statement(
        f"""WITH page AS (
          SELECT k.arrived, sum(k.size) OVER (ORDER BY {_PLACE}) AS total,
            row_number() OVER (ORDER BY {_PLACE}) AS nth
          FROM json_each(?) AS j CROSS JOIN item_html AS k ON k.arrived = {number("j.value")}
          WHERE k.rules = ?)
        SELECT page.arrived, k.feed_bases, k.title, k.files,
          CASE WHEN page.nth = 1 OR page.total <= ? THEN k.html END AS html
        FROM page CROSS JOIN item_html AS k ON k.arrived = page.arrived""",
        [compact(list(numbers)), rules, most_bytes],
        name="read HTML of items",
    )


_PLACE = number("j.key")


def found_of(result: Result) -> dict[int, FoundHtml]:
    """By arrival number, the result of `read`."""
    rows = result.columns("arrived", "feed_bases", "title", "files", "html")
    return {int(arrived): FoundHtml(*fields) for arrived, *fields in rows}


def missing(database: Database, *, rules: str, below: int, limit: int) -> tuple[list[str], int | None]:
    """The ids of items without HTML by these rules, among the newest `limit` with an arrival number below
    this one, and the lowest number of these; None if there is no item."""
    rows = database.query(
        """SELECT i.arrived, i.id, k.rules FROM items AS i INDEXED BY items_arrived
        LEFT JOIN item_html AS k ON k.arrived = i.arrived
        WHERE i.arrived < ? ORDER BY i.arrived DESC LIMIT ?""",
        [below, limit],
        name="look for items without HTML",
    ).rows
    ids = [row["id"] for row in rows if row["rules"] != rules]
    return ids, int(rows[-1]["arrived"]) if rows else None
