"""The extent of cleans: the numbers of items and of those that cleans removed, the days with visits.

What that means is pipeline.retention.refusal's. The removals are a row of `installation`, which is copied
with the rest: a copy is cleaned like its source.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Database, Value
from rss_pipeline.storage.feeds.predicates import POLLED
from rss_pipeline.storage.sql import compact

KEPT = timedelta(days=28)
_FEEDS_LOOKED_AT = 50
"""The oldest ones: a feed that came after a jump of the clock shows no visit before it."""
_NAME = "cleans"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """The cleans of the last weeks that removed items."""

    cleans: Sequence[tuple[datetime, int]] = ()
    """The time of each, by the clock of its machine, and the number of items."""
    confirmed: datetime | None = None
    """The last one that a person confirmed; what was removed before it counts no more."""

    def since(self, at: datetime) -> int:
        """The items that were removed since then."""
        return sum(number for when, number in self.cleans if when >= at)

    def and_now(self, removed: int, now: datetime) -> "Removals":
        """These and what was removed now. The times of a clock that was ahead become the present."""
        cleans = [(min(when, now), number) for when, number in self.cleans if when >= now - KEPT]
        return Removals(
            cleans=[*cleans, (now, removed)] if removed else cleans,
            confirmed=None if self.confirmed is None else min(self.confirmed, now),
        )


def read_removals(database: Database) -> Removals:
    """The removals that are written down."""
    rows = database.query(
        "SELECT value FROM installation WHERE name = ?", [_NAME], name="read what cleans removed"
    ).rows
    if not rows:
        return Removals()
    kept = json.loads(rows[0]["value"])
    return Removals(
        cleans=[(datetime.fromisoformat(when), int(number)) for when, number in kept["cleans"]],
        confirmed=from_instant(kept["confirmed"]),
    )


def write_removals(database: Database, removals: Removals) -> None:
    """Write these down in place of what is written."""
    kept = {
        "cleans": [[instant(when), number] for when, number in removals.cleans],
        "confirmed": None if removals.confirmed is None else instant(removals.confirmed),
    }
    database.query(
        """INSERT INTO installation (name, value) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value""",
        [_NAME, compact(kept)],
        name="write what cleans removed",
    )


def count_items(database: Database, *, most: int, before: datetime | None = None) -> int:
    """The number of items, or of those that were collected before then; at most `most`, for each is a row
    that is read."""
    where, params = ("", []) if before is None else ("WHERE created_at < ?", [instant(before)])
    bound: list[Value] = [*params, most]
    rows = database.query(
        f"SELECT count(*) AS n FROM (SELECT 1 AS one FROM items {where} LIMIT ?) AS counted",
        bound,
        name="count items",
    ).rows
    return int(rows[0]["n"])


def days_visited(database: Database) -> set[date]:
    """Days on which feeds were visited: all of the last 28, and some before them."""
    rows = database.query(
        f"""SELECT visit_days FROM feeds WHERE {POLLED} AND visit_days IS NOT NULL
        ORDER BY created_at LIMIT {_FEEDS_LOOKED_AT}""",
        name="read days with visits",
    ).rows
    return {date.fromisoformat(day) for row in rows for day, *_ in json.loads(row["visit_days"]).values()}
