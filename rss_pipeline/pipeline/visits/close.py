"""The close of visits that end without a stored document: not modified, or failed.

The next visit's time is collector.schedule's, the statements are storage.feeds.closings'.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol, TypeVar

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.validators import is_unchecked
from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import PROMINENT_FAILURES, Feed, FeedAddress
from rss_pipeline.collector.models.hold import FeedHold, OnHold
from rss_pipeline.collector.models.outcome import Ending, NotModified
from rss_pipeline.collector.schedule import permanent_redirects
from rss_pipeline.collector.schedule.after_visit import after_visit
from rss_pipeline.errors import StorageRejected
from rss_pipeline.pipeline.session.lease_keeper import LeaseKeeper
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.feeds.closings import FailedVisit, UnchangedVisit, close_failed, close_unchanged
from rss_pipeline.storage.feeds.leases import free_hosts

logger = logging.getLogger(__name__)

Closing = TypeVar("Closing", UnchangedVisit, FailedVisit)


class Close(Protocol):
    """`close` with its parts: the function that a step receives."""

    def __call__(self, visits: Visits, *, release: Sequence[str] = ()) -> Visits: ...


def close(
    visits: Visits,
    *,
    database: Database,
    clock: Clock,
    holds: Holds,
    lease_keeper: LeaseKeeper,
    most_backup_bytes: int,
    release: Sequence[str] = (),
) -> Visits:
    """Close what ended and is not closed yet, all in one statement a kind; the other visits pass through.

    A visit with values that the database refuses ends as `storage_rejected`, alone. `most_backup_bytes` is
    the limit of new backups of a feed and day.
    `release` are tokens of claims without further requests: their hosts are free with the first statement
    written.
    """
    now = clock()
    open_ = [visit for visit in visits if visit.next is None and not visit.lost]
    unchanged = [_unchanged(visit, now) for visit in open_ if isinstance(visit.outcome, NotModified)]
    freeing = [free_hosts(release), *lease_keeper.recent_hosts().statements()] if release else []
    if freeing and not unchanged:
        database.batch(freeing)
    closed, refused = _write(lambda some: close_unchanged(database, some, now=now, others=freeing), unchanged)
    lease_keeper.forget_hosts_of(release)
    open_ = [
        replace(visit, outcome=_refused(refused[visit.feed.id])) if visit.feed.id in refused else visit
        for visit in open_
    ]
    failed = [
        _failed(visit, holds, now, most_backup_bytes) for visit in open_ if isinstance(visit.outcome, Failure)
    ]
    for visit in failed:
        _log(visit)
    also_closed, refused = _write(lambda some: close_failed(database, some, now=now), failed)
    if refused:
        raise StorageRejected(f"a failure could not be recorded: {refused}")
    ended: dict[str, UnchangedVisit | FailedVisit] = {each.feed.id: each for each in unchanged}
    ended |= {each.feed.id: each for each in failed}
    ours = closed | also_closed
    for each in ended.values():
        if each.feed.id in ours:
            log_move(each.feed, each.ending.address)
            log_full(each.feed, each.ending)
    return [
        replace(
            visit,
            outcome=ended[visit.feed.id].outcome,
            next=ended[visit.feed.id].ending.next,
            lost=visit.feed.id not in ours,
        )
        if visit.feed.id in ended and visit.next is None and not visit.lost
        else visit
        for visit in visits
    ]


def release_on_hold(visits: Visits, *, database: Database, clock: Clock) -> Visits:
    """Release the feeds that a hold stopped: each is due when the hold is over."""
    now = clock()
    done: dict[str, Visit] = {}
    releases = []
    for visit in visits:
        if isinstance(visit.outcome, OnHold) and visit.next is None:
            hold = visit.outcome.hold
            later = after_visit(visit.feed, visit.outcome, now=now).next
            led = None
            if hold.host != visit.feed.address.host or isinstance(hold, FeedHold):
                led = FeedHold(feed_id=visit.feed.id, host=hold.host, until=hold.until, reason=hold.reason)
            if visit.token:
                releases.append(
                    leases.Release(
                        feed_id=visit.feed.id,
                        token=visit.token,
                        next=later,
                        hold=led,
                        led_to=visit.outcome.led_to,
                    )
                )
            done[visit.feed.id] = replace(visit, next=later)
    leases.release(database, releases)
    return [done.get(visit.feed.id, visit) for visit in visits]


def _unchanged(visit: Visit, now: datetime) -> UnchangedVisit:
    assert isinstance(visit.outcome, NotModified)
    ending = after_visit(visit.feed, visit.outcome, now=now)
    return UnchangedVisit(feed=visit.feed, token=visit.token, outcome=visit.outcome, ending=ending)


def _failed(visit: Visit, holds: Holds, now: datetime, most_backup_bytes: int) -> FailedVisit:
    assert isinstance(visit.outcome, Failure)
    hold = holds.active(visit.outcome.host or visit.feed.address.host)
    ending = after_visit(visit.feed, visit.outcome, now=now, hold=hold, most_backup_bytes=most_backup_bytes)
    return FailedVisit(
        feed=visit.feed,
        token=visit.token,
        outcome=visit.outcome,
        ending=ending,
        was_check=is_unchecked(visit.feed, now=now),
    )


def _refused(message: str) -> Failure:
    return Failure(kind="storage_rejected", message=message, answered=True)


def _write(
    write: Callable[[Sequence[Closing]], set[str]], closings: Sequence[Closing]
) -> tuple[set[str], dict[str, str]]:
    """Write all at once; where the database refuses, by halves, until the refused one is alone."""
    if not closings:
        return set(), {}
    try:
        return write(closings), {}
    except StorageRejected as error:
        if len(closings) == 1:
            return set(), {closings[0].feed.id: str(error)}
    middle = len(closings) // 2
    closed, refused = _write(write, closings[:middle])
    also_closed, also_refused = _write(write, closings[middle:])
    return closed | also_closed, refused | also_refused


def log_move(feed: Feed, found: FeedAddress) -> None:
    """Log the change of the address at which the feed is requested."""
    if found.fetch_url is not None and found.fetch_url != feed.address.fetch_url:
        logger.warning(
            "%s has moved permanently and is requested at %s from now on. Its id stays; write the new address"
            " into the registry with `id: %s`, and it continues as the same feed.",
            feed.url,
            found.fetch_url,
            feed.id,
        )
    elif found.fetch_url is None and feed.address.fetch_url is not None:
        logger.warning(
            "%s is requested at that address again, and no longer at %s.", feed.url, feed.address.fetch_url
        )
    elif found.move_url is not None and found.move_url != feed.address.move_url:
        hindrance = permanent_redirects.hindrance(
            url=feed.url,
            fetch_url=feed.address.fetch_url,
            needs_access=feed.needs_access,
            target=found.move_url,
        )
        logger.info(
            "%s redirects permanently to %s: %s.",
            feed.url,
            found.move_url,
            f"requested there directly after {permanent_redirects.SEEN_FOR.days} days of that"
            if hindrance is None
            else f"not requested there directly, for {hindrance}",
        )


def log_full(feed: Feed, ending: Ending) -> None:
    """Log that the feed has written its most backups of a day, if it has."""
    if ending.hold is not None:
        logger.warning(
            "%s: %s (RSS_BACKUP_MB_PER_DAY). All of it is backed up; the next visit is after %s.",
            feed.url,
            ending.hold.reason,
            instant(ending.hold.until),
        )


def _log(visit: FailedVisit) -> None:
    count = visit.feed.failures.in_a_row + 1
    if visit.outcome.kind == "gone" and visit.feed.failures.last_kind != "gone":
        logger.warning("%s: %s It is requested once a day.", visit.feed.url, visit.outcome.message)
    else:
        logger.info("%s failed (%s): %s", visit.feed.url, visit.outcome.kind, visit.outcome.message)
    if count == PROMINENT_FAILURES:
        logger.warning(
            "%s has failed %d times in a row, the last time with %s: %s It is still requested, once a day;"
            " fix or remove it in the registry.",
            visit.feed.url,
            count,
            visit.outcome.kind,
            visit.outcome.message,
        )
