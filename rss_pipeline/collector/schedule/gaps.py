"""Gaps, where items were probably missed: documents that can show one, and how the interval gets shorter.

Pure functions. The closing statement finds out that all items of a document are new (storage.feeds.closings).
"""

from dataclasses import replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.feed import Feed, GapHistory

LATE = timedelta(minutes=15)
"""A visit this late still counts as in time: a poll starts some minutes after a feed is due."""
MOST_HALVINGS = 3
RECOVERY = timedelta(days=7)
"""Time after which one halving is taken back."""
VISITS_BETWEEN = 12


def may_show_gap(feed: Feed, *, items: int, now: datetime) -> bool:
    """Return True if a document of so many items, all of them new, means that items were missed because the
    last visit was too long ago.

    Not the first document, nor one next to a document that is empty or of unknown length. Not one of a single
    item, or after one: a feed that lists only its latest item says nothing about those in between. And not
    after failures or a hold: they do not show that the interval was too long.
    """
    schedule = feed.schedule
    before = schedule.items_listed
    if before is None or before < 2 or items < 2:
        return False
    if feed.failures.in_a_row or schedule.last_success_at is None or schedule.planned_at is None:
        return False
    planned = max(schedule.planned_at - schedule.last_success_at, timedelta(0))
    return now - schedule.last_success_at <= 2 * planned + LATE


def halvings(history: GapHistory, *, now: datetime) -> int:
    """The number of times the interval is to be halved at `now`."""
    if history.halved_at is None:
        return 0
    return max(history.halvings - max(now - history.halved_at, timedelta(0)) // RECOVERY, 0)


def after_gap(feed: Feed, *, now: datetime) -> GapHistory:
    """The history of a feed that shows a gap now.

    One halving more, but not after a dozen visits without a gap: those were near enough, and this publisher
    replaces its whole document at once, as a daily edition does.
    """
    history = feed.schedule.gaps
    counted = replace(history, count=history.count + 1, last_at=now)
    in_force = halvings(history, now=now)
    last_success = feed.schedule.last_success_at
    if in_force and history.last_at is not None and last_success is not None:
        since_visit = max(now - last_success, timedelta(minutes=1))
        if now - history.last_at > VISITS_BETWEEN * since_visit:
            return counted
    return replace(counted, halvings=min(in_force + 1, MOST_HALVINGS), halved_at=now)
