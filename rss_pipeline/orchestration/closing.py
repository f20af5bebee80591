"""Closing the visits that end without a stored document: not modified, or failed.

When to come back is collector.schedule's, the statements are storage.closings'.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar, cast

from rss_pipeline.collector.models import FAILURE_KINDS, Failure, FailureKind, NotModified
from rss_pipeline.collector.schedule import host_hold, next_after_failure, next_after_not_modified
from rss_pipeline.errors import StorageRejected
from rss_pipeline.orchestration.visiting import Visiting
from rss_pipeline.orchestration.visits import Visit
from rss_pipeline.storage.closings import Failed, Unchanged, close_failed, close_unchanged
from rss_pipeline.storage.leases import release_hosts

logger = logging.getLogger("rss_pipeline")

PROMINENT_FAILURES = 10

Closing = TypeVar("Closing", Unchanged, Failed)


def close(visiting: Visiting, visits: list[Visit], *, release: Sequence[str] = ()) -> list[Visit]:
    """Close what ended and is not closed yet, all in one statement a kind; the other visits pass through.

    A visit whose values the database refuses ends as `storage_rejected`, alone. A replay closes nothing.
    `release` are tokens of claims whose requests are over: their hosts are free with the first statement
    written.
    """
    now = visiting.clock()
    open_ = [visit for visit in visits if visit.next is None and not visit.lost and visit.replay is None]
    unchanged = [_unchanged(visit, now) for visit in open_ if isinstance(visit.outcome, NotModified)]
    hosts = [release_hosts(release)] if release else []
    if hosts and not unchanged:
        visiting.database.batch(hosts)
    closed, refused = _write(
        lambda some: close_unchanged(visiting.database, some, now=now, others=hosts), unchanged
    )
    open_ = [
        replace(visit, outcome=_refused(refused[visit.feed.id])) if visit.feed.id in refused else visit
        for visit in open_
    ]
    failed = [_failed(visit, now) for visit in open_ if isinstance(visit.outcome, Failure)]
    held = [
        hold
        for visit in failed
        if (hold := host_hold(visit.outcome, host=visit.feed.host, now=now)) is not None
    ]
    for visit in failed:
        _log(visit)
    also_closed, refused = _write(
        lambda some: close_failed(visiting.database, some, now=now, holds=held), failed
    )
    if refused:
        raise StorageRejected(f"a failure could not be recorded: {refused}")
    endings: dict[str, Unchanged | Failed] = {closing.feed.id: closing for closing in unchanged}
    endings |= {closing.feed.id: closing for closing in failed}
    ours = closed | also_closed
    return [
        replace(
            visit,
            outcome=endings[visit.feed.id].outcome,
            next=endings[visit.feed.id].next,
            lost=visit.feed.id not in ours,
        )
        if visit.feed.id in endings and visit.next is None and not visit.lost and visit.replay is None
        else visit
        for visit in visits
    ]


def failure_kind(kind: str) -> FailureKind:
    """A kind that an exception carried as text."""
    return cast("FailureKind", kind) if kind in FAILURE_KINDS else "not_a_feed"


def _unchanged(visit: Visit, now: datetime) -> Unchanged:
    assert isinstance(visit.outcome, NotModified)
    response = visit.outcome.response
    later = next_after_not_modified(
        visit.feed, now=now, max_age=response.max_age, retry_after=response.retry_after
    )
    return Unchanged(feed=visit.feed, token=visit.token, outcome=visit.outcome, next=later)


def _failed(visit: Visit, now: datetime) -> Failed:
    assert isinstance(visit.outcome, Failure)
    later = next_after_failure(visit.feed, visit.outcome, now=now)
    return Failed(feed=visit.feed, token=visit.token, outcome=visit.outcome, next=later)


def _refused(message: str) -> Failure:
    return Failure(kind="storage_rejected", message=message, answered=True)


def _write(
    write: Callable[[Sequence[Closing]], set[str]], closings: Sequence[Closing]
) -> tuple[set[str], dict[str, str]]:
    """Write all at once; where the database refuses, by halves, until the refused one stands alone."""
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


def _log(visit: Failed) -> None:
    count = visit.feed.consecutive_failures + 1
    logger.info("%s failed (%s): %s", visit.feed.url, visit.outcome.kind, visit.outcome.message)
    if count == PROMINENT_FAILURES:
        logger.warning(
            "%s has failed %d times in a row, the last time with %s: %s It is still asked, once a day;"
            " mend or remove it in the registry.",
            visit.feed.url,
            count,
            visit.outcome.kind,
            visit.outcome.message,
        )
