"""The items table: parsed items to rows, the inserts, and what a person reads of them.

`item_rows` runs in a worker process and is pure; a row is a JSON list in the order of COLUMNS. What the
visit closes with is in closings.py.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rss_pipeline.collector.models.author import author_name
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.identity import Identities
from rss_pipeline.collector.models.item import Enclosure, GuidSource, Item, item_id
from rss_pipeline.errors import StorageRejected
from rss_pipeline.storage.database import (
    MAX_PARAMETER_BYTES,
    MAX_VALUE_BYTES,
    Database,
    Result,
    Row,
    Statement,
    Value,
)
from rss_pipeline.storage.items.cursor import NEXT_ARRIVAL, count_on, has_come
from rss_pipeline.storage.items.stories import STORY
from rss_pipeline.storage.sql import compact, number
from rss_pipeline.storage.stale import mark_stale_if

COLUMNS = (
    "id",
    "guid",
    "link",
    "title",
    "pub_date",
    "content_html",
    "author",
    "authors",
    "updated_at",
    "categories",
    "enclosures",
    "summary",
    "comments_url",
    "base_url",
    "guid_source",
    "pub_date_source",
    "pub_date_raw",
    "content_omitted",
)
_GUID = COLUMNS.index("guid")
OF_STREAMS = """id IN (SELECT item_id FROM item_streams
  WHERE feed_id = ? AND stream IN (SELECT value FROM json_each(?)))"""
"""The condition on items that they belong to one of these streams (a JSON list) of a feed."""

# A claim that was lost meanwhile must not write, nor may a feed that `forget` removed: the guard is in
# every statement, for an UPDATE that matches no row does not roll a batch back.
_GUARD = "EXISTS (SELECT 1 FROM feeds WHERE id = ? AND lease_token = ?)"
# What retention removed does not come back while the feed still lists it.
_NOT_EXPIRED = "NOT EXISTS (SELECT 1 FROM expired_items AS e WHERE e.feed_id = ? AND e.guid = {guid})"
_HEAD = "feed_id, created_at, backup_key, images_extracted_at, arrived"
_LOOKED_AT = "CASE WHEN {id} IN (SELECT j.value FROM json_each(?) AS j) THEN ? END"
# SQLite writes a row out of the list once: json_each alone writes it again for each field that is read of it.
_INSERT = f"""INSERT INTO items ({_HEAD}, {", ".join(COLUMNS)})
  WITH listed(key, value) AS MATERIALIZED (SELECT j.key, json(j.value) FROM json_each(?) AS j)
  SELECT ?, ?, ?, {_LOOKED_AT.format(id="json_extract(listed.value, '$[0]')")},
    {NEXT_ARRIVAL} + {number("listed.key")},
    {", ".join(f"json_extract(listed.value, '$[{n}]')" for n in range(len(COLUMNS)))}
  FROM listed WHERE {_GUARD}
  AND {_NOT_EXPIRED.format(guid=f"json_extract(listed.value, '$[{_GUID}]')")}
  ON CONFLICT (feed_id, guid) DO NOTHING RETURNING id"""
_INSERT_ONE = f"""INSERT INTO items ({_HEAD}, {", ".join(COLUMNS)})
  SELECT ?, ?, ?, {_LOOKED_AT.format(id="?")}, {NEXT_ARRIVAL}, {", ".join("?" * len(COLUMNS))}
  WHERE {_GUARD} AND {_NOT_EXPIRED.format(guid="?")}
  ON CONFLICT (feed_id, guid) DO NOTHING RETURNING id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChunk:
    """Rows for one insert. `text` is a JSON list of rows, below 1 MB; or one row that is larger alone."""

    text: str
    ids: tuple[str, ...]
    guids: tuple[str, ...]
    alone: bool = False
    imageless: tuple[str, ...] = ()
    """The ids of items that certainly show no image: they need not be read again, which saves D1 a row
    written for each."""
    identities: tuple[Identities, ...] = ()
    """The identities of its items without guid; the rows have their preferred guids until they are
    settled."""
    former_guids: tuple[tuple[str, str], ...] = ()
    """Guids of its items, each with what a former codec of the feed read."""


def item_rows(
    feed_id: str, items: Iterable[Item], *, fetched_at: datetime, item_bytes: int = MAX_VALUE_BYTES
) -> Iterator[RowChunk]:
    """Insert-ready rows of a document's items, in its order, for a store with room for `item_bytes` bytes of
    one. Raises `StorageRejected` where a guid alone does not fit.
    """
    rows = named_rows(feed_id, items, fetched_at=fetched_at, item_bytes=item_bytes)
    return chunked_rows(list(row.values()) for row in rows)


def named_rows(
    feed_id: str, items: Iterable[Item], *, fetched_at: datetime, item_bytes: int = MAX_VALUE_BYTES
) -> Iterator[Row]:
    """The rows of `item_rows` by the names of their columns, in the order of COLUMNS."""
    return (fitted(_row(feed_id, item, fetched_at), item_bytes=item_bytes) for item in items)


def chunked_rows(rows: Iterable[list[Any]]) -> Iterator[RowChunk]:
    """Rows in the order of COLUMNS, each of which fits, in chunks for an insert."""
    pending: list[str] = []
    names: list[tuple[str, str]] = []
    size = 2

    def chunk() -> RowChunk:
        ids, guids = zip(*names, strict=True)
        return RowChunk(text=f"[{','.join(pending)}]", ids=ids, guids=guids)

    for row in rows:
        text = compact(row)
        length = len(text.encode()) + 1
        if length > MAX_PARAMETER_BYTES:
            yield RowChunk(text=text, ids=(row[0],), guids=(row[_GUID],), alone=True)
            continue
        if pending and size + length > MAX_PARAMETER_BYTES:
            yield chunk()
            pending, names, size = [], [], 2
        pending.append(text)
        names.append((row[0], row[_GUID]))
        size += length
    if pending:
        yield chunk()


def with_guid(
    row: Sequence[Any], feed_id: str, guid: str, source: GuidSource, *, item_bytes: int
) -> list[Any]:
    """The row of an item, under another guid."""
    changed = dict(zip(COLUMNS, row, strict=True))
    changed |= {"id": item_id(feed_id, guid), "guid": guid, "guid_source": source}
    return list(fitted(changed, item_bytes=item_bytes).values())


def _row(feed_id: str, item: Item, fetched_at: datetime) -> Row:
    return {
        "id": item_id(feed_id, item.guid),
        "guid": item.guid,
        "link": item.link,
        "title": item.title,
        "pub_date": instant(item.pub_date or fetched_at),
        "content_html": item.content_html,
        "author": item.author,
        "authors": compact(item.authors),
        "updated_at": None if item.updated_at is None else instant(item.updated_at),
        "categories": compact(item.categories),
        "enclosures": enclosures_json(item.enclosures),
        "summary": item.summary,
        "comments_url": item.comments_url,
        "base_url": item.base_url,
        "guid_source": item.guid_source,
        "pub_date_source": "feed" if item.pub_date else "fetched",
        "pub_date_raw": item.pub_date_raw,
        "content_omitted": None,
    }


def insert_statements(
    chunk: RowChunk, *, feed_id: str, token: str, fetched_at: datetime, backup_key: str
) -> list[Statement]:
    """Insert what is not there yet and was not retired; the first one returns the ids that are new.

    Guarded by the lease's token. They belong into one batch (cursor.py).
    """
    at = instant(fetched_at)
    head: list[Value] = [feed_id, at, backup_key]
    looked_at: list[Value] = [compact(list(chunk.imageless)), at]
    if chunk.alone:
        row = json.loads(chunk.text)
        params = [*head, row[0], *looked_at, *row, feed_id, token, feed_id, row[_GUID]]
        insert = Statement(_INSERT_ONE, params, name="insert one item", planned_once=True, holds_item=True)
    else:
        params = [chunk.text, *head, *looked_at, feed_id, token, feed_id]
        insert = Statement(_INSERT, params, name="insert items", planned_once=True)
    return [insert, *mark_stale_if(feed_id, *has_come(feed_id, at)), count_on(feed_id, at)]


def new_ids(results: Iterable[Result]) -> tuple[str, ...]:
    """Ids of the items that inserts brought in."""
    return tuple(row["id"] for result in results for row in result.rows)


def not_stored(database: Database, feed_id: str, items: Sequence[tuple[str, str]]) -> set[str]:
    """The ids, among these items (id and guid), that an insert would add."""
    rows = database.query(
        """SELECT json_extract(value, '$[0]') AS id FROM json_each(?) AS j
        WHERE NOT EXISTS (SELECT 1 FROM items WHERE items.id = json_extract(j.value, '$[0]'))
          AND NOT EXISTS (SELECT 1 FROM expired_items AS old
            WHERE old.feed_id = ? AND old.guid = json_extract(j.value, '$[1]'))
          AND EXISTS (SELECT 1 FROM feeds WHERE id = ?)""",
        [compact(list(items)), feed_id, feed_id],
        name="find items not stored",
    ).rows
    return {row["id"] for row in rows}


def by_ids(database: Database, ids: Sequence[str], *, columns: Sequence[str]) -> dict[str, Row]:
    """These columns of the items that are stored, by id."""
    rows = database.query(
        f"SELECT id, {', '.join(columns)} FROM items WHERE id IN (SELECT value FROM json_each(?))",
        [compact(list(ids))],
        name="read items by id",
    ).rows
    return {row["id"]: row for row in rows}


def stored_authors(row: Row) -> tuple[str, ...]:
    """The names of all authors of an item's row, as people read them."""
    return tuple(dict.fromkeys(map(author_name, published_authors(row))))


def published_authors(row: Row) -> tuple[str, ...]:
    """All authors of an item's row, which has `author` and `authors`, as published.

    Rows from before there was a column for all of them have NULL there: the one author counts.
    """
    text = row["authors"] or "[]"
    named = () if text == "[]" else tuple(json.loads(text))
    return named or tuple(filter(None, [row["author"]]))


def known_titles(database: Database, feed_id: str, fresh: Sequence[str]) -> int:
    """The number of these new items with a title that an older item of the feed has too."""
    rows = database.query(
        """SELECT count(*) AS n FROM items AS new WHERE new.id IN (SELECT value FROM json_each(?))
        AND new.title IN (SELECT title FROM items
          WHERE feed_id = ? AND id NOT IN (SELECT value FROM json_each(?)))""",
        [compact(list(fresh)), feed_id, compact(list(fresh))],
        name="count known titles",
    ).rows
    return int(rows[0]["n"])


def newest(database: Database, feed_id: str, *, limit: int, stream: str | None = None) -> list[Row]:
    """The items of a feed, or of a stream of it, without their content, newest publication first."""
    of_stream = "" if stream is None else f"AND {OF_STREAMS}"
    named: list[Value] = [] if stream is None else [feed_id, compact([stream])]
    return database.query(
        f"""SELECT id, feed_id, guid, title, link, author, pub_date, pub_date_source, created_at,
        length(content_html) AS content_characters FROM items
        WHERE id IN (SELECT id FROM items WHERE feed_id = ? {of_stream} ORDER BY pub_date DESC, id LIMIT ?)
        ORDER BY pub_date DESC, id""",
        [feed_id, *named, limit],
        name="list items",
    ).rows


def item(database: Database, id: str) -> Row | None:
    """One item with all its columns, its feed's title, URL and link, and its story, by id or a unique start
    of it."""
    rows = database.query(
        f"""SELECT items.*, feeds.title AS feed_title, feeds.url AS feed_url, feeds.link AS feed_link,
          {STORY.format("items")} AS story
        FROM items JOIN feeds ON feeds.id = items.feed_id
        WHERE items.id >= ? AND items.id < ? LIMIT 2""",
        [id, id + "~"],
        name="read item",
    ).rows
    return rows[0] if len(rows) == 1 else None


def rows_of(chunks: Iterable[RowChunk]) -> Iterator[Row]:
    """Insert-ready rows by the names of their columns."""
    for chunk in chunks:
        rows = json.loads(chunk.text)
        for row in [rows] if chunk.alone else rows:
            yield dict(zip(COLUMNS, row, strict=True))


def known_rows(chunks: Iterable[RowChunk]) -> dict[str, list[Any]]:
    """A document's rows by item id, in its order."""
    rows: dict[str, list[Any]] = {}
    for chunk in chunks:
        read = json.loads(chunk.text)
        rows.update((row[0], row) for row in ([read] if chunk.alone else read))
    return rows


def image_source(row: Row) -> Item:
    """The parts of an item's row that finding images needs: content, enclosures, link and base."""
    return Item(
        guid="",
        guid_source="guid",
        link=row["link"],
        content_html=row["content_html"],
        base_url=row["base_url"],
        enclosures=stored_enclosures(row),
    )


def stored_enclosures(row: Row) -> tuple[Enclosure, ...]:
    """The enclosures in an item's row."""
    return read_enclosures(row["enclosures"])


def read_enclosures(text: str) -> tuple[Enclosure, ...]:
    """The inverse of `enclosures_json`."""
    return () if text == "[]" else tuple(Enclosure(**each) for each in json.loads(text))


def enclosures_json(enclosures: Iterable[Enclosure]) -> str:
    """Enclosures as they are stored."""
    return compact([{"url": e.url, "type": e.type, "length": e.length} for e in enclosures])


# Rows of items that fit into their store: the text is cut, and what else is large is left out. Pure.
#
# A row has at most MAX_VALUE_BYTES without its text in every store, so that nothing works at home alone; the
# text may be larger where a store has room (`item_bytes` of storage/database.py).

_OVERHEAD = 2_000
"""Bytes of a row that are not text of the item: feed id, instants, keys, SQLite's own header, and the
sentence about what is cut, so that a row that was cut fits."""
_CERTAINLY_FITS = MAX_VALUE_BYTES - _OVERHEAD
_DROPPED = (
    ("summary", None),
    ("enclosures", "[]"),
    ("categories", "[]"),
    ("authors", None),
    ("title", None),
    ("author", None),
    ("pub_date_raw", None),
    ("comments_url", None),
    ("base_url", None),
    ("link", None),
)
"""Columns in the order in which they are left out, each with what it holds then."""

_EMBEDDED = re.compile(r"""(?<=["'])data:[^"'<>\s]{1000,}""")
_OPEN_ENTITY = re.compile(r"&[#0-9A-Za-z]{0,31}\Z")
_TAG_CHARACTERS = 10_000
"""A `<` further before the end begins no tag, or one that no parser misses."""


def fitted(row: Mapping[str, Any], *, item_bytes: int) -> Row:
    """The row of an item, by column, as a store takes it that has room for `item_bytes` bytes of one.

    From a row that is larger than D1's, images within the text are left out in every store: no reader shows
    them. Then the text is cut to what the rest leaves, at least to half the row: where the rest is larger
    than that, parts of it are left out. `content_omitted` says so. A row that fits is the same. Raises
    `StorageRejected` where the guid alone does not fit.
    """
    # Most rows are far smaller, and a character has at most four bytes.
    if 4 * sum([len(value) for value in row.values() if isinstance(value, str)]) <= _CERTAINLY_FITS:
        return dict(row)
    size = _size(row)
    if size <= MAX_VALUE_BYTES:
        return dict(row)
    cut, changes, limit = dict(row), [], MAX_VALUE_BYTES
    published = row["content_html"] or ""
    text = _EMBEDDED.sub("data:,", published)
    if text != published:
        cut["content_html"] = text
        changes.append("images within its text are left out")
    rest = _size(cut) - _bytes(text)
    most = min(MAX_VALUE_BYTES, item_bytes - min(_bytes(text), item_bytes // 2))
    dropped = []
    for name, empty in _DROPPED:
        if rest <= most:
            break
        cut[name] = empty
        dropped.append(name)
        rest = _size(cut) - _bytes(text)
    if rest > most:
        raise StorageRejected(
            f"an item's guid has {_bytes(row.get('guid')):,} bytes; a row has at most {MAX_VALUE_BYTES:,}"
        )
    if rest + _bytes(text) > item_bytes:
        cut["content_html"] = start_of_html(text, item_bytes - rest)
        changes.append(f"its text ends after {_bytes(cut['content_html']):,} bytes")
        limit = item_bytes
    if dropped:
        changes.append(f"left out: {', '.join(dropped)}")
    if changes:
        cut["content_omitted"] = f"{size:,} bytes do not fit into a row of {limit:,}; {'; '.join(changes)}"
    return cut


def start_of_html(html: str, most: int) -> str:
    """As much of an HTML text as `most` bytes hold, or 1.9 times as many as JSON; no tag or entity is cut."""
    room = most
    while True:
        start = html.encode()[:room].decode(errors="ignore")
        if len(start) < len(html):
            tag = start.find("<", max(start.rfind(">"), len(start) - _TAG_CHARACTERS, 0))
            start = start[:tag] if tag >= 0 else start
            start = _OPEN_ENTITY.sub("", start)
        written = _bytes(compact(start)) - len('""')
        if written <= 1.9 * most:
            return start
        room = int(room * 1.89 * most / written)


def _size(row: Mapping[str, Any]) -> int:
    return _OVERHEAD + sum(
        _bytes(value) for name, value in row.items() if isinstance(value, str) and name != "content_omitted"
    )


def _bytes(text: str | None) -> int:
    return len((text or "").encode())
