"""Changes of feeds that are worth an event, and marks of those that are reported.

The closing statements count a change (closings.py); Dagster's events are made in orchestration.reporting.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.visit_facts import VisitFacts, facts_from
from rss_pipeline.storage.sql import chunked, compact


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A feed's last change with its facts, and the feed's state now."""

    feed_id: str
    title: str | None
    count: int
    is_reported: bool
    is_of_last_visit: bool
    """False where a visit since then changed nothing."""
    facts: VisitFacts
    items_version: str | None
    url: str
    link: str | None
    next_fetch_at: str
    schedule_reason: str | None
    fetch_url: str | None
    move_url: str | None
    gaps: int
    last_visited_at: str | None
    last_error_kind: str | None
    last_error: str | None
    warning: str | None
    """A sentence on the newest document."""


def unreported(database: Database, *, most: int | None = None) -> list[Change]:
    """Changes that are not reported yet, the oldest first: all of them, or so many."""
    return _changes(database, "change_count > reported_count", [], most=most)


def has_unreported(database: Database) -> bool:
    """Some feed's change has no event yet."""
    sql = "SELECT EXISTS (SELECT 1 FROM feeds WHERE change_count > reported_count) AS found"
    return bool(database.query(sql, name="find unreported changes").rows[0]["found"])


def count_unreported(database: Database) -> int:
    """The number of feeds whose change has no event yet."""
    sql = "SELECT count(*) AS n FROM feeds WHERE change_count > reported_count"
    return int(database.query(sql, name="count unreported changes").rows[0]["n"])


def last_changes(database: Database, ids: Sequence[str]) -> dict[str, Change]:
    """The last change of each of these feeds, reported or not; unknown ids are left out."""
    found = _changes(database, "id IN (SELECT value FROM json_each(?))", [compact(list(ids))])
    return {change.feed_id: change for change in found}


def _changes(
    database: Database, where: str, params: Sequence[str], *, most: int | None = None
) -> list[Change]:
    rows = database.query(
        f"""SELECT id, title, url, link, change_count, reported_count, changed_at, last_change, items_version,
        next_fetch_at, schedule_reason, fetch_url, move_url, gaps, last_visited_at, last_error_kind,
        last_error, warning FROM feeds
        WHERE {where} ORDER BY changed_at, id{"" if most is None else f" LIMIT {most}"}""",
        params,
        name="read changes",
    ).rows
    return [
        Change(
            feed_id=row["id"],
            title=row["title"],
            count=int(row["change_count"]),
            is_reported=row["change_count"] <= row["reported_count"],
            is_of_last_visit=row["changed_at"] is not None and row["changed_at"] == row["last_visited_at"],
            facts=facts_from(json.loads(row["last_change"] or "{}")),
            items_version=row["items_version"],
            url=row["url"],
            link=row["link"],
            next_fetch_at=row["next_fetch_at"],
            schedule_reason=row["schedule_reason"],
            fetch_url=row["fetch_url"],
            move_url=row["move_url"],
            gaps=int(row["gaps"]),
            last_visited_at=row["last_visited_at"],
            last_error_kind=row["last_error_kind"],
            last_error=row["last_error"],
            warning=row["warning"],
        )
        for row in rows
    ]


def mark_reported(database: Database, reported: Iterable[Change], *, now: datetime) -> None:
    """Mark these changes as reported: Dagster has an event for each. What came after one of them was read
    was added to its items, and reports only its own."""
    rows = (compact([each.feed_id, each.count, each.facts.items_new or 0]) for each in reported)
    for chunk in chunked(rows):
        database.query(
            f"""UPDATE feeds
            SET reported_count = max(reported_count, {_COUNT}), reported_at = ?,
            last_change = CASE WHEN reported_count < {_COUNT} AND change_count > {_COUNT}
              THEN json_set(last_change, '$.items_new', max(0,
                coalesce(CAST(json_extract(last_change, '$.items_new') AS INTEGER), 0)
                - CAST(json_extract(j.value, '$[2]') AS INTEGER)))
              ELSE last_change END
            FROM json_each(?) AS j WHERE feeds.id = json_extract(j.value, '$[0]')""",
            [instant(now), chunk],
            name="mark reported",
        )


_COUNT = "CAST(json_extract(j.value, '$[1]') AS INTEGER)"


def mark_failures_reported(database: Database, reported: Iterable[tuple[str, str]]) -> None:
    """Mark the failures of these feeds, each a feed id and a failure kind, as reported: Dagster has an event
    for each. A feed with a success since then stays as it is."""
    for chunk in chunked(compact(pair) for pair in reported):
        database.query(
            """UPDATE feeds SET failure_reported_kind = json_extract(j.value, '$[1]'),
            failure_reported_at = last_visited_at FROM json_each(?) AS j
            WHERE feeds.id = json_extract(j.value, '$[0]') AND consecutive_failures > 0""",
            [chunk],
            name="mark failures reported",
        )


def report_again(database: Database, ids: Sequence[str]) -> None:
    """Count the last change and the last failure of each of these feeds as unreported, and its items as no
    news any more.

    For a Dagster instance without events for them; a change that is unreported already stays as it is.
    """
    for chunk in chunked(map(compact, ids)):
        database.query(
            """UPDATE feeds SET reported_count = change_count - 1,
            last_change = json_set(coalesce(last_change, '{}'), '$.items_new', 0)
            WHERE id IN (SELECT value FROM json_each(?)) AND change_count > 0
              AND reported_count >= change_count""",
            [chunk],
            name="report again",
        )
        database.query(
            """UPDATE feeds SET failure_reported_kind = NULL, failure_reported_at = NULL
            WHERE id IN (SELECT value FROM json_each(?)) AND failure_reported_at IS NOT NULL""",
            [chunk],
            name="report failures again",
        )


def ever_changed(database: Database) -> list[str]:
    """Ids of the feeds with a change since they were added: each has a materialization, or had one."""
    return [
        row["id"]
        for row in database.query(
            "SELECT id FROM feeds WHERE change_count > 0", name="find changed feeds"
        ).rows
    ]
