"""The feeds of a user that fail: since when, why, what to do, and when they are visited next.

A pure function of the user's list of feeds. Such a feed stays subscribed, and the back-off goes to a day.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.pipeline.reading.advice import PRIVATE, shown_error, what_to_do
from rss_pipeline.storage.subscriptions.listing import FeedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingFeed:
    """A subscribed feed with a failed last visit."""

    feed_id: str
    title: str
    """The URL where it has none."""
    url: str
    since: datetime
    """The first of these failures."""
    error_kind: str
    error: str
    """The error of the last visit. It does not say what is in a private network."""
    full_error: str | None
    """For the owner, where it says more. Nor does it say what is in a private network."""
    what_to_do: str
    next_visit: datetime


def failing_feeds(rows: Iterable[FeedRow]) -> list[FailingFeed]:
    """The feeds of a user that fail; the one that began to fail last comes first."""
    found = [_failing(row) for row in rows if row.last_visit_failed]
    return sorted(found, key=lambda feed: (feed.since, feed.feed_id), reverse=True)


def _failing(row: FeedRow) -> FailingFeed:
    kind = row.error_kind or "unknown"
    error = shown_error(kind, row.error) or "The last visit failed."
    return FailingFeed(
        feed_id=row.feed_id,
        title=row.title or row.url,
        url=row.url,
        since=row.failing_since or row.added_at,
        error_kind=kind,
        error=error,
        full_error=None if error in (row.error, PRIVATE) else row.error,
        what_to_do=what_to_do(kind),
        next_visit=row.next_visit,
    )
