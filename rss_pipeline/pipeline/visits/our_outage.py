"""An outage of our own network during a run: feeds that failed by it are postponed, and the run fails.

Whether there was one is decided in collector.schedule.our_outage.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import CutOff, Document, FetchOutcome, NotBegun, NotModified
from rss_pipeline.collector.schedule.after_visit import after_visit
from rss_pipeline.collector.schedule.next_visit import next_after_our_outage, outage_pause
from rss_pipeline.collector.schedule.our_outage import Outage, never_reached, nothing_reached, outage
from rss_pipeline.errors import NetworkUnavailable, NothingReached
from rss_pipeline.pipeline.visits.visit import Visits
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feeds, leases


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
        answered = any(isinstance(outcome, NotModified | Document) for _, outcome in outcomes)
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
