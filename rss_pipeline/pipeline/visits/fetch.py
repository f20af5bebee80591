"""The op fetch: request each claimed feed, close what ends there, release what did not begin.

The requests themselves are collector.fetch.
"""

from dataclasses import replace

from rss_pipeline.collector.fetch.feeds import FetchOutcome, fetch_feeds
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.hold import FeedHold, OnHold
from rss_pipeline.collector.models.outcome import Document, GivenBack, Pending
from rss_pipeline.collector.schedule.next_visit import next_after_hold
from rss_pipeline.pipeline.visits.close import close
from rss_pipeline.pipeline.visits.our_outage import set_our_outage_apart
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.storage.feeds import leases


def fetch(session: Session, visits: Visits, *, round_seconds: float | None = None) -> Visits:
    """Ask each claimed feed; close what ends here (not modified, failed), give back what did not begin.

    Raises:
        NetworkUnavailable: our own network is down; no feed's count rose, all are due in five minutes. Where
            it went down during the round, what failed is `CutOff` instead.
    """
    visits = ask(session, visits, round_seconds=round_seconds)
    visits = set_our_outage_apart(session, visits)
    leases.release(
        session.database,
        [
            leases.Release(feed_id=visit.feed.id, token=visit.token)
            for visit in visits
            if isinstance(visit.outcome, GivenBack)
        ],
    )
    visits = _release_on_hold(session, visits)
    if not any(isinstance(visit.outcome, Document) for visit in visits):
        return close(session, visits)
    # Others may ask these hosts while we parse and store; where nothing came, the lease ends at once.
    return close(session, visits, release=sorted({visit.token for visit in visits if visit.token}))


def ask(session: Session, visits: Visits, *, round_seconds: float | None = None) -> Visits:
    """Ask each feed that is pending. Nothing is closed yet: a network failure may turn out to be ours."""
    pending = [visit for visit in visits if isinstance(visit.outcome, Pending)]
    session.progress.begin("fetch", len(pending))
    if not pending:
        return visits
    policy = replace(session.policy, round_seconds=round_seconds)

    def done(_feed: Feed, _outcome: FetchOutcome) -> None:
        session.keep_holds()
        session.progress.advance("fetch")

    outcomes = fetch_feeds(
        [(visit.feed, visit.access) for visit in pending],
        policy=policy,
        spool=session.spool,
        clock=session.clock,
        pace=session.pace,
        holds=session.holds,
        other_runs=session,
        on_done=done,
    )
    fetched = {
        visit.feed.id: replace(visit, outcome=outcome)
        for visit, outcome in zip(pending, outcomes, strict=True)
    }
    return [fetched.get(visit.feed.id, visit) for visit in visits]


def _release_on_hold(session: Session, visits: Visits) -> Visits:
    """Release the feeds that a hold stopped: each is due when the hold is over."""
    now = session.clock()
    done: dict[str, Visit] = {}
    releases = []
    for visit in visits:
        if isinstance(visit.outcome, OnHold) and visit.next is None:
            hold = visit.outcome.hold
            later = next_after_hold(visit.feed, hold, now=now)
            led = None
            if hold.host != visit.feed.address.host:
                led = FeedHold(feed_id=visit.feed.id, host=hold.host, until=hold.until, reason=hold.reason)
            releases.append(leases.Release(feed_id=visit.feed.id, token=visit.token, next=later, hold=led))
            done[visit.feed.id] = replace(visit, next=later)
    leases.release(session.database, releases)
    return [done.get(visit.feed.id, visit) for visit in visits]
