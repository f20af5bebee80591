"""Stored feeds and items, written as rows: no server, no poll."""

from collections.abc import Iterable, Sequence
from typing import Any

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.sql import FIELD, NUMBER_FIELD, compact
from rss_pipeline.storage.stale import mark_stale

FIRST = "2026-01-01T00:00:00Z"
"""The instant at which the first document of each feed was stored."""


def add_feeds(database: Database, *ids: str, **fields: Any) -> None:
    rows = [
        {
            "id": id,
            "url": f"https://{id}.example/feed.xml",
            "host": f"{id}.example",
            "title": f"Feed {id}",
            "link": f"https://{id}.example/",
            "next_fetch_at": FIRST,
            "created_at": FIRST,
            "first_stored_at": FIRST,
            **fields,
        }
        for id in ids
    ]
    _insert(database, "feeds", rows)


def item(feed_id: str, guid: str, at: str, **fields: Any) -> Row:
    """An item that was published and stored at one instant."""
    return {
        "id": item_id(feed_id, guid),
        "feed_id": feed_id,
        "guid": guid,
        "link": f"https://{feed_id}.example/{guid}",
        "title": f"Item {guid} of {feed_id}",
        "pub_date": at,
        "created_at": at,
        "content_html": f"<p>Text of {guid}</p>",
        "guid_source": "guid",
        "pub_date_source": "feed",
        **fields,
    }


def add_items(database: Database, items: Iterable[Row], *, streams: Sequence[str] = ()) -> None:
    """Store these items, as members of these streams of their feeds, as a visit does."""
    rows = list(items)
    _insert(database, "items", rows)
    members = [
        {"feed_id": row["feed_id"], "stream": stream, "item_id": row["id"]}
        for row in rows
        for stream in streams
    ]
    if members:
        _insert(database, "item_streams", members)
    # Nothing becomes stale where no feature keeps anything of items.
    if marks := mark_stale(compact(sorted({row["feed_id"] for row in rows}))):
        database.batch(marks)


def _insert(database: Database, table: str, rows: Sequence[Row]) -> None:
    names = list(rows[0])
    numbers = {name for name in names if isinstance(rows[0][name], int)}
    values = ", ".join((NUMBER_FIELD if name in numbers else FIELD).format(name) for name in names)
    sql = f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM json_each(?) AS v"
    for start in range(0, len(rows), 500):
        database.query(
            sql, [compact([{name: row[name] for name in names} for row in rows[start : start + 500]])]
        )
