"""Statements of a replay on the items table: inserts without a lease, the items of a backup, repairs.

A replay writes items, and of a feed's row only that images are to be looked for: never validators, counts or
schedule. Which backups are read and what becomes of them is orchestration's.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database, Row, Statement, Value
from rss_pipeline.storage.items.cursor import NEXT_ARRIVAL, count_on, has_come
from rss_pipeline.storage.items.items import COLUMNS, RowChunk, chunked_rows, new_ids, published_authors
from rss_pipeline.storage.items.tombstones import revive
from rss_pipeline.storage.kept_html import drop_where
from rss_pipeline.storage.sql import compact, number
from rss_pipeline.storage.stale import mark_stale, mark_stale_if

Beside = Callable[[Sequence[str], str, Sequence[Value]], Iterator[list[Statement]]]
"""Groups of statements for items by their ids, with the condition that one of them is new."""
_KEPT = ("id", "guid")
READ = tuple(name for name in COLUMNS if name not in _KEPT)
"""Columns parsed from a document beside an item's identity: all that a repair may change."""

_FROM_JSON = ", ".join(f"json_extract(value, '$[{n}]') AS {name}" for n, name in enumerate(COLUMNS))
_CHUNK = f"(SELECT {_FROM_JSON}, {number('key')} AS place FROM json_each(?))"
_ALONE = f"(SELECT {', '.join(f'? AS {name}' for name in COLUMNS)}, 0 AS place)"

# Tombstones hold: what retention removed does not come back out of a backup.
_INSERT = f"""INSERT INTO items
    (feed_id, created_at, backup_key, images_extracted_at, arrived, {", ".join(COLUMNS)})
  SELECT feeds.id, ?, ?, CASE WHEN new.id IN (SELECT j.value FROM json_each(?) AS j) THEN ? END,
    {NEXT_ARRIVAL} + new.place, {", ".join(f"new.{name}" for name in COLUMNS)}
  FROM {{new}} AS new JOIN feeds ON feeds.id = ?
  WHERE NOT EXISTS (
    SELECT 1 FROM expired_items AS old WHERE old.feed_id = feeds.id AND old.guid = new.guid)
  ON CONFLICT (feed_id, guid) DO NOTHING RETURNING id"""
_PENDING = """UPDATE feeds SET images_pending = 1
  WHERE id = ? AND images = 1 AND images_pending = 0 AND EXISTS (
    SELECT 1 FROM items WHERE id IN (SELECT value FROM json_each(?)) AND images_extracted_at IS NULL)"""


def row_of(columns: Sequence[Any]) -> Row:
    """A document's row by the names of its columns."""
    return dict(zip(COLUMNS, columns, strict=True))


def insert(
    database: Database,
    chunks: Sequence[RowChunk],
    *,
    feed_id: str,
    fetched_at: datetime,
    backup_key: str,
    beside: Sequence[Beside] = (),
    retired_since: datetime | None = None,
) -> tuple[str, ...]:
    """Insert what is neither there nor retired; ids of what is new. Without the feed's row nothing is.

    Items that were retired since `retired_since` are inserted too, and are not retired any more. Each chunk
    comes with the mark that its feed has images to look for, so no crash can lose them, and with the first
    group of each statements `beside`.
    """
    fresh: list[str] = []
    for chunk in chunks:
        at = instant(fetched_at)
        head = [at, backup_key, compact(list(chunk.imageless)), at]
        source, rows = _source(chunk)
        reviving = [] if retired_since is None else [revive(feed_id, chunk.guids, since=retired_since)]
        came = has_come(feed_id, at)
        groups = [of_items(chunk.ids, *came) for of_items in beside]
        results = database.batch(
            [
                *reviving,
                Statement(
                    _INSERT.format(new=source),
                    [*head, *rows, feed_id],
                    name="insert replayed items",
                    holds_item=chunk.alone,
                ),
                *mark_stale_if(feed_id, *came),
                *(each for of_items in groups for each in next(of_items, ())),
                count_on(feed_id, at),
                Statement(_PENDING, [feed_id, compact(list(chunk.ids))], name="mark images pending"),
            ]
        )
        for statements in chain(*groups):
            database.batch(statements)
        fresh += new_ids([results[len(reviving)]])
    return tuple(fresh)


def _source(chunk: RowChunk) -> tuple[str, list[Value]]:
    return (_ALONE, json.loads(chunk.text)) if chunk.alone else (_CHUNK, [chunk.text])


def stored_of(database: Database, feed_id: str, *, fetched_at: datetime, backup_key: str) -> Iterator[Row]:
    """The items that were stored of this backup, with COLUMNS, in pages of at most about 1 MB."""
    # By its instant, for which there is an index; the key distinguishes two backups of one second.
    text = " + ".join(f"length(CAST(coalesce({name}, '') AS BLOB))" for name in COLUMNS)
    sizes = database.query(
        f"""SELECT id, {text} AS size FROM items
        WHERE feed_id = ? AND created_at = ? AND backup_key = ? ORDER BY id""",
        [feed_id, instant(fetched_at), backup_key],
        name="measure items of a backup",
    ).rows
    for page in _pages(sizes):
        yield from database.query(
            f"""SELECT {", ".join(COLUMNS)} FROM items
            WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id""",
            [compact(page)],
            name="read items of a backup",
        ).rows


def _pages(sizes: Sequence[Row]) -> Iterator[list[str]]:
    page: list[str] = []
    total = 0.0
    for row in sizes:
        if page and total + row["size"] > MAX_PARAMETER_BYTES:
            yield page
            page, total = [], 0.0
        page.append(row["id"])
        total += row["size"]
    if page:
        yield page


def without_images(
    database: Database, feed_id: str, *, fetched_at: datetime, backup_key: str
) -> tuple[str, ...]:
    """Items stored of this backup, with images not extracted yet."""
    rows = database.query(
        """SELECT id FROM items WHERE feed_id = ? AND created_at = ? AND backup_key = ?
        AND images_extracted_at IS NULL ORDER BY id""",
        [feed_id, instant(fetched_at), backup_key],
        name="find items without images",
    ).rows
    return tuple(row["id"] for row in rows)


def differing(stored: Row, row: Sequence[Any]) -> tuple[str, ...]:
    """The columns of a stored item that a reading of its backup gives otherwise.

    A row from before there was a list of authors does not differ where the backup names its one author only:
    otherwise a repair would rewrite every such item.
    """
    read = row_of(row)
    before, now = ({**each, "authors": published_authors(each)} for each in (stored, read))
    return tuple(name for name in READ if before[name] != now[name])


# The version goes in first, whatever it is, and out again where the update changed nothing: so the new text
# is sent once, and a repair done twice leaves one version.
_KEEP = f"""INSERT INTO item_versions (item_id, replaced_at, {", ".join(READ)})
  SELECT id, ?, {", ".join(READ)} FROM items WHERE feed_id = ? AND id IN (SELECT value FROM json_each(?))
  ON CONFLICT DO NOTHING"""
_REWRITE = f"""UPDATE items SET {", ".join(f"{name} = new.{name}" for name in READ)},
  images_extracted_at = NULL
  FROM {{new}} AS new
  WHERE items.id = new.id AND items.feed_id = ? AND items.backup_key = ?
    AND ({" OR ".join(f"items.{name} IS NOT new.{name}" for name in READ)})
  RETURNING items.id AS id"""
# One that lacks only where the item is discussed says nothing of its text: it would double what is stored of
# feeds that name it in each item.
_OF_VERSIONS = [name for name in READ if name != "comments_url"]
_DROP = f"""DELETE FROM item_versions
  WHERE replaced_at = ? AND item_id IN (SELECT value FROM json_each(?)) AND EXISTS (
    SELECT 1 FROM items WHERE items.id = item_versions.item_id
      AND {" AND ".join(f"items.{name} IS item_versions.{name}" for name in _OF_VERSIONS)})"""


def repair(
    database: Database, rows: Iterable[list[Any]], *, feed_id: str, backup_key: str, now: datetime
) -> tuple[str, ...]:
    """Rewrite these items of this backup as they read now; ids of those that were changed.

    The old version is kept in item_versions in the same batch. Id, guid, created_at and backup key stay, and
    images are looked for again, with which their HTML is kept.
    """
    changed: list[str] = []
    for chunk in chunked_rows(rows):
        ids = compact(list(chunk.ids))
        source, new = _source(chunk)
        _, rewritten, *_ = database.batch(
            [
                Statement(_KEEP, [instant(now), feed_id, ids], name="keep item versions"),
                Statement(
                    _REWRITE.format(new=source),
                    [*new, feed_id, backup_key],
                    name="rewrite items",
                    holds_item=chunk.alone,
                ),
                Statement(_DROP, [instant(now), ids], name="drop equal versions"),
                *mark_stale(compact([feed_id])),
                drop_where("items.id IN (SELECT value FROM json_each(?))", [ids]),
                Statement(_PENDING, [feed_id, ids], name="mark images pending"),
                note_change_of_items(),
            ]
        )
        changed += new_ids([rewritten])
    return tuple(changed)
