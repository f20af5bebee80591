"""The newest items of feeds and streams, as topics need them.

First where they are and their dates, of more items than are shown; then all of those that are. Which are
shown is decided in pipeline.topics.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rss_pipeline.collector.models.topic import Member
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.sql import compact

PAGE_BYTES = 1_000_000
"""Bytes, as stored, of the items read at once; a larger item comes alone."""

_MEMBER, _FEED, _STREAM = (f"json_extract(m.value, '$[{n}]')" for n in range(3))
# The index has the items of a feed by age: so many are read, and none behind them.
_OF_FEED = f"""SELECT n.rowid FROM items AS n INDEXED BY items_age
  WHERE n.feed_id = {_FEED} ORDER BY n.created_at DESC LIMIT ?"""
_OF_STREAM = f"""SELECT n.rowid FROM item_streams AS s CROSS JOIN items AS n ON n.id = s.item_id
  WHERE s.feed_id = {_FEED} AND s.stream = {_STREAM} ORDER BY n.created_at DESC LIMIT ?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A member of a topic whose newest items are read."""

    index: int
    """Its place in the topic."""
    member: Member


def places(wanted: Sequence[Wanted], limit: int) -> list[Statement]:
    """Queries for the newest `limit` items of each member by the time at which they were stored.

    A row has `member`, `id`, `feed_id`, `guid`, `link`, `pub_date`, `pub_date_source`, `created_at`.
    """
    return [
        Statement(
            f"""SELECT {_MEMBER} AS member, i.id, i.feed_id, i.guid, i.link, i.pub_date, i.pub_date_source,
              i.created_at
            FROM json_each(?) AS m CROSS JOIN items AS i ON i.rowid IN ({newest})""",
            [compact([[one.index, one.member.feed_id, one.member.stream] for one in chosen]), limit],
            name="find the newest items",
        )
        for newest, is_stream in ((_OF_FEED, False), (_OF_STREAM, True))
        if (chosen := [one for one in wanted if (one.member.stream is not None) == is_stream])
    ]


def feeds(ids: Sequence[str]) -> Statement:
    """A query for what topics show of these feeds, and whether they may be shown."""
    return Statement(
        """SELECT id, url, title, link, first_stored_at, needs_access, allow_private FROM feeds
        WHERE id IN (SELECT value FROM json_each(?))""",
        [compact(list(ids))],
        name="read feeds of a topic",
    )


def items(database: Database, ids: Sequence[str], *, text_characters: int) -> Iterator[Row]:
    """What topics show of these items, of HTML and summary so many characters from their beginning."""
    size = " + ".join(
        f"coalesce(length(CAST({name} AS BLOB)), 0)"
        for name in (
            "substr(content_html, 1, p.most)",
            "substr(summary, 1, p.most)",
            *("title", "authors", "categories", "enclosures"),
        )
    )
    sql = f"""SELECT page.n, i.id, i.title, i.author, i.authors, i.updated_at, i.categories, i.enclosures,
        i.base_url, substr(i.summary, 1, p.most) AS summary, substr(i.content_html, 1, p.most) AS content_html
      FROM (SELECT CAST(? AS INTEGER) AS most) AS p
      CROSS JOIN (
        SELECT n, place, sum(size) OVER (ORDER BY n) AS total, row_number() OVER (ORDER BY n) AS nth
        FROM (SELECT j.key AS n, items.rowid AS place, {size} AS size
          FROM (SELECT CAST(? AS INTEGER) AS most) AS p
          CROSS JOIN json_each(?) AS j CROSS JOIN items ON items.id = j.value)) AS page
      CROSS JOIN items AS i ON i.rowid = page.place
      WHERE nth = 1 OR total <= ? ORDER BY n"""
    left = list(ids)
    while left:
        rows = database.query(
            sql,
            [text_characters, text_characters, compact(left), PAGE_BYTES],
            name="read items of a topic",
        ).rows
        yield from rows
        if not rows:
            return
        left = left[int(rows[-1]["n"]) + 1 :]
