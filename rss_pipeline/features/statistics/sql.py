"""Counts by time of a user's feeds: items that came in, hours of publication, outcomes of visits; and sizes.

Every statement only reads. Counts go from the user's subscriptions, and over a window. What came in is
counted in an index; rows of items are read for their dates alone, of few weeks. A day begins at the midnight
of `local`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import pairwise

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope

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
class DayWindow:
    """Days to count, from the midnight of the first one on, in steps of a day or a week."""

    first: date
    step: int
    """Days."""
    begins: Sequence[datetime] = field(repr=False)
    """The midnights at which steps begin, and at last the end of the last step."""
    shifts: Shifts = field(repr=False)

    @property
    def since(self) -> datetime:
        return self.begins[0]


_RECENT = "i.feed_id = s.feed_id AND i.created_at >= {since} AND i.created_at IS NOT f.first_stored_at"


def came_since(user_id: str, since: datetime, *, scope: Scope = ALL) -> Statement:
    """A query for the number of items that came in, without first documents, for `items_since`."""
    condition, params = scope.of(user_id)
    return Statement(
        f"""SELECT sum((SELECT count(*) FROM items AS i INDEXED BY items_age
          WHERE {_RECENT.format(since="?")})) AS items
        FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id WHERE {condition}""",
        [instant(since), *params],
        name="count recent items",
    )


def items_since(result: Result) -> int:
    """The result of `came_since`."""
    return int(result.rows[0]["items"] or 0)


def came_in(user_id: str, window: DayWindow, *, scope: Scope = ALL) -> list[Statement]:
    """Queries for the items of each feed by step, for `came`.

    An item counts on the day on which it was fetched. Those of a feed's first document were there before, and
    count on the day of their own date.
    """
    condition, params = scope.of(user_id)
    steps = compact(list(pairwise(map(instant, window.begins))))
    since = instant(window.since)
    return [
        Statement(
            # A range of the index for each feed and step: to group all by date takes three times as long.
            f"""WITH steps(step, begins, ends) AS MATERIALIZED (
              SELECT CAST(key AS INTEGER), json_extract(value, '$[0]'), json_extract(value, '$[1]')
              FROM json_each(?))
            SELECT s.feed_id, (SELECT json_group_array((SELECT count(*) FROM items AS i INDEXED BY items_age
                WHERE {_RECENT.format(since="steps.begins")} AND i.created_at < steps.ends))
              FROM steps) AS counts
            FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id WHERE {condition}""",
            [steps, *params],
            name="count items that came in",
        ),
        Statement(
            f"""SELECT feed_id, CAST(julianday(date({local("at", window.shifts)})) - julianday(?) AS INTEGER)
              / {window.step} AS step, count(*) AS n
            FROM (SELECT s.feed_id, min(i.pub_date, i.created_at) AS at
              FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
              CROSS JOIN items AS i INDEXED BY items_age
                ON i.feed_id = s.feed_id AND i.created_at = f.first_stored_at
              WHERE {condition} AND +f.first_stored_at >= ?)
            WHERE at >= ? GROUP BY feed_id, step""",
            [window.first.isoformat(), *params, since, since],
            name="count items of first documents",
        ),
    ]


def came(counted: Result, of_first: Result) -> list[Came]:
    """The results of the queries of `came_in`, in their order; feeds without an item are left out."""
    counts: dict[str, dict[int, int]] = {}
    for row in counted.rows:
        counts[row["feed_id"]] = {step: int(n) for step, n in enumerate(json.loads(row["counts"])) if n}
    for row in of_first.rows:
        feed, step = counts[row["feed_id"]], int(row["step"])
        feed[step] = feed.get(step, 0) + int(row["n"])
    return [Came(feed_id=id, counts=steps) for id, steps in counts.items() if steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOfFeed:
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


def stored(result: Result) -> dict[str, StoredOfFeed]:
    """The result of `stored_items`, by feed."""
    return {
        row["feed_id"]: StoredOfFeed(
            items=None if row["items"] is None else int(row["items"]),
            last_came_at=from_instant(row["last"]),
        )
        for row in result.rows
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedHours:
    """The hours at which items were published, by their own dates, as far as these have a time."""

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
          WHERE {condition})
        WHERE min(at, created_at) >= ? AND min(at, created_at) < ? GROUP BY place""",
        [instant(since), *params, instant(since), instant(until)],
        name="count items by hour",
    )


def published(result: Result) -> PublishedHours:
    """The result of `hours_of`."""
    by_place = {row["place"]: int(row["n"]) for row in result.rows}
    undated, at_midnight = by_place.pop("undated", 0), by_place.pop("midnight", 0)
    counts = {}
    for place, n in by_place.items():
        day, hour = map(int, place.split())
        # SQLite's week begins on Sunday.
        counts[(day - 1) % 7, hour] = n
    return PublishedHours(counts=counts, undated=undated, at_midnight=at_midnight)


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


def visits_of(user_id: str, *, scope: Scope = ALL) -> Statement:
    """A query for the visits of feeds, for `visit_days`."""
    condition, params = scope.of(user_id)
    # Added up by the reader: JSON takes the database ten times as long.
    return Statement(
        f"""SELECT f.visit_days FROM subscriptions AS s CROSS JOIN feeds AS f ON f.id = s.feed_id
        WHERE {condition} AND f.visit_days IS NOT NULL""",
        params,
        name="read visits by day",
    )


def visit_days(result: Result, *, since: date) -> list[VisitDay]:
    """The result of `visits_of`, from this day on, added up; days without a visit are left out."""
    sums: dict[str, list[int]] = {}
    for row in result.rows:
        for day, *counts in json.loads(row["visit_days"]).values():
            sums[day] = [a + b for a, b in zip(sums.get(day, (0, 0, 0)), counts, strict=True)]
    return [
        VisitDay(day=date.fromisoformat(day), news=news, unchanged=unchanged, failed=failed)
        for day, (news, unchanged, failed) in sorted(sums.items())
        if day >= since.isoformat()
    ]


# The room that the items and images of a feed take. Bytes of content are in the rows, so the newest items
# alone are added up.

NEWEST_ITEMS = 5_000
"""The most items of a feed that are added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRoom:
    """The number of a feed's newest items, and the sizes of their texts and images."""

    items: int
    text_bytes: int
    images_archived: int
    image_bytes: int
    images_pending: int
    images_failed: int


def _bytes(column: str) -> str:
    # The length of a text is in characters.
    return f"coalesce(length(CAST(i.{column} AS BLOB)), 0)"


def room_of(user_id: str, feed_id: str) -> Statement:
    """A query for the room that a feed of this user takes, for `feed_room`."""
    return Statement(
        f"""WITH newest AS MATERIALIZED (
          SELECT i.id, {_bytes("title")} + {_bytes("content_html")} + {_bytes("summary")} AS bytes
          FROM subscriptions AS s CROSS JOIN items AS i INDEXED BY items_of_feed ON i.feed_id = s.feed_id
          WHERE s.user_id = ? AND s.feed_id = ? ORDER BY i.arrived DESC LIMIT {NEWEST_ITEMS})
        SELECT (SELECT count(*) FROM newest) AS items, (SELECT sum(bytes) FROM newest) AS text_bytes,
          count(*) FILTER (WHERE t.status = 'success') AS archived, sum(t.bytes) AS image_bytes,
          count(*) FILTER (WHERE t.status = 'pending') AS pending,
          count(*) FILTER (WHERE t.status = 'failed') AS failed
        FROM newest CROSS JOIN image_tasks AS t INDEXED BY image_tasks_item ON t.item_id = newest.id""",
        [user_id, feed_id],
        name="measure a feed",
    )


def feed_room(result: Result) -> FeedRoom:
    """The result of `room_of`."""
    row = result.rows[0]
    return FeedRoom(
        items=int(row["items"]),
        text_bytes=int(row["text_bytes"] or 0),
        images_archived=int(row["archived"] or 0),
        image_bytes=int(row["image_bytes"] or 0),
        images_pending=int(row["pending"] or 0),
        images_failed=int(row["failed"] or 0),
    )
