"""Streams by which not all stored items were judged: which they are, their items, and the judgement's end.

A stream is one of these from the sync that changes its selector until `end_judgement`, so that a process
which was killed on the way loses nothing.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rss_pipeline.features.streams.model import StreamSpec, streams_of_json
from rss_pipeline.features.streams.sql import ERROR_CHARACTERS
from rss_pipeline.storage.database import Database, Row, Statement, Value
from rss_pipeline.storage.items.items import stored_authors
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, compact, storable

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
class StoredItem:
    """The fields of a stored item that streams select by."""

    id: str
    title: str | None
    link: str | None
    authors: tuple[str, ...]
    categories: tuple[str, ...]


def stored_items(database: Database, feed_id: str) -> Iterator[list[StoredItem]]:
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


def _stored_item(row: Row) -> StoredItem:
    return StoredItem(
        id=row["id"],
        title=row["title"],
        link=row["link"],
        authors=stored_authors(row),
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
