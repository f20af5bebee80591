"""The one answer to when a feed is visited next, where and why, for every outcome of a visit. Pure.

The rules themselves are in next_visit.py, permanent_redirects.py and gaps.py. The next visit of a feed that
is released without a visit (skipped hours, an unreadable registry) comes from next_visit.py directly.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed, NextVisit
from rss_pipeline.collector.models.hold import FeedHold, HostHold, OnHold
from rss_pipeline.collector.models.outcome import CutOff, Ending, IfGap, NotModified, Parsed
from rss_pipeline.collector.schedule import gaps, permanent_redirects
from rss_pipeline.collector.schedule.next_visit import (
    MEGABYTE,
    end_of_backups,
    next_after_failure,
    next_after_hold,
    next_after_our_outage,
    next_after_success,
    within_backups,
)

Outcome = NotModified | Parsed | Failure | OnHold | CutOff


def after_visit(
    feed: Feed,
    outcome: Outcome,
    *,
    now: datetime,
    hold: HostHold | None = None,
    most_backup_bytes: int | None = None,
) -> Ending:
    """Return the ending of a visit. `hold` is the one of the host that answered, if a failure started it.

    `most_backup_bytes` is the limit of new backups of a feed and day, for an outcome that may have made one.
    """
    ending = _ending(feed, outcome, now=now, hold=hold)
    match outcome:
        case Parsed(document=backed_up) | (Failure() as backed_up) if most_backup_bytes is not None:
            came = backed_up.new_backup_bytes
            return _within_backups(feed, ending, came, most=most_backup_bytes, now=now) if came else ending
    return ending


def _within_backups(feed: Feed, ending: Ending, came: int, *, most: int, now: datetime) -> Ending:
    def later(next: NextVisit) -> NextVisit:
        return within_backups(feed, next, came, most=most, now=now)

    until = end_of_backups(feed, came, most=most, now=now)
    if_gap = ending.if_gap
    return replace(
        ending,
        next=later(ending.next),
        if_gap=None if if_gap is None else replace(if_gap, next=later(if_gap.next)),
        hold=None
        if until is None
        else FeedHold(
            feed_id=feed.id,
            host="",
            until=until,
            reason=f"its new documents of today have reached the limit of {most // MEGABYTE:,} MB",
        ),
    )


def _ending(feed: Feed, outcome: Outcome, *, now: datetime, hold: HostHold | None) -> Ending:
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
                    answered_by=response.url,
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
    response = parsed.document.response
    after = partial(
        next_after_success,
        hints=parsed.header.hints,
        now=now,
        retry_after=response.retry_after,
        answered_by=response.url,
    )
    if_gap = None
    if not parsed.cut_off and gaps.may_show_gap(feed, items=parsed.items_seen, now=now):
        history = gaps.after_gap(feed, now=now)
        hurried = replace(feed, schedule=replace(feed.schedule, gaps=history))
        if_gap = IfGap(next=after(hurried), gaps=history)
    cuts = feed.http.cuts + 1 if parsed.cut_off else 0
    return Ending(
        next=after(feed, cuts=cuts),
        address=permanent_redirects.after_success(feed, response, now=now),
        if_gap=if_gap,
    )
