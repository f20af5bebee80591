"""The members of streams: statements that judge items again, for the batch that writes the items.

Which items a stream matches is decided in features.streams. The state of streams is streams.py's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rss_pipeline.features.streams.model import StreamSpec
from rss_pipeline.storage.database import Statement, Value
from rss_pipeline.storage.sql import chunked, compact
from rss_pipeline.storage.stale import mark_stale_if

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
                *mark_stale_if(
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
