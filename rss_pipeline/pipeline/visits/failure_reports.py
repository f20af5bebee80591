"""The failed visits that are worth an event in Dagster. Pure.

The events are made in orchestration.reporting; what was reported is marked by storage.feeds.feed_changes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import NOT_ANSWERING_FAILURES, FailureHistory
from rss_pipeline.pipeline.visits.visit import Visit

AGAIN_AFTER = timedelta(days=1)


def to_report(visits: Sequence[Visit], *, now: datetime) -> list[tuple[Visit, Failure]]:
    """The failed and closed visits of feeds with a new kind of failure, or one last reported a day ago."""
    return [
        (visit, visit.outcome)
        for visit in visits
        if isinstance(visit.outcome, Failure)
        and visit.next is not None
        and not visit.lost
        and _is_owed(visit.feed.failures, visit.outcome, now)
    ]


def _is_owed(before: FailureHistory, failure: Failure, now: datetime) -> bool:
    reported_at = before.reported_at
    if reported_at is None or before.reported_kind != failure.kind:
        return True
    # A report later than now is that of a clock that was wrong.
    if not timedelta() <= now - reported_at < AGAIN_AFTER:
        return True
    # After a success the UI shows that, and no longer the failures before it. But a feed that fails at every
    # other visit would get an event at each of them.
    is_hidden = before.since is not None and reported_at < before.since
    return is_hidden and before.in_a_row + 1 >= NOT_ANSWERING_FAILURES
