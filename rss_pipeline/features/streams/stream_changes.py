"""Streams with items that came in since they were last reported. Reads only.

The members themselves are storage.items', the events in Dagster features/streams/report.py's.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.sql import compact


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
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
    database: Database, known: Iterable[Known], *, everything: bool = False
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
