"""Stored items as values, in the order in which they came in: what other people's programs read.

The order is cursor.py's. How HTML gets its archived images is pipeline/read/terminal_text.py's.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.author import author_name
from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.storage.database import Database, Row, Value
from rss_pipeline.storage.items.cursor import Position
from rss_pipeline.storage.items.items import OF_STREAMS, stored_authors, stored_enclosures
from rss_pipeline.storage.items.stories import STORY
from rss_pipeline.storage.sql import compact, number

PLACES = 5_000
"""Positions looked up at once: less than 1 MB."""
PAGE_ITEMS = 100
PAGE_BYTES = 1_000_000
"""Bytes, as stored, of the items read at once; a larger item comes alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedInfo:
    """A feed, as far as a reader of its items needs it."""

    id: str
    url: str
    title: str | None
    link: str | None
    language: str | None
    is_registered: bool
    """False where it is no longer in feeds.yaml, nor subscribed to: its items stay until their time is
    over."""
    created_at: datetime
    last_success_at: datetime | None
    """Time of the last answer with a feed, or with 304 Not Modified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """One stored item with what it needs of its feed. Instants are aware, in UTC."""

    id: str
    """The same for as long as feed and guid are, also after a restore: what to recognise an item by."""
    feed_id: str
    feed_title: str | None
    guid: str
    link: str | None
    title: str | None
    author: str | None
    """The first author that the item itself names."""
    authors: tuple[str, ...]
    """All authors, also those that the item has from its feed."""
    published_at: datetime
    is_dated: bool
    """False where the feed gave no date that can be read: `published_at` is the time of fetching."""
    updated_at: datetime | None
    collected_at: datetime
    """Time at which the document that brought it was fetched."""
    categories: tuple[str, ...]
    enclosures: tuple[Enclosure, ...]
    summary: str | None
    content_html: str | None
    """As published, byte for byte."""
    html: str | None
    """The content with its archived images in place; None unless requested."""
    comments_url: str | None
    """The page on which readers discuss the item, where the feed names one."""
    base_url: str | None
    """Base of relative links in the content, where the document names one."""
    backup_key: str | None
    """Key of the backup of the document that brought it."""
    story: str | None
    """The name of its story, which others on the same event have, too; None where it stands alone."""
    cursor: str
    """The place right behind this item, for `since`."""


def feeds(database: Database) -> list[FeedInfo]:
    """All feeds there is something of, by id."""
    rows = database.query(
        """SELECT id, url, title, link, language, registered, created_at, last_success_at
        FROM feeds ORDER BY id""",
        name="list feeds",
    ).rows
    return [
        FeedInfo(
            id=row["id"],
            url=row["url"],
            title=row["title"],
            link=row["link"],
            language=row["language"],
            is_registered=bool(row["registered"]),
            created_at=datetime.fromisoformat(row["created_at"]),
            last_success_at=from_instant(row["last_success_at"]),
        )
        for row in rows
    ]


def pages(
    database: Database, feed_id: str | None, *, since: Position, streams: Sequence[str] | None = None
) -> Iterator[list[Row]]:
    """A feed's items, or everybody's, that came in behind a position, in that order, as rows.

    With `streams`, only those of a feed that belong to one of them.

    A row has all columns of items, `arrival`, and its feed's `feed_title`, `feed_url` and `feed_link`. What
    comes in meanwhile is read too; what retention removes meanwhile is not.
    """
    while True:
        places = _places(database, feed_id, since, streams)
        if places:
            yield from _rows(database, places)
            since = places[-1]
        if len(places) < PLACES:
            return


def feeds_with_items(database: Database, *, since: Position) -> list[str]:
    """The feeds of which something came in behind a position, or at its very number, by id."""
    rows = database.query(
        """SELECT feeds.id FROM feeds WHERE EXISTS
          (SELECT 1 FROM items INDEXED BY items_age WHERE feed_id = feeds.id AND items.arrived >= ?)
        ORDER BY feeds.id""",
        [since.arrival],
        name="find feeds with new items",
    ).rows
    return [row["id"] for row in rows]


_BEHIND = "items.arrived >= ? AND (items.arrived > ? OR items.id > ?)"


def _behind(since: Position) -> list[Value]:
    return [since.arrival, since.arrival, since.id]


def _places(
    database: Database, feed_id: str | None, since: Position, streams: Sequence[str] | None
) -> list[Position]:
    order = f"ORDER BY arrival, id LIMIT {PLACES}"
    if feed_id is not None:
        of_streams, named = "", []
        if streams is not None:
            of_streams = f"AND {OF_STREAMS}"
            named = [feed_id, compact(list(streams))]
        rows = database.query(
            f"""SELECT id, arrived AS arrival FROM items INDEXED BY items_age
            WHERE feed_id = ? AND {_BEHIND} {of_streams} {order}""",
            [feed_id, *_behind(since), *named],
            name="find new items of a feed",
        ).rows
    else:
        # By the index of each feed: one over all feeds would be a row more written for every item.
        rows = database.query(
            f"""SELECT items.id AS id, items.arrived AS arrival
            FROM feeds CROSS JOIN items INDEXED BY items_age
            ON items.feed_id = feeds.id AND {_BEHIND} {order}""",
            _behind(since),
            name="find new items",
        ).rows
    return [Position(int(row["arrival"]), row["id"]) for row in rows]


def _rows(database: Database, places: Sequence[Position]) -> Iterator[list[Row]]:
    size = " + ".join(
        f"coalesce(length(CAST({name} AS BLOB)), 0)"
        for name in ("content_html", "summary", "title", "authors", "categories", "enclosures", "items.id")
    )
    sql = f"""SELECT page.n AS n, items.*,
        feeds.title AS feed_title, feeds.url AS feed_url, feeds.link AS feed_link,
        {STORY.format("items")} AS story
      FROM (WITH wanted AS (
        SELECT {number("j.key")} AS n, items.rowid AS place, {size} AS size
        FROM json_each(?) AS j CROSS JOIN items ON items.id = j.value),
      page AS (
        SELECT n, place, sum(size) OVER (ORDER BY n) AS total, row_number() OVER (ORDER BY n) AS nth
        FROM wanted)
      SELECT * FROM page) AS page
      JOIN items ON items.rowid = page.place JOIN feeds ON feeds.id = items.feed_id
      WHERE nth = 1 OR total <= ? ORDER BY n"""
    start = 0
    while start < len(places):
        some = places[start : start + PAGE_ITEMS]
        rows = database.query(
            sql, [compact([place.id for place in some]), PAGE_BYTES], name="read items"
        ).rows
        if not rows:
            start += len(some)
            continue
        for row in rows:
            row["arrival"] = some[int(row["n"])].arrival
        start += int(rows[-1]["n"]) + 1
        yield rows


def stored_item(row: Row, *, html: str | None = None) -> StoredItem:
    """A row of `pages` as a value."""
    published, collected = (datetime.fromisoformat(row[name]) for name in ("pub_date", "created_at"))
    return StoredItem(
        id=row["id"],
        feed_id=row["feed_id"],
        feed_title=row["feed_title"],
        guid=row["guid"],
        link=row["link"],
        title=row["title"],
        author=row["author"] and author_name(row["author"]),
        authors=stored_authors(row),
        published_at=published,
        is_dated=row["pub_date_source"] == "feed",
        updated_at=from_instant(row["updated_at"]),
        collected_at=collected,
        categories=tuple(json.loads(row["categories"])),
        enclosures=stored_enclosures(row),
        summary=row["summary"],
        content_html=row["content_html"],
        html=html,
        comments_url=row["comments_url"],
        base_url=row["base_url"],
        backup_key=row["backup_key"],
        story=row["story"],
        cursor=str(Position(row["arrival"], row["id"])),
    )
