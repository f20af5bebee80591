"""The op fetch: request each claimed feed, close what ends there, release what did not begin.

The requests themselves are collector.fetch.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

from rss_pipeline.collector.fetch.feed_round import Beginnings, OtherRuns, fetch_feeds
from rss_pipeline.collector.fetch.feed_visit import RequestCheck
from rss_pipeline.collector.fetch.holds import LONGEST_GAP
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.network import network_of, registered_domain
from rss_pipeline.collector.models.outcome import (
    CutOff,
    Document,
    FetchOutcome,
    NotBegun,
    NotModified,
    Pending,
)
from rss_pipeline.collector.schedule.after_visit import after_visit
from rss_pipeline.collector.schedule.next_visit import (
    next_after_our_outage,
    next_after_redirect,
    outage_pause,
)
from rss_pipeline.collector.schedule.our_outage import Outage, never_reached, nothing_reached, outage
from rss_pipeline.errors import DatabaseFull, InfrastructureError, NetworkUnavailable, NothingReached
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.pipeline.session.politeness import Politeness
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.pipeline.visits.close import Close, release_on_hold
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.installation import FAR, FarDate, note_far_dates

logger = logging.getLogger(__name__)

Step = Callable[[Visits], Visits]

STORED_TOGETHER = 25
"""Documents that are stored together while others are requested: one request to D1 more for so many."""


def fetch(
    visits: Visits,
    *,
    run: RunContext,
    politeness: Politeness,
    other_runs: OtherRuns,
    beginnings: Beginnings,
    spool: Spool,
    policy: FetchPolicy,
    close: Close,
    backup: Step,
    parse: Step,
    store: Sequence[Step],
) -> Visits:
    """Request each claimed feed; close what ends here (not modified, failed), release what did not begin.

    Documents go through `backup`, `parse` and `store`, so many together, while others are requested. The last
    ones are left to the steps after this one, and so are all others where a store cannot work: what has no
    document is closed before these steps fail.

    Raises:
        NetworkUnavailable: our own network is down; no feed's count rose, all are due in five minutes. Where
            it went down during the round, what failed is `CutOff` instead.
    """
    with _Beside(backup, parse, store) as beside:
        visits = request(
            visits,
            run=run,
            politeness=politeness,
            other_runs=other_runs,
            beginnings=beginnings,
            spool=spool,
            policy=policy,
            came=beside.came,
            on_idle=beside.go_on,
        )
    _note_far_dates(visits, database=run.database, clock=run.clock)
    visits = set_our_outage_apart(visits, database=run.database, clock=run.clock)
    has_documents = any(isinstance(visit.outcome, Document) for visit in visits)
    visits = [beside.done.get(visit.feed.id, visit) for visit in visits]
    leases.release(
        run.database,
        [
            leases.Release(
                feed_id=visit.feed.id,
                token=visit.token,
                next=None if (at := visit.outcome.not_before) is None else next_after_redirect(at),
            )
            for visit in visits
            if isinstance(visit.outcome, NotBegun)
        ],
    )
    visits = release_on_hold(visits, database=run.database, clock=run.clock)
    if not has_documents:
        return close(visits)
    # Other runs may use these hosts while we parse and store; where nothing came, the lease ends at once.
    return close(visits, release=sorted({visit.token for visit in visits if visit.token}))


class _Beside:
    """The documents that are backed up, read and stored while others are requested.

    A lot of so many is read in the parser processes while the one before it is stored, and the one after it
    backed up, each in a thread: one after the other took half as long again. No others are under way.
    """

    def __init__(self, backup: Step, parse: Step, store: Sequence[Step]) -> None:
        self.done: dict[str, Visit] = {}
        """The visits of these documents, as far as they came, by their feeds' ids."""
        self._steps = backup, parse, store
        self._waiting: list[Visit] = []
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="lot")
        self._backup: Future[Visits] | None = None
        self._store: Future[Visits] | None = None
        self._may_store = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.go_on()
                self._end_store()
        finally:
            self._threads.shutdown()

    def came(self, visit: Visit) -> None:
        """Receive a visit with its document."""
        if not self._may_store:
            return
        self._waiting.append(visit)
        if len(self._waiting) == STORED_TOGETHER:
            documents, self._waiting = self._waiting, []
            backup = self._threads.submit(self._through, [self._steps[0]], documents)
            self.go_on()
            self._backup = backup

    def go_on(self) -> None:
        """Read the lot that was backed up last, and let it be stored once the one before it is."""
        backup, self._backup = self._backup, None
        if backup is None or not self._may_store:
            return
        _, parse, store = self._steps
        try:
            read = self._through([parse], backup.result())
        except InfrastructureError as error:
            self._stop(error)
            return
        self._end_store()
        if self._may_store:
            self._store = self._threads.submit(self._through, store, read)

    def _through(self, steps: Sequence[Step], visits: Visits) -> Visits:
        for step in steps:
            visits = step(visits)
            self.done.update((visit.feed.id, visit) for visit in visits)
        return visits

    def _end_store(self) -> None:
        store, self._store = self._store, None
        try:
            if store is not None:
                store.result()
        except InfrastructureError as error:
            self._stop(error)

    def _stop(self, error: InfrastructureError) -> None:
        logger.warning("the store failed; the rest is stored once all feeds are requested: %s", error)
        self._may_store = False


def _note_far_dates(visits: Visits, *, database: Database, clock: Clock) -> None:
    """Note answers whose Date is far behind our clock, by network: what makes `clean` doubt the clock."""
    now, found = clock(), {}
    for visit in visits:
        if isinstance(visit.outcome, NotModified | Document):
            ahead = visit.outcome.response.ahead
            if ahead is not None and ahead >= FAR.total_seconds():
                host = visit.feed.address.host
                network = network_of(host) or visit.outcome.response.network or registered_domain(host)
                found[network] = FarDate(now, ahead)
    if found:
        try:
            note_far_dates(database, found)
        except DatabaseFull as error:
            logger.warning("dates of answers that are far from this machine's clock are not kept: %s", error)


def request(
    visits: Visits,
    *,
    run: RunContext,
    politeness: Politeness,
    other_runs: OtherRuns,
    beginnings: Beginnings,
    spool: Spool,
    policy: FetchPolicy,
    came: Callable[[Visit], None] | None = None,
    on_idle: Callable[[], None] | None = None,
) -> Visits:
    """Request each pending feed. Nothing is closed yet: a network failure may turn out to be ours.

    `came` is called with each visit that has a document, while others are requested, and `on_idle` when none
    is there to be passed on.
    """
    pending = [visit for visit in visits if isinstance(visit.outcome, Pending)]
    # A feed that was refused for the sake of others of its host comes before them. One that is refused again
    # has no one to blame, and would keep the others from their visits. Otherwise users take turns.
    of_user: Counter[str] = Counter()
    turns: dict[str, int] = {}
    for visit in pending:
        of_user[visit.feed.brought_by] += 1
        turns[visit.feed.id] = of_user[visit.feed.brought_by]
    pending.sort(key=lambda visit: (not _was_refused_for_others(visit.feed), turns[visit.feed.id]))
    run.progress.begin("fetch", len(pending))
    if not pending:
        return visits

    of_feed = {visit.feed.id: visit for visit in pending}

    def done(feed: Feed, outcome: FetchOutcome) -> None:
        politeness.keep_holds()
        run.progress.advance("fetch")
        if came is not None and isinstance(outcome, Document):
            came(replace(of_feed[feed.id], outcome=outcome))

    outcomes = fetch_feeds(
        [(visit.feed, visit.access) for visit in pending],
        policy=policy,
        spool=spool.folder,
        clock=run.clock,
        pace=politeness.pace,
        holds=politeness.holds,
        other_runs=other_runs,
        beginnings=beginnings,
        on_done=done,
        on_idle=on_idle,
        check_of=checks(run),
    )
    fetched = {
        visit.feed.id: replace(visit, outcome=outcome)
        for visit, outcome in zip(pending, outcomes, strict=True)
    }
    return [fetched.get(visit.feed.id, visit) for visit in visits]


def checks(run: RunContext) -> Callable[[Feed], RequestCheck | None]:
    """The check before each request of a feed, by its keys of features; each is made for the first feed that
    needs it, and is the same for all."""
    made: dict[str, RequestCheck] = {}

    def check_of(feed: Feed) -> RequestCheck | None:
        for name in feed.feature_keys:
            if (make := FEED_KEYS[name].before_request) is not None:
                return made.setdefault(name, made.get(name) or make.load()(run.database, run.clock))
        return None

    return check_of


def _was_refused_for_others(feed: Feed) -> bool:
    """True after one refusal with a wait that a limit by rate has; a host that asks for a day has none, and
    would keep its other feeds from their visits for another day."""
    failures, schedule = feed.failures, feed.schedule
    if failures.last_kind != "rate_limited" or failures.in_a_row != 1:
        return False
    if schedule.next_fetch_at is None or schedule.last_visited_at is None:
        return True
    return schedule.next_fetch_at - schedule.last_visited_at <= 2 * LONGEST_GAP


# An outage of our own network during a run: feeds that failed by it are postponed, and the run fails.
#
# Whether there was one is decided in collector.schedule.our_outage.


def set_our_outage_apart(visits: Visits, *, database: Database, clock: Clock) -> Visits:
    """Postpone the feeds that failed because our own network was down; they are `CutOff`.

    Where other hosts answered, their documents are worth keeping, and the run fails at its end.

    Raises:
        NothingReached: no host answered, and none ever has.
        NetworkUnavailable: no host answered.
    """
    outcomes = [
        (visit.feed, visit.outcome)
        for visit in visits
        if isinstance(visit.outcome, NotModified | Document | Failure | NotBegun | OnHold)
        and visit.next is None
        and not visit.lost
    ]
    now = clock()
    ours = _outage(outcomes, database=database, now=now)
    if ours is None:
        return visits
    unbegun = {visit.feed.id for visit in visits if isinstance(visit.outcome, NotBegun)}
    # Feeds that were not begun come later, too: where no host answers, a request at once would be in vain.
    late = ours.feed_ids if ours.in_the_middle else ours.feed_ids | unbegun
    leases.release(
        database,
        [
            leases.Release(
                feed_id=visit.feed.id,
                token=visit.token,
                next=next_after_our_outage(
                    visit.feed,
                    now,
                    before_any_answer=ours.before_any_answer,
                    retry_after=visit.outcome.retry_after if isinstance(visit.outcome, Failure) else None,
                ),
            )
            for visit in visits
            if visit.feed.id in late
        ],
    )
    cut_off = []
    for visit in visits:
        if visit.feed.id in ours.feed_ids and isinstance(visit.outcome, Failure):
            outcome = CutOff(
                message=visit.outcome.message,
                pause=outage_pause(visit.feed.schedule.outage_pauses),
                retry_after=visit.outcome.retry_after,
                before_any_answer=ours.before_any_answer,
            )
            visit = replace(visit, outcome=outcome, next=after_visit(visit.feed, outcome, now=now).next)
        cut_off.append(visit)
    if not ours.in_the_middle:
        raise_for_our_outage(cut_off)
    return cut_off


def _outage(
    outcomes: Sequence[tuple[Feed, FetchOutcome]], *, database: Database, now: datetime
) -> Outage | None:
    if outage(outcomes) is not None:
        answered = any(
            isinstance(outcome, NotModified | Document) and not feed.allow_private
            for feed, outcome in outcomes
        )
        ids = [feed.id for feed, _ in outcomes]
        blamed = feeds.not_our_outage(database, ids, answered=answered)
        return outage(outcomes, blamed=blamed)
    first = never_reached(outcomes, now=now)
    return None if first is None or feeds.any_answered(database) else first


def raise_for_our_outage(visits: Visits) -> None:
    """End a run during which our own network went down.

    Raises:
        NothingReached: no feed has ever been answered.
        NetworkUnavailable: some feeds failed by it; none of these failures was counted.
    """
    cut_off = [(visit, visit.outcome) for visit in visits if isinstance(visit.outcome, CutOff)]
    messages = [outcome.message for _, outcome in cut_off]
    if any(outcome.before_any_answer for _, outcome in cut_off):
        hosts = len({visit.feed.address.host for visit, _ in cut_off})
        raise NothingReached(
            f"{nothing_reached(hosts)} No failure was counted; the next attempt is in 5 minutes."
            f" The first of {len(messages)} feeds said: {messages[0]}"
        )
    if messages:
        pause = min(outcome.pause for _, outcome in cut_off) // timedelta(minutes=1)
        many = f"all {len(messages)}" if len(messages) == len(visits) else f"{len(messages)} of {len(visits)}"
        raise NetworkUnavailable(
            f"Our own network was down: {many} feeds failed in the network, hosts among them that answered"
            f" before. They are due again in {pause} minutes. The first one said: {messages[0]}"
        )
