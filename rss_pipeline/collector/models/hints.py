"""Hints of a publisher on how often its feed changes and when not to request it.

One value from the parsed document to the next visit; its columns are in storage.feeds.feed_row, its effect is
in collector.schedule.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherHints:
    """The hints of a feed's last document and of the answer that brought it."""

    max_age: int | None = None
    """Seconds for which that answer, or a later 304, said it stays fresh."""
    ttl: timedelta | None = None
    """The interval of `<ttl>`, else of sy:updatePeriod."""
    updates: tuple[datetime, ...] = ()
    """Publication times of the newest items, newest first."""
    skip_hours: frozenset[int] = frozenset()
    """UTC hours 0 to 23 without requests (RSS skipHours)."""
    skip_days: frozenset[int] = frozenset()
    """Weekdays without requests, Monday 0 (RSS skipDays)."""
