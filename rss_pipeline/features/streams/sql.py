"""The state of streams: what documents showed of them, and what a person reads.

Their members are written in members.py, the rows themselves by the registry (storage.feeds.stream_rows).
Which are to be judged anew is unjudged.py's.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.streams.model import SELECTOR_FIELDS, FieldSelector, StreamSpec, streams_of_json
from rss_pipeline.storage.database import Database, Row, Statement, Value
from rss_pipeline.storage.items.members import Judgement
from rss_pipeline.storage.sql import compact, number, storable

UNMATCHED_DOCUMENTS = 3
"""A stream that matches none of so many documents in a row is a warning; more are not counted."""
VALUES_KEPT = 20
_MATCHED_EVERY = timedelta(hours=1)
"""`matched_at` is exact to this: a row written for each stream at each document is what D1 counts."""
ERROR_CHARACTERS = 500


def judgement_of(feed: Feed, parsed: Parsed, *, token: str | None = None) -> Judgement:
    """The items of a document, judged by the streams that could be applied to it.

    A stream with an error keeps its members as they are.
    """
    streams_of: dict[str, list[str]] = {}
    for name, ids in parsed.stream_members.items():
        for id in ids:
            streams_of.setdefault(id, []).append(name)
    judged = [stream for stream in feed.streams if stream.name in parsed.stream_members]
    return Judgement(feed_id=feed.id, judged=judged, streams_of=streams_of, token=token)


def note_document(feed: Feed, token: str, parsed: Parsed) -> list[Statement]:
    """Record what a document shows of its feed's streams; for the batch that closes the visit, before that.

    What else a cut document lists is not known, and one without items matches nothing: neither counts.
    """
    if not feed.streams:
        return []
    counts = parsed.items_seen > 0 and not parsed.cut_off
    fetched_at = parsed.document.response.fetched_at
    rows = [
        [
            stream.name,
            stream.selector_hash,
            1 if parsed.stream_members.get(stream.name) else 0 if counts and not error else None,
            stream.listed_field,
            error and storable(error[:ERROR_CHARACTERS]),
            int(stream.name in parsed.stream_members),
        ]
        for stream in feed.streams
        for error in [parsed.stream_errors.get(stream.name)]
    ]
    return [
        Statement(
            _NOTE,
            [
                instant(fetched_at),
                instant(fetched_at - _MATCHED_EVERY),
                compact({name: list(values) for name, values in parsed.stream_values.items()}),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """A stream of the registry, its members now, and what the last documents showed of it."""

    feed_id: str
    spec: StreamSpec
    members: int
    newest_at: datetime | None
    """The date of its newest item, as topics sort them: the publisher's, but not after the first request."""
    matched_at: datetime | None
    """The time of the last document with an item of it, exact to the hour."""
    unmatched_documents: int
    """Documents in a row that had items and none of it; at most UNMATCHED_DOCUMENTS are counted."""
    values_seen: tuple[str, ...]
    """Values, in these documents, of the field that it selects by; at most 20, of 100 characters each."""
    error: str | None
    """A sentence: its XPath could not be evaluated for the last document."""
    is_judged: bool
    """Every stored item was judged by the present selector."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def selector(self) -> str:
        """The selector on one line, for people."""
        return selector_text(self.spec)

    @property
    def note(self) -> str | None:
        """A sentence where its members are not those of the present selector yet."""
        if self.is_judged:
            return None
        if self.spec.is_xpath:
            return f"selector changed; run `rss-pipeline replay {self.feed_id}` to judge stored items"
        return "selector changed; the next publication judges stored items"

    @property
    def warning(self) -> str | None:
        """A sentence where the stream probably does not select what it should."""
        if self.error is not None:
            return self.error
        if self.unmatched_documents < UNMATCHED_DOCUMENTS:
            return None
        sentence = f"matched nothing in the last {UNMATCHED_DOCUMENTS} documents that had items"
        if not self.values_seen:
            return sentence
        return f"{sentence}; {self.spec.listed_field} was: {', '.join(self.values_seen)}"


def selector_text(spec: StreamSpec) -> str:
    """A stream's selector on one line, for people."""
    if isinstance(spec.selector, str):
        return f"xpath: {spec.selector}"
    return "; ".join(_conditions(spec.selector, ""))


def _conditions(selector: FieldSelector, negation: str) -> list[str]:
    found = [
        f"{negation}{name}: {', '.join(patterns)}"
        for name in SELECTOR_FIELDS
        if (patterns := getattr(selector, name))
    ]
    return found + (_conditions(selector.negated, "not ") if selector.negated else [])


def stream_states(database: Database, feed_id: str | None = None) -> list[StreamState]:
    """The streams of all feeds, or of this one, in the order of feed id and feeds.yaml.

    Counts all their members, so not at every run where rows read are paid for.
    """
    return _states(database, "true", []) if feed_id is None else _states(database, "s.feed_id = ?", [feed_id])


def warned_streams(database: Database) -> list[StreamState]:
    """The streams with a warning, in the same order: no others are counted."""
    return _states(database, f"(s.error IS NOT NULL OR s.unmatched_documents >= {UNMATCHED_DOCUMENTS})", [])


def count_streams(database: Database) -> int:
    """The streams of the registry."""
    sql = "SELECT count(*) AS n FROM streams WHERE registered_hash IS NOT NULL"
    return int(database.query(sql, name="count streams").rows[0]["n"])


def _states(database: Database, condition: str, params: Sequence[Value]) -> list[StreamState]:
    # Two queries, for a batch needs the right to write.
    feeds = database.query(
        f"""SELECT id, streams FROM feeds WHERE streams IS NOT NULL
        AND id IN (SELECT s.feed_id FROM streams AS s WHERE {condition}) ORDER BY id""",
        params,
        name="read streams of feeds",
    ).rows
    rows = database.query(
        f"""SELECT s.*,
          (SELECT count(*) FROM item_streams AS m
            WHERE m.feed_id = s.feed_id AND m.stream = s.name) AS members,
          (SELECT max(min(i.pub_date, i.created_at))
            FROM item_streams AS m CROSS JOIN items AS i ON i.id = m.item_id
            WHERE m.feed_id = s.feed_id AND m.stream = s.name) AS newest_at
        FROM streams AS s WHERE {condition}""",
        params,
        name="read streams",
    ).rows
    known = {(row["feed_id"], row["name"]): row for row in rows}
    return [
        _state(row["id"], spec, known[row["id"], spec.name])
        for row in feeds
        for spec in streams_of_json(row["streams"])
        if (row["id"], spec.name) in known
    ]


def _state(feed_id: str, spec: StreamSpec, row: Row) -> StreamState:
    return StreamState(
        feed_id=feed_id,
        spec=spec,
        members=int(row["members"] or 0),
        newest_at=from_instant(row["newest_at"]),
        matched_at=from_instant(row["matched_at"]),
        unmatched_documents=int(row["unmatched_documents"]),
        values_seen=tuple(json.loads(row["values_seen"] or "[]")),
        error=row["error"],
        is_judged=row["selector_hash"] == row["registered_hash"] == spec.selector_hash,
    )
