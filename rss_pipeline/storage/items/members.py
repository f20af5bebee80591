"""The members of streams: statements that judge items again, for the batch that writes the items.

Which items a stream matches is decided in features.streams. The state of streams is streams.py's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from rss_pipeline.features.streams.model import StreamSpec
from rss_pipeline.features.topics.model import Member
from rss_pipeline.features.topics.stale import mark_stale_if
from rss_pipeline.storage.database import Database, Row, Statement, Value
from rss_pipeline.storage.sql import chunked, compact, number

_PIECE_BYTES = 400_000
"""Size of the items of one group: its statements have them three times beside up to a megabyte of rows."""

# A stream with a meanwhile changed selector is not judged by the former one, and a visit that lost its lease
# judges none.
_WITH = """WITH of_feed(id) AS (SELECT ?), judged(name) AS MATERIALIZED (
    SELECT s.name FROM of_feed, json_each(?) AS j CROSS JOIN streams AS s
    ON s.feed_id = of_feed.id AND s.name = j.key AND s.registered_hash = j.value
    WHERE CAST(? AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM feeds WHERE id = of_feed.id AND lease_token = ?)),
  item(id, streams) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)),
  of_stream(item_id, name) AS (SELECT item.id, n.value FROM item, json_each(item.streams) AS n)"""
_LEAVING = """SELECT m.feed_id, m.stream, m.item_id
  FROM item CROSS JOIN item_streams AS m ON m.item_id = item.id
  WHERE m.stream IN (SELECT name FROM judged)
    AND m.stream NOT IN (SELECT n.value FROM json_each(item.streams) AS n)"""
# Of a retired item there is no row.
_JOINING = """SELECT of_feed.id, of_stream.name, items.id
  FROM of_feed, of_stream CROSS JOIN items ON items.id = of_stream.item_id
  WHERE of_stream.name IN (SELECT name FROM judged) AND NOT EXISTS (
    SELECT 1 FROM item_streams AS m
    WHERE m.feed_id = of_feed.id AND m.stream = of_stream.name AND m.item_id = items.id)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Items of one feed, judged by some of its streams."""

    feed_id: str
    judged: Sequence[StreamSpec] = ()
    """The streams that were applied, each to all of the items."""
    streams_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Item id to the names of the streams that the item belongs to; an item of none may be left out."""
    token: str | None = None
    """The token of the lease under which they were judged."""

    def groups(self, ids: Sequence[str]) -> Iterator[list[Statement]]:
        """Statements that make these items members of the streams that they belong to, and of no other that
        was applied. Items that are not stored stay out.

        The first group goes into the batch that inserts the items, behind them; mostly it is the only one.
        """
        if not self.judged or not ids:
            return
        judged = compact({stream.name: stream.selector_hash for stream in self.judged})
        pairs = (compact([id, list(self.streams_of.get(id, ()))]) for id in ids)
        for piece in chunked(pairs, most=_PIECE_BYTES):
            params: list[Value] = [self.feed_id, judged, self.token, self.token, piece]
            yield [
                mark_stale_if(
                    self.feed_id,
                    f"(EXISTS ({_LEAVING}) OR EXISTS ({_JOINING}))",
                    [],
                    before=_WITH,
                    first=params,
                ),
                Statement(
                    f"""{_WITH} DELETE FROM item_streams WHERE (feed_id, stream, item_id) IN ({_LEAVING})""",
                    params,
                    name="take items out of streams",
                ),
                Statement(
                    f"""{_WITH} INSERT INTO item_streams (feed_id, stream, item_id) {_JOINING}
                    ON CONFLICT DO NOTHING""",
                    params,
                    name="put items into streams",
                ),
            ]


# The newest items of feeds and streams, as topics need them.
#
# First where they are and their dates, of more items than are shown; then all of those that are. Which are
# shown is decided in features.topics.

PAGE_ITEMS = 50
USUAL_CHARACTERS = 20_000
"""Longer texts are read by a query of their own, so that no answer is large."""
PAGE_CHARACTERS = 500_000
"""Size of the long texts read at once; a longer one comes alone."""

_MEMBER, _FEED, _STREAM = (f"json_extract(m.value, '$[{n}]')" for n in range(3))
_MEMBER = number(_MEMBER)
# The index has the items of a feed by age: so many are read, and none behind them.
_OF_FEED = f"""SELECT n.rowid FROM items AS n INDEXED BY items_age
  WHERE n.feed_id = {_FEED} ORDER BY n.created_at DESC LIMIT ?"""
_OF_STREAM = f"""SELECT n.rowid FROM item_streams AS s CROSS JOIN items AS n ON n.id = s.item_id
  WHERE s.feed_id = {_FEED} AND s.stream = {_STREAM} ORDER BY n.created_at DESC LIMIT ?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A member of a topic, for the read of its newest items."""

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
    """The texts of these items that topics show, in their order; of HTML and summary so many characters from
    the start.

    Long texts are read as they are reached, so that few of them are in memory at once. An item that is
    gone is left out.
    """
    for start in range(0, len(ids), PAGE_ITEMS):
        page = ids[start : start + PAGE_ITEMS]
        found = database.query(
            f"""SELECT i.id, i.title, i.author, i.authors, i.updated_at, i.categories, i.enclosures,
              i.base_url, substr(i.summary, 1, {USUAL_CHARACTERS}) AS summary,
              substr(i.content_html, 1, {USUAL_CHARACTERS}) AS content_html,
              max(coalesce(length(i.summary), 0), coalesce(length(i.content_html), 0)) AS characters
            FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value""",
            [compact(page)],
            name="read items of a topic",
        ).rows
        rows = {row["id"]: row for row in found}
        sizes = {id: min(int(rows[id]["characters"]), text_characters) for id in page if id in rows}
        long = [id for id, size in sizes.items() if size > USUAL_CHARACTERS]
        texts: dict[str, Row] = {}
        for id in sizes:
            if long and id == long[0]:
                some = _first_of(long, sizes)
                long = long[len(some) :]
                texts = _long_texts(database, some, text_characters)
            yield rows.pop(id) | texts.pop(id, {})


def _first_of(ids: Sequence[str], sizes: Mapping[str, int]) -> Sequence[str]:
    """As many as are read at once, and one at least."""
    totals = accumulate(sizes[id] for id in ids)
    return ids[: max(1, sum(total <= PAGE_CHARACTERS for total in totals))]


def _long_texts(database: Database, ids: Sequence[str], text_characters: int) -> dict[str, Row]:
    rows = database.query(
        """SELECT i.id, substr(i.summary, 1, ?) AS summary, substr(i.content_html, 1, ?) AS content_html
        FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value""",
        [text_characters, text_characters, compact(list(ids))],
        name="read long items of a topic",
    ).rows
    return {row["id"]: row for row in rows}
