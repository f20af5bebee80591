"""The same feeds and items in the databases of FreshRSS and of ours, as both store what they have collected.

Ours has its items searched for images by the code of a poll, which keeps their HTML; the images are archived.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.reader.peer import USER_ID
from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.visits.extract_images import ItemImageSearch
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feed_row import feeds_by_id

FIRST = 1_770_000_000_000_000
"""The number of the first item; the others follow a thousand apart."""
_AT = "2026-02-18T08:30:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    number: int
    feed: int
    title: str
    html: str
    """Sanitized already, as FreshRSS stores it."""
    is_read: bool

    @property
    def link(self) -> str:
        return _url(self.feed) + str(self.number)


def fill_freshrss(database: sqlite3.Connection, items: Iterable[Item], *, feeds: int) -> None:
    """HTML that is sanitized, and counts beside each feed."""
    database.executemany(
        "INSERT INTO category (id, name) VALUES (?, ?)", [(n + 2, f"Folder {n}") for n in range(10)]
    )
    database.executemany(
        """INSERT INTO feed (id, url, category, name, website, lastUpdate, cache_nbEntries, cache_nbUnreads)
        VALUES (?, ?, ?, ?, ?, ?, 0, 0)""",
        [(n + 1, _url(n), n % 10 + 2, f"Feed {n}", _url(n), FIRST // 10**6) for n in range(feeds)],
    )
    database.executemany(
        """INSERT INTO entry (id, guid, title, author, content, link, date, lastSeen, hash, is_read,
          is_favorite, id_feed, tags) VALUES (?, ?, ?, '', ?, ?, ?, ?, '', ?, 0, ?, '')""",
        (
            (one.number, str(one.number), one.title, one.html, one.link, one.number // 10**6,
             one.number // 10**6, int(one.is_read), one.feed + 1)
            for one in items
        ),
    )  # fmt: skip
    database.execute(
        """UPDATE feed SET cache_nbEntries = (SELECT count(*) FROM entry WHERE id_feed = feed.id),
          cache_nbUnreads = (SELECT count(*) FROM entry WHERE id_feed = feed.id AND is_read = 0)"""
    )


def fill_ours(database: Database, items: Iterable[Item], *, feeds: int, read_up_to: int) -> None:
    """One user who subscribes to all feeds, and has read what came up to this number."""
    for n in range(feeds):
        database.query(
            """INSERT INTO feeds (id, url, link, title, host, next_fetch_at, created_at, listed,
              images_pending)
            VALUES (?, ?, ?, ?, ?, '2100-01-01T00:00:00Z', ?, 0, 1)""",
            [feed_id(n), _url(n), _url(n), f"Feed {n}", f"{feed_id(n)}.example", _AT],
        )
        database.query(
            """INSERT INTO subscriptions (user_id, feed_id, read_up_to, folder, added_at)
            VALUES (?, ?, ?, ?, ?)""",
            [USER_ID, feed_id(n), read_up_to, f"Folder {n % 10}", _AT],
        )
    for some in batched(items, 10):
        rows = [
            {"id": f"{one.number:032x}", "feed": feed_id(one.feed), "guid": str(one.number),
             "title": one.title, "link": one.link, "html": one.html, "arrived": one.number}
            for one in some
        ]  # fmt: skip
        database.query(
            """INSERT INTO items (id, feed_id, guid, link, title, pub_date, content_html, created_at,
              guid_source, pub_date_source, arrived)
            SELECT value ->> 'id', value ->> 'feed', value ->> 'guid', value ->> 'link', value ->> 'title', ?,
              value ->> 'html', ?, 'guid', 'feed', value ->> 'arrived' FROM json_each(?)""",
            [_AT, _AT, json.dumps(rows, ensure_ascii=False)],
        )
    _search(database, [feed_id(n) for n in range(feeds)])
    database.query(
        """UPDATE image_tasks SET status = 'success', width = 800, height = 450,
          r2_key = 'images/feed/' || substr(item_id, 25) || '/' || position || '.jpg'"""
    )


def _search(database: Database, feed_ids: Sequence[str]) -> None:
    pool = ParserPool(processes=2, timeout=60.0)
    try:
        search = ItemImageSearch(database=database, clock=utc_now, pool=pool)
        for feed in feeds_by_id(database, feed_ids).values():
            search.search_stored(feed, feed.link)
            search.finish(feed)
        search.write()
    finally:
        pool.close()


def feed_id(feed: int) -> str:
    """The id of a feed in our database."""
    return f"f{feed:04}"


def _url(feed: int) -> str:
    return f"https://{feed_id(feed)}.example/"
