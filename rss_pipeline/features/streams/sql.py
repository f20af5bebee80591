"""Statements of streams: their members, what documents show of them, and those that are to be judged anew.

What people read of them is in states.py.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed, FeedSpec
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.streams.model import (
    VALUES_KEPT,
    StreamSpec,
    streams_in,
    streams_of,
    streams_of_json,
)
from rss_pipeline.storage.database import Database, Row, Statement, Value
from rss_pipeline.storage.items.items import published_authors
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, chunked, compact, number, storable
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


UNMATCHED_DOCUMENTS = 3
"""A stream that matches none of so many documents in a row is a warning; more are not counted."""
_MATCHED_EVERY = timedelta(hours=1)
"""`matched_at` is exact to this: a row written for each stream at each document is what D1 counts."""
ERROR_CHARACTERS = 500


def judgement_of(feed: Feed, parsed: Parsed, *, token: str | None = None) -> Judgement:
    """The items of a document, judged by the streams that could be applied to it.

    A stream with an error keeps its members as they are.
    """
    members = streams_in(parsed).members
    names_of: dict[str, list[str]] = {}
    for name, ids in members.items():
        for id in ids:
            names_of.setdefault(id, []).append(name)
    judged = [stream for stream in streams_of(feed) if stream.name in members]
    return Judgement(feed_id=feed.id, judged=judged, streams_of=names_of, token=token)


def with_items(
    feed: Feed, token: str, parsed: Parsed
) -> Callable[[Sequence[str]], Iterator[list[Statement]]]:
    """The statements for the items of a document that is stored under this lease."""
    return judgement_of(feed, parsed, token=token).groups


def note_document(feed: Feed, token: str, parsed: Parsed) -> list[Statement]:
    """Record what a document shows of its feed's streams; for the batch that closes the visit, before that.

    What else a cut document lists is not known, and one without items matches nothing: neither counts.
    """
    found = streams_in(parsed)
    counts = parsed.items_seen > 0 and not parsed.cut_off
    fetched_at = parsed.document.response.fetched_at
    rows = [
        [
            stream.name,
            stream.selector_hash,
            1 if found.members.get(stream.name) else 0 if counts and not error else None,
            stream.listed_field,
            error and storable(error[:ERROR_CHARACTERS]),
            int(stream.name in found.members),
        ]
        for stream in streams_of(feed)
        for error in [found.errors.get(stream.name)]
    ]
    return [
        Statement(
            _NOTE,
            [
                instant(fetched_at),
                instant(fetched_at - _MATCHED_EVERY),
                compact({name: list(values) for name, values in found.values.items()}),
                feed.id,
                token,
                compact(rows),
            ],
            name="note streams",
        )
    ]


_VALUES = f"""(SELECT CAST(json_group_array(value) AS TEXT) FROM (
    SELECT value FROM (
      SELECT value, 0 AS part, key FROM json_each(coalesce(streams.values_seen, '[]'))
      UNION ALL SELECT value, 1, key FROM json_each(coalesce(json_extract(d.seen, '$.' || d.field), '[]')))
    GROUP BY value ORDER BY min(part), min({number("key")}) LIMIT {VALUES_KEPT}))"""
# `whole`: all that is stored of the feed came with this document, so every item was judged by this selector.
_NOTE = f"""WITH document(at, hour_before, seen, feed_id, token) AS (SELECT ?, ?, ?, ?, ?),
  d AS MATERIALIZED (
    SELECT document.*, json_extract(value, '$[0]') AS name, json_extract(value, '$[1]') AS hash,
      CAST(json_extract(value, '$[2]') AS INTEGER) AS matched, json_extract(value, '$[3]') AS field,
      json_extract(value, '$[4]') AS error,
      CAST(json_extract(value, '$[5]') AS INTEGER) = 1 AND NOT EXISTS (
        SELECT 1 FROM items
        WHERE items.feed_id = document.feed_id AND items.created_at < document.at) AS whole
    FROM document, json_each(?) WHERE EXISTS (
      SELECT 1 FROM feeds WHERE feeds.id = document.feed_id AND feeds.lease_token = document.token))
  UPDATE streams SET
    matched_at = CASE WHEN d.matched = 1 THEN d.at ELSE matched_at END,
    unmatched_documents = CASE d.matched WHEN 1 THEN 0
      WHEN 0 THEN min(unmatched_documents + 1, {UNMATCHED_DOCUMENTS}) ELSE unmatched_documents END,
    values_seen = CASE d.matched WHEN 0 THEN {_VALUES} WHEN 1 THEN NULL ELSE values_seen END,
    error = d.error,
    selector_hash = CASE WHEN d.whole THEN registered_hash ELSE selector_hash END
  FROM d WHERE streams.feed_id = d.feed_id AND streams.name = d.name AND streams.registered_hash = d.hash
    AND (streams.error IS NOT d.error OR (d.whole AND selector_hash IS NOT registered_hash)
      OR (d.matched = 0 AND unmatched_documents < {UNMATCHED_DOCUMENTS})
      OR (d.matched = 1 AND (unmatched_documents > 0 OR coalesce(matched_at, '') <= d.hour_before)))"""


# Streams by which not all stored items were judged: which they are, their items, and the judgement's end.
#
# A stream is one of these from the sync that changes its selector until `end_judgement`, so that a process
# which was killed on the way loses nothing.

_FEEDS_AT_ONCE = 100
_PAGE_ITEMS = 500
_PAGE_BYTES = 1_000_000
_DELETED_AT_ONCE = 2_000
# As the index streams_unjudged has it.
_UNJUDGED = "(registered_hash IS NULL OR selector_hash IS NOT registered_hash)"
_FIELDS = ("title", "link", "author", "authors", "categories")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """A feed with streams by which not all stored items were judged, or that left the registry."""

    feed_id: str
    streams: tuple[StreamSpec, ...]
    """The streams that the registry has."""
    gone: tuple[str, ...]
    """The names of those that it has no longer."""


def unjudged(database: Database, feed_ids: Collection[str] | None = None) -> Iterator[Unjudged]:
    """The feeds with such streams, also by XPath; mostly none, which one query on an index finds."""
    among = "" if feed_ids is None else "AND s.feed_id IN (SELECT value FROM json_each(?))"
    last = ""
    while True:
        rows = database.query(
            f"""SELECT found.id, found.hashes, feeds.streams FROM (
              SELECT s.feed_id AS id, json_group_object(s.name, s.registered_hash) AS hashes
              FROM streams AS s INDEXED BY streams_unjudged
              WHERE {_UNJUDGED} AND s.feed_id > ? {among}
              GROUP BY s.feed_id ORDER BY s.feed_id LIMIT {_FEEDS_AT_ONCE}) AS found
            CROSS JOIN feeds ON feeds.id = found.id ORDER BY found.id""",
            [last, *([] if feed_ids is None else [compact(sorted(feed_ids))])],
            name="find unjudged streams",
        ).rows
        for row in rows:
            hashes = json.loads(row["hashes"])
            yield Unjudged(
                feed_id=row["id"],
                streams=tuple(
                    stream
                    for stream in streams_of_json(row["streams"])
                    if hashes.get(stream.name) == stream.selector_hash
                ),
                gone=tuple(sorted(name for name, hash in hashes.items() if hash is None)),
            )
        if len(rows) < _FEEDS_AT_ONCE:
            return
        last = rows[-1]["id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectableItem:
    """The fields of a stored item that streams select by."""

    id: str
    title: str | None
    link: str | None
    authors: tuple[str, ...]
    categories: tuple[str, ...]


def stored_items(database: Database, feed_id: str) -> Iterator[list[SelectableItem]]:
    """All items of a feed, in pages of a megabyte at most unless one item is larger.

    What comes in meanwhile is not among them, but judged by whoever stores it.
    """
    size = " + ".join(f"coalesce(length(CAST({name} AS BLOB)), 0)" for name in _FIELDS)
    last: tuple[str, int] = ("", 0)
    while True:
        rows = database.query(
            f"""WITH page AS (
              SELECT created_at, place, sum(size) OVER in_order AS total, row_number() OVER in_order AS n
              FROM (
                SELECT created_at, rowid AS place, {size} AS size FROM items
                WHERE feed_id = ? AND (created_at, rowid) > (?, ?)
                ORDER BY created_at, rowid LIMIT {_PAGE_ITEMS})
              WINDOW in_order AS (ORDER BY created_at, place))
            SELECT page.created_at, page.place, items.id, {", ".join(f"items.{name}" for name in _FIELDS)}
            FROM page CROSS JOIN items ON items.rowid = page.place
            WHERE page.n = 1 OR page.total <= {_PAGE_BYTES} ORDER BY page.n""",
            [feed_id, *last],
            name="read items to judge",
        ).rows
        if not rows:
            return
        yield list(map(_stored_item, rows))
        last = rows[-1]["created_at"], int(rows[-1]["place"])


def _stored_item(row: Row) -> SelectableItem:
    return SelectableItem(
        id=row["id"],
        title=row["title"],
        link=row["link"],
        authors=published_authors(row),
        categories=tuple(json.loads(row["categories"])),
    )


# While a visit is under way that was claimed before the selector changed, its items may come in unjudged.
_NO_VISIT = f"""EXISTS (SELECT 1 FROM feeds WHERE id = streams.feed_id AND (
  lease_token IS NULL OR lease_token NOT IN ({LIVE_TOKENS_NOW})))"""
_NEWEST = """(SELECT max(i.created_at) FROM item_streams AS m CROSS JOIN items AS i ON i.id = m.item_id
  WHERE m.feed_id = streams.feed_id AND m.stream = streams.name)"""
_END = f"""UPDATE streams SET selector_hash = registered_hash, error = NULL,
  matched_at = coalesce(matched_at, {_NEWEST})
  FROM json_each(?) AS j WHERE streams.feed_id = ? AND streams.name = j.key
    AND streams.registered_hash = j.value"""


def end_judgement(
    database: Database, feed_id: str, streams: Sequence[StreamSpec], *, during_visit: bool = False
) -> None:
    """Record that all items of the feed were judged by these streams; not where a selector has changed since.

    Nor while a visit of the feed is under way, unless `during_visit`: the next judgement settles it.
    """
    done = {stream.name: stream.selector_hash for stream in streams}
    if done:
        sql = _END if during_visit else f"{_END} AND {_NO_VISIT}"
        database.query(sql, [compact(done), feed_id], name="end judgement of streams")


def note_errors(database: Database, feed_id: str, errors: Mapping[str, str]) -> None:
    """Record a sentence for each of these streams that could not be applied to a backup."""
    if errors:
        database.query(
            """UPDATE streams SET error = j.value FROM json_each(?) AS j
            WHERE streams.feed_id = ? AND streams.name = j.key""",
            [compact({name: storable(error[:ERROR_CHARACTERS]) for name, error in errors.items()}), feed_id],
            name="note errors of streams",
        )


def judge_again(
    feed_id: str, streams: Sequence[StreamSpec], condition: str, params: Sequence[Value]
) -> Statement:
    """Have all streams of the feed but these judged anew where a condition holds: items come in that were
    judged by these alone, and the registry has changed meanwhile."""
    return Statement(
        f"""UPDATE streams SET selector_hash = NULL WHERE feed_id = ? AND selector_hash IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM json_each(?) AS j
          WHERE j.key = streams.name AND j.value = streams.registered_hash) AND {condition}""",
        [feed_id, compact({stream.name: stream.selector_hash for stream in streams}), *params],
        name="judge streams again",
    )


def drop_streams(database: Database, feed_id: str, names: Sequence[str]) -> None:
    """Delete the members of streams that left the registry, then their rows; not of those that are back."""
    gone = """SELECT name FROM streams
      WHERE feed_id = ? AND registered_hash IS NULL AND name IN (SELECT value FROM json_each(?))"""
    params = [feed_id, feed_id, compact(list(names))]
    members = f"""DELETE FROM item_streams WHERE (feed_id, stream, item_id) IN (
      SELECT feed_id, stream, item_id FROM item_streams
      WHERE feed_id = ? AND stream IN ({gone}) LIMIT {_DELETED_AT_ONCE})"""
    while database.query(members, params, name="delete members of gone streams").changes == _DELETED_AT_ONCE:
        pass
    database.query(
        f"DELETE FROM streams WHERE feed_id = ? AND name IN ({gone})", params, name="delete gone streams"
    )


# The rows of streams as the registry writes them, in the batch that writes their feeds.

_WANTED = """WITH wanted(feed_id, name, hash) AS MATERIALIZED (
  SELECT json_extract(f.value, '$.id'), s.key, s.value
  FROM json_each(?) AS f, json_each(f.value, '$.hashes') AS s)"""
# What was seen with a former selector says nothing of this one. Without selector_hash the stream is judged
# anew, also if it changes back before that: documents that came between were judged by the other selector.
_CHANGED = f"""{_WANTED} UPDATE streams SET registered_hash = wanted.hash, selector_hash = NULL,
  matched_at = NULL, unmatched_documents = 0, values_seen = NULL, error = NULL
  FROM wanted WHERE wanted.feed_id = streams.feed_id AND wanted.name = streams.name
    AND streams.registered_hash IS NOT wanted.hash"""
_GONE = f"""{_WANTED} UPDATE streams SET registered_hash = NULL
  WHERE registered_hash IS NOT NULL
    AND feed_id IN (SELECT json_extract(value, '$.id') FROM json_each(?))
    AND (feed_id, name) NOT IN (SELECT feed_id, name FROM wanted)"""
_END_OF_FEEDS = """UPDATE streams SET registered_hash = NULL WHERE registered_hash IS NOT NULL
  AND feed_id IN (SELECT id FROM feeds WHERE registered = 1 AND id IN (SELECT value FROM json_each(?)))"""
_ADDED = f"""{_WANTED} INSERT INTO streams (feed_id, name, registered_hash)
  SELECT feed_id, name, hash FROM wanted WHERE true ON CONFLICT (feed_id, name) DO NOTHING"""


def register_streams(specs: Sequence[FeedSpec]) -> list[Statement]:
    """Make the streams of these feeds those of the registry."""
    feeds = compact(
        [
            {"id": spec.id, "hashes": {stream.name: stream.selector_hash for stream in streams_of(spec)}}
            for spec in specs
        ]
    )
    return [
        Statement(_CHANGED, [feeds], name="write changed streams"),
        Statement(_GONE, [feeds, feeds], name="mark streams gone"),
        Statement(_ADDED, [feeds], name="write new streams"),
    ]


def end_streams(ids: str) -> list[Statement]:
    """Mark the streams of these feeds as gone that stay scheduled, a JSON list of ids."""
    return [Statement(_END_OF_FEEDS, [ids], name="end streams of subscribed feeds")]
