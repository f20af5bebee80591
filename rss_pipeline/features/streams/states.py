"""The streams with their items and what documents showed of them, for people and for reports. Reads only."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.features.streams.model import SELECTOR_FIELDS, FieldSelector, StreamSpec, streams_of_json
from rss_pipeline.features.streams.sql import UNMATCHED_DOCUMENTS
from rss_pipeline.storage.database import Database, Row, Value
from rss_pipeline.storage.sql import compact


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


# Streams with items that came in since they were last reported.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedStream:
    """A stream as it was last reported."""

    feed_id: str
    stream: str
    collected_until: str = ""
    """The instant at which its newest member was collected; empty if it was never reported."""
    members: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamChange:
    """A stream now, and what is new of it."""

    feed_id: str
    stream: str
    members: int
    items_new: int
    """Members collected since; for `everything`, the members more than there were."""
    collected_until: str
    newest_item: datetime | None
    """The date of its newest item, at most the time of its arrival."""
    matched_at: datetime | None
    """The time of the last document in which it found an item."""
    selector_hash: str
    """The selector by which all its items were judged; empty if there is none."""

    @property
    def key(self) -> str:
        return f"{self.feed_id}/{self.stream}"


def stream_changes(
    database: Database, known: Iterable[ReportedStream], *, everything: bool = False
) -> list[StreamChange]:
    """The streams among these in which items came in; all of them with `everything`, also without news.

    Of items only new ones are read, and of a stream with news its members.
    """
    known = list(known)
    if not known:
        return []
    before = {(each.feed_id, each.stream): each.members for each in known}
    rows = database.query(
        _CHANGES,
        [
            compact([[each.feed_id, each.stream, each.collected_until] for each in known]),
            int(everything),
        ],
        name="read changed streams",
    ).rows
    found = []
    for row in rows:
        members, collected_until, newest = json.loads(row["state"])
        more = max(0, members - before[row["feed_id"], row["stream"]])
        found.append(
            StreamChange(
                feed_id=row["feed_id"],
                stream=row["stream"],
                members=members,
                items_new=more if everything else int(row["items_new"]),
                collected_until=collected_until or "",
                newest_item=from_instant(newest),
                matched_at=from_instant(row["matched_at"]),
                selector_hash=row["selector_hash"] or "",
            )
        )
    return found


_CHANGES = """WITH wanted(feed_id, stream, since) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
    FROM json_each(?)),
  reported(feed_id, since) AS MATERIALIZED (
    SELECT feed_id, min(since) FROM wanted WHERE since <> '' GROUP BY feed_id),
  news(feed_id, stream, items_new) AS (
    SELECT m.feed_id, m.stream, count(*)
    FROM reported CROSS JOIN items AS i INDEXED BY items_age
      ON i.feed_id = reported.feed_id AND i.created_at > reported.since
    CROSS JOIN item_streams AS m ON m.item_id = i.id
    JOIN wanted AS w ON w.feed_id = m.feed_id AND w.stream = m.stream
    WHERE w.since <> '' AND i.created_at > w.since GROUP BY m.feed_id, m.stream
    UNION ALL
    SELECT m.feed_id, m.stream, count(*)
    FROM wanted AS w CROSS JOIN item_streams AS m ON m.feed_id = w.feed_id AND m.stream = w.stream
    WHERE w.since = '' GROUP BY m.feed_id, m.stream)
  SELECT s.feed_id, s.name AS stream, news.items_new, s.matched_at, s.selector_hash,
    (SELECT json_array(count(*), max(i.created_at), max(min(i.pub_date, i.created_at)))
     FROM item_streams AS m CROSS JOIN items AS i ON i.id = m.item_id
     WHERE m.feed_id = s.feed_id AND m.stream = s.name) AS state
  FROM wanted CROSS JOIN streams AS s ON s.feed_id = wanted.feed_id AND s.name = wanted.stream
  LEFT JOIN news ON news.feed_id = s.feed_id AND news.stream = s.name
  WHERE news.items_new > 0 OR ? = 1 ORDER BY s.feed_id, s.name"""


# The members of a feed's streams, all at once.


def stored_members(database: Database, feed_id: str) -> dict[str, frozenset[str]]:
    """The ids of the items of each stream of a feed, as they are stored."""
    found: dict[str, set[str]] = {}
    for row in database.query(
        "SELECT stream, item_id FROM item_streams WHERE feed_id = ?",
        [feed_id],
        name="read members of streams",
    ).rows:
        found.setdefault(row["stream"], set()).add(row["item_id"])
    return {name: frozenset(ids) for name, ids in found.items()}
