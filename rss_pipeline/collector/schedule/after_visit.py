"""The one answer to when a feed is visited next, where and why, for every outcome of a visit. Pure.

The rules themselves are in next_visit.py, permanent_redirects.py and gaps.py. The next visit of a feed that
is released without a visit (skipped hours, an unreadable registry) comes from next_visit.py directly.
"""

from dataclasses import replace
from datetime import datetime

from rss_pipeline.collector.models.ending import Ending, IfGap
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import HostHold, OnHold
from rss_pipeline.collector.models.outcome import CutOff, NotModified, Parsed
from rss_pipeline.collector.schedule import gaps, permanent_redirects
from rss_pipeline.collector.schedule.next_visit import (
    next_after_failure,
    next_after_hold,
    next_after_our_outage,
    next_after_success,
)

Outcome = NotModified | Parsed | Failure | OnHold | CutOff


def after_visit(feed: Feed, outcome: Outcome, *, now: datetime, hold: HostHold | None = None) -> Ending:
    """Return the ending of a visit. `hold` is the one of the host that answered, if a failure started it."""
    match outcome:
        case Parsed():
            return _after_document(feed, outcome, now=now)
        case NotModified(response=response):
            hints = replace(feed.schedule.hints, max_age=response.max_age)
            return Ending(
                next=next_after_success(
                    feed,
                    hints,
                    now=now,
                    retry_after=response.retry_after,
                    cuts=feed.http.cuts + 1 if outcome.cut_off else 0,
                    came_in_vain=outcome.came_in_vain,
                ),
                address=permanent_redirects.after_success(feed, response, now=now),
            )
        case Failure():
            return Ending(
                next=next_after_failure(feed, outcome, now=now, hold=hold),
                address=permanent_redirects.after_failure(feed, outcome, now=now),
            )
        case OnHold():
            return Ending(
                next=next_after_hold(feed, outcome.hold, now=now, not_before=outcome.not_before),
                address=feed.address,
            )
        case CutOff(before_any_answer=before):
            return Ending(
                next=next_after_our_outage(
                    feed, now, before_any_answer=before, retry_after=outcome.retry_after
                ),
                address=feed.address,
            )


def _after_document(feed: Feed, parsed: Parsed, *, now: datetime) -> Ending:
    hints, response = parsed.header.hints, parsed.document.response
    if_gap = None
    if not parsed.cut_off and gaps.may_show_gap(feed, items=parsed.items_seen, now=now):
        history = gaps.after_gap(feed, now=now)
        hurried = replace(feed, schedule=replace(feed.schedule, gaps=history))
        sooner = next_after_success(hurried, hints, now=now, retry_after=response.retry_after)
        if_gap = IfGap(next=sooner, gaps=history)
    cuts = feed.http.cuts + 1 if parsed.cut_off else 0
    return Ending(
        next=next_after_success(feed, hints, now=now, retry_after=response.retry_after, cuts=cuts),
        address=permanent_redirects.after_success(feed, response, now=now),
        if_gap=if_gap,
    )
