"""Rows of the feeds table to values, and back to what a statement binds.

No statements stand here.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hints import PublisherHints
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.sql import compact, seconds


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the feeds table, and how a value's field is read from it and written to it."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


HINTS: Mapping[str, Column] = {
    "max_age": Column("max_age", lambda value: None if value is None else int(value), lambda value: value),
    "ttl": Column("ttl", lambda value: _seconds(value), lambda value: seconds(value)),
    "updates": Column(
        "rhythm",
        lambda text: tuple(filter(None, map(from_instant, _list(text)))),
        lambda times: compact([instant(at) for at in times]),
    ),
    "skip_hours": Column("skip_hours", lambda text: _numbers(text), lambda hours: compact(sorted(hours))),
    "skip_days": Column("skip_days", lambda text: _numbers(text), lambda days: compact(sorted(days))),
}
"""A column for each field of `PublisherHints`."""
HINT_COLUMNS = tuple(column.name for column in HINTS.values())

FEED_COLUMNS = (
    "id, url, host, title, link, fetch_url, interval, item_key, images, allow_private, needs_access,"
    " last_etag, last_modified, validators_url, content_hash, failed_hash, last_error_kind, last_error,"
    " charset, language, consecutive_failures, unclosed_claims, next_fetch_at, last_fetched_at,"
    " last_visited_at, last_success_at, last_body_at, created_at, host_answered,"
    " backup_unsure, images_pending, move_url, move_since, items_listed,"
    " planned_at, gaps, last_gap_at, gap_halvings, halved_at, "
) + ", ".join(HINT_COLUMNS)


def feed_of(row: Row) -> Feed:
    """A `Feed` of a row with FEED_COLUMNS. Numbers may come as doubles (D1)."""
    return Feed(
        id=row["id"],
        url=row["url"],
        host=row["host"],
        title=row["title"],
        link=row["link"],
        fetch_url=row["fetch_url"],
        interval=_seconds(row["interval"]),
        key=row["item_key"],
        images=bool(row["images"]),
        allow_private=bool(row["allow_private"]),
        needs_access=bool(row["needs_access"]),
        last_etag=row["last_etag"],
        last_modified=row["last_modified"],
        validators_url=row["validators_url"],
        content_hash=row["content_hash"],
        failed_hash=row["failed_hash"],
        last_error_kind=row["last_error_kind"],
        last_error=row["last_error"],
        charset=row["charset"],
        language=row["language"],
        consecutive_failures=int(row["consecutive_failures"]),
        unclosed_claims=int(row["unclosed_claims"]),
        backup_unsure=bool(row["backup_unsure"]),
        images_pending=bool(row["images_pending"]),
        next_fetch_at=from_instant(row["next_fetch_at"]),
        last_fetched_at=from_instant(row["last_fetched_at"]),
        last_visited_at=from_instant(row["last_visited_at"]),
        last_success_at=from_instant(row["last_success_at"]),
        last_body_at=from_instant(row["last_body_at"]),
        created_at=from_instant(row["created_at"]),
        host_answered=bool(row["host_answered"]),
        hints=hints_of(row),
        move_url=row["move_url"],
        move_since=from_instant(row["move_since"]),
        items_listed=None if row["items_listed"] is None else int(row["items_listed"]),
        planned_at=from_instant(row["planned_at"]),
        gaps=int(row["gaps"]),
        last_gap_at=from_instant(row["last_gap_at"]),
        gap_halvings=int(row["gap_halvings"]),
        halved_at=from_instant(row["halved_at"]),
    )


def hints_of(row: Row) -> PublisherHints:
    """The hints of a row with HINT_COLUMNS."""
    return PublisherHints(**{field: column.read(row[column.name]) for field, column in HINTS.items()})


def hints_row(hints: PublisherHints) -> Row:
    """The values of HINT_COLUMNS."""
    return {column.name: column.write(getattr(hints, field)) for field, column in HINTS.items()}


def _numbers(text: str | None) -> frozenset[int]:
    return frozenset(map(int, _list(text)))


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _list(text: str | None) -> list[Any]:
    return [] if text is None else list(json.loads(text))
