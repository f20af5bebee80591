"""Poll rounds that follow each other until nothing is due, or nothing of what was requested is left.

A round itself is poll.py's, or a run of Dagster (orchestration.in_process). What is printed is the command's.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun, NotModified
from rss_pipeline.pipeline.visits.claim import why_not
from rss_pipeline.pipeline.visits.summary import summary
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Refused, Stored, Visit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, leases
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince
from rss_pipeline.storage.feeds.feed_row import feeds_by_id

logger = logging.getLogger(__name__)

_MOST_ROUNDS = 10_000
_LOOK_AGAIN_SECONDS = 1.0
_RUN_SECONDS = 60
"""Time for which a host is kept free for a run that has waited for it and starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run: its visits, and the error that ended it; with an error it has visits only where all of its
    steps had passed."""

    run_id: str
    visits: Sequence[Visit] = ()
    good: Sequence[str] = ()
    """The ids of feeds whose visits went well, and are kept no longer."""
    error: str | None = None
    published: Sequence[str] = ()
    """Topics with changed documents, where this run published."""
    publication_error: str | None = None
    """Why topics were not published; a warning, for they stay due."""


def poll_until_done(
    database: Database,
    run_round: Callable[[Due | NotVisitedSince], Round],
    *,
    clock: Clock,
    feeds: Sequence[str] = (),
    all_feeds: bool = False,
    patience: float = 0.0,
) -> Iterator[Round]:
    """Run rounds until nothing is due, or all of `feeds` (ids) or all feeds were visited; at least one.

    Where another run holds one of `feeds` or its host, that run is waited for, and so is the minute after a
    feed's last answer, `patience` seconds at most;
    the end of a host's hold is not. A round with an error is the last one, and so is the second one in a row
    in which no visit began: hosts that limit the rate of requests would keep it going for an hour.
    """
    started = clock()

    def wanted() -> Due | NotVisitedSince:
        if feeds or all_feeds:
            return NotVisitedSince(since=started, now=clock(), ids=feeds or None, rested=bool(feeds))
        return Due(now=clock())

    turn = _Turn(database, feeds, since=started, clock=clock, patience=patience)
    in_vain = 0
    try:
        for _ in range(_MOST_ROUNDS):
            done = run_round(wanted())
            has_visits, has_failed = bool(done.visits), done.error is not None
            is_in_vain = all(isinstance(visit.outcome, NotBegun) for visit in done.visits)
            yield done
            del done  # Its visits take megabytes, and the next round makes as many.
            in_vain = in_vain + 1 if is_in_vain and has_visits else 0
            if has_failed or in_vain == 2:
                return
            if due.is_claimable(database, wanted()):
                if not has_visits:
                    return
            elif not turn.comes():
                return
    finally:
        turn.end()


class _Turn:
    """Wait for runs that hold these feeds or their hosts; those runs make way."""

    def __init__(
        self, database: Database, ids: Sequence[str], *, since: datetime, clock: Clock, patience: float
    ) -> None:
        self._database = database
        self._ids = ids
        self._since = since
        self._clock = clock
        self._patience = patience
        self._token: str | None = None

    def comes(self) -> bool:
        """Wait until one of the feeds can be claimed; False where no run holds one and none has just
        answered, or patience is over."""
        # A poll of merely due feeds waits for no run; the query would be one request more in every poll.
        found = self._left(self._ids) if self._ids else []
        elsewhere = [each.feed_id for each in found if each.kind == "held_elsewhere"]
        if elsewhere and self._patience > 0 and self._token is None:
            seconds = int(self._patience) + _RUN_SECONDS
            self._token = leases.await_hosts(self._database, elsewhere, run_id="", lease_seconds=seconds)
        if self._patience > 0:
            for each in found:
                if each.kind == "just_answered":
                    logger.warning("%s waits: %s", each.feed_id, each.message)
        waiting = [each.feed_id for each in found]
        while waiting and self._patience > 0:
            time.sleep(_LOOK_AGAIN_SECONDS)
            self._patience -= _LOOK_AGAIN_SECONDS
            wanted = NotVisitedSince(since=self._since, now=self._clock(), ids=self._ids, rested=True)
            if due.is_claimable(self._database, wanted):
                return True
            waiting = [each.feed_id for each in self._left(waiting)]
        return False

    def end(self) -> None:
        """Free the hosts for other runs."""
        if self._token is not None:
            leases.end(self._database, self._token, forgive=True)

    def _left(self, ids: Sequence[str]) -> "list[NotVisited]":
        left = not_visited(self._database, ids, since=self._since, now=self._clock())
        return [each for each in left if each.kind in ("held_elsewhere", "just_answered")]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotVisited:
    """A requested feed that was not visited: why, and what to do."""

    feed_id: str
    title: str | None = None
    kind: str
    """`host_on_hold`, `just_answered`, `refused`, `held_elsewhere` or `not_begun`."""
    message: str
    held_until: str | None = None
    """The instant at which its host's hold, or the minute after its last answer, is over."""


def not_visited(
    database: Database, ids: Sequence[str], *, since: datetime, now: datetime, all_feeds: bool = False
) -> list[NotVisited]:
    """The feeds among `ids` without a visit since then; with `all_feeds` all that a hold kept from one."""
    since = since.replace(microsecond=0)  # As the stores keep instants.
    if all_feeds:
        ids = due.on_hold(database, since=since, now=now)
    known = feeds_by_id(database, ids)
    visited = {
        id
        for id, feed in known.items()
        if (at := feed.schedule.last_visited_at) is not None and since <= at <= now
    }
    left = [id for id in dict.fromkeys(ids) if id not in visited]
    rows = due.availability(database, left, now=now)
    return [
        _why_not(id, why_not(id, rows.get(id)), title=known[id].title if id in known else None) for id in left
    ]


def without_good(counts: Counter[str], done: Round) -> Round:
    """The round without the visits that went well, after a count of all: thousands would fill the memory."""
    counts.update(summary(done.visits))
    good = [visit.feed.id for visit in done.visits if isinstance(visit.outcome, Stored | NotModified)]
    left = [visit for visit in done.visits if not isinstance(visit.outcome, Stored | NotModified)]
    return replace(done, visits=left, good=good)


def _last(rounds: Sequence[Round]) -> dict[str, Visit]:
    """The last visit of each feed but those that went well."""
    last: dict[str, Visit] = {}
    for done in rounds:
        for id in done.good:
            last.pop(id, None)
        last.update((visit.feed.id, visit) for visit in done.visits)
    return last


def on_hold(rounds: Sequence[Round]) -> list[NotVisited]:
    """Feeds that these rounds did not request because a host had set a hold."""
    return [
        _why_not(id, outcome, title=visit.feed.title)
        for id, visit in _last(rounds).items()
        if isinstance(outcome := visit.outcome, OnHold)
    ]


def not_begun(rounds: Sequence[Round]) -> list[NotVisited]:
    """Feeds whose turn at their host did not come in the last of these rounds."""
    return [
        NotVisited(
            feed_id=id,
            title=visit.feed.title,
            kind="not_begun",
            message=f"{outcome.reason}; the next poll tries again",
        )
        for id, visit in _last(rounds).items()
        if isinstance(outcome := visit.outcome, NotBegun)
    ]


def _why_not(id: str, why: Refused | OnHold | HeldElsewhere, *, title: str | None) -> NotVisited:
    match why:
        case Refused(message=message):
            return NotVisited(feed_id=id, title=title, kind="refused", message=message)
        case OnHold(hold=hold, by_hand=by_hand):
            return NotVisited(
                feed_id=id,
                title=title,
                kind="just_answered" if by_hand else "host_on_hold",
                message=str(why),
                held_until=instant(hold.until),
            )
        case HeldElsewhere():
            message = "another run is visiting it or its host now; try again in a minute"
            return NotVisited(feed_id=id, title=title, kind="held_elsewhere", message=message)
