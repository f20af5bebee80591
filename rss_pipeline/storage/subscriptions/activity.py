"""What came in of a user's feeds, when they publish, and how their visits went: counts by time. Reads only.

Every query goes from the user's subscriptions, and over a window. What came in is counted in an index; rows
of items are read for their dates alone, of few weeks. Whose midnight a day begins at is `local`'s.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import pairwise

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope

MOST_ITEMS = 100_000
"""The most items that one query looks at: what it costs stays bounded, whatever a publisher does."""

Shifts = Sequence[tuple[datetime, int]]
"""The offsets of a zone from UTC: instants, growing, and the seconds from each on. The first one also holds
before its instant."""


def local(at: str, shifts: Shifts) -> str:
    """SQL for the local time of an instant, as a modifier behind `at`: `{at}, '+3600 seconds'`."""
    shift = f"'{shifts[-1][1]:+d} seconds'"
    if len(shifts) > 1:
        before = [
            f"WHEN {at} < '{instant(until)}' THEN '{seconds:+d} seconds'"
            for (_, seconds), (until, _) in pairwise(shifts)
        ]
        shift = f"CASE {' '.join(before)} ELSE {shift} END"
    return f"{at}, {shift}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """The items that came in of one feed."""

    feed_id: str
    counts: Mapping[int, int]
    """Steps since the first day to items; steps without any are left out."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Days to count: from the midnight of the first one, `since`, on. A count is of `step` days."""

    first: date
    since: datetime
    step: int
    shifts: Shifts = field(repr=False)


def came_in(user_id: str, window: Window, *, scope: Scope = ALL) -> Statement:
    """A query for the items of each feed by day, for `came`.

    An item counts on the day on which it was fetched. Those of a feed's first document were there before, and
    count on the day of their own date.
    """
    condition, params = scope.of(user_id)
    # The date is in the row, and the rest in the index: only rows of first documents are read.
    return Statement(
        f"""SELECT feed_id, json_group_object(step, n) AS counts FROM (
          SELECT feed_id, CAST(julianday(day) - julianday(?) AS INTEGER) / {window.step} AS step,
            count(*) AS n
          FROM (SELECT feed_id, date({local("at", window.shifts)}) AS day FROM (
            SELECT s.feed_id, CASE WHEN i.created_at = f.first_stored_at THEN min(i.pub_date, i.created_at)
              ELSE i.created_at END AS at
            FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
            CROSS JOIN items AS i INDEXED BY items_age ON i.feed_id = s.feed_id AND i.created_at >= ?
            WHERE {condition} LIMIT {MOST_ITEMS + 1}) WHERE at >= ?)
          GROUP BY feed_id, step) GROUP BY feed_id""",
        [window.first.isoformat(), instant(window.since), *params, instant(window.since)],
        name="count items that came in",
    )


def came(result: Result) -> list[Came]:
    """What `came_in` found; feeds without an item are left out."""
    return [
        Came(
            feed_id=row["feed_id"],
            counts={int(step): int(n) for step, n in json.loads(row["counts"]).items()},
        )
        for row in result.rows
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The items that are stored of one feed."""

    items: int | None
    """None where they were not counted."""
    last_came_at: datetime | None
    """The time at which the last one was fetched."""


def stored_items(user_id: str, *, are_counted: bool, scope: Scope = ALL) -> Statement:
    """A query for the items of each feed, from indexes, for `stored`.

    `are_counted`: an entry of an index is read for each item; else one for each feed.
    """
    condition, params = scope.of(user_id)
    counted = "(SELECT count(*) FROM items AS i INDEXED BY items_of_feed WHERE i.feed_id = s.feed_id)"
    return Statement(
        f"""SELECT s.feed_id, {counted if are_counted else "NULL"} AS items,
          (SELECT max(i.created_at) FROM items AS i INDEXED BY items_age WHERE i.feed_id = s.feed_id) AS last
        FROM subscriptions AS s WHERE {condition}""",
        params,
        name="read stored items of feeds",
    )


def stored(result: Result) -> dict[str, Stored]:
    """What `stored_items` found, by feed."""
    return {
        row["feed_id"]: Stored(
            items=None if row["items"] is None else int(row["items"]),
            last_came_at=from_instant(row["last"]),
        )
        for row in result.rows
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """When items were published: by their own dates, as far as these have a time."""

    counts: Mapping[tuple[int, int], int]
    """Day of the week (0 is Monday) and hour to items, in local time."""
    undated: int
    """Items without a date, or with one in the future."""
    at_midnight: int
    """Items of 00:00:00 UTC, as which a date without a time is stored."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def hours_of(
    user_id: str, *, since: datetime, until: datetime, shifts: Shifts, scope: Scope = ALL
) -> Statement:
    """A query for the hours at which items of these weeks were published, for `published`."""
    condition, params = scope.of(user_id)
    return Statement(
        f"""SELECT CASE WHEN at >= created_at THEN 'undated'
            WHEN substr(at, 12, 8) = '00:00:00' THEN 'midnight'
            ELSE strftime('%w %H', {local("at", shifts)}) END AS place, count(*) AS n
        FROM (SELECT i.pub_date AS at, i.created_at
          FROM subscriptions AS s CROSS JOIN items AS i INDEXED BY items_age
            ON i.feed_id = s.feed_id AND i.created_at >= ?
          WHERE {condition} LIMIT {MOST_ITEMS})
        WHERE min(at, created_at) >= ? AND min(at, created_at) < ? GROUP BY place""",
        [instant(since), *params, instant(since), instant(until)],
        name="count items by hour",
    )


def published(result: Result) -> Published:
    """What `hours_of` found."""
    by_place = {row["place"]: int(row["n"]) for row in result.rows}
    undated, at_midnight = by_place.pop("undated", 0), by_place.pop("midnight", 0)
    counts = {}
    for place, n in by_place.items():
        day, hour = map(int, place.split())
        # SQLite's week begins on Sunday.
        counts[(day - 1) % 7, hour] = n
    return Published(counts=counts, undated=undated, at_midnight=at_midnight)


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitDay:
    """The visits of one day (UTC)."""

    day: date
    news: int
    """Visits that brought a new item."""
    unchanged: int
    failed: int


VISIT_DAYS = 28
"""Days of visits that every feed has, today included (migration 0027)."""


def visits_of(user_id: str, *, since: date, scope: Scope = ALL) -> Statement:
    """A query for the visits of feeds by day, for `visit_days`."""
    condition, params = scope.of(user_id)
    return Statement(
        f"""SELECT json_extract(v.value, '$[0]') AS day, sum(json_extract(v.value, '$[1]')) AS news,
          sum(json_extract(v.value, '$[2]')) AS unchanged, sum(json_extract(v.value, '$[3]')) AS failed
        FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
        CROSS JOIN json_each(f.visit_days) AS v
        WHERE {condition} AND day >= ? GROUP BY day ORDER BY day""",
        [*params, since.isoformat()],
        name="count visits by day",
    )


def visit_days(result: Result) -> list[VisitDay]:
    """What `visits_of` found; days without a visit are left out."""
    return [
        VisitDay(
            day=date.fromisoformat(row["day"]),
            news=int(row["news"]),
            unchanged=int(row["unchanged"]),
            failed=int(row["failed"]),
        )
        for row in result.rows
    ]
