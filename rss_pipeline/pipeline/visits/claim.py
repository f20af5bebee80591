"""The feeds that a run visits: those that are due, or those that a person named.

The claim itself is one statement (storage.feeds.claims). Before it both stores are probed, so that no
publisher gets a request in vain, and feeds with a document that may have killed a run are visited apart, in
groups that become smaller with each run that dies.
"""

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import NETWORK_KINDS, Failure
from rss_pipeline.collector.models.feed import Access, Feed, FeedAddress
from rss_pipeline.collector.models.hold import FeedHold, OnHold
from rss_pipeline.collector.models.outcome import NotBegun, Pending
from rss_pipeline.collector.schedule.next_visit import (
    after_skipped_hours,
    next_after_unreadable_registry,
)
from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.session_steps import STEPS, close, request, run_through
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Refused, Visit
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds import claims, due, leases
from rss_pipeline.storage.feeds.claimable import AFTER_ANSWER, Due, Named, Wanted
from rss_pipeline.storage.feeds.feed_row import feeds_by_id

logger = logging.getLogger(__name__)

SUSPECTS_SECONDS = 120.0
"""Time for suspects before the run turns to the other feeds: no group begins after it."""
GROUP_SECONDS = 45.0
"""Time in which requests of a group may begin: those of a host that limits their rate are minutes apart, and
all the others of the run that died would wait for them."""
_FEW = 8
"""Suspects that were claimed together are visited one by one if they are no more than these."""

Accesses = Mapping[str, Access] | None
"""Feed id to headers and password; None where the registry could not be read."""

_NO_ACCESS = Refused(
    message="it needs the headers or the password that feeds.yaml has for it, and feeds.yaml cannot be used:"
    " fix that first"
)


def claim_wanted(
    session: Session, wanted: Wanted, accesses: Accesses, *, suspects: Collection[str] | None = None
) -> list[Visit]:
    """Probe both stores, take feeds that may be dangerous through all steps, then claim the rest.

    `suspects` are the feeds that may be, where they are known.

    Raises:
        ObjectStoreUnavailable, DatabaseUnavailable: nothing was claimed, no request was made.
    """
    try:
        session.run.objects.probe()
    except ObjectStoreUnavailable:
        session.met("objects")
        raise
    limit = len(wanted.ids) if isinstance(wanted, Named) else session.run.settings.batch_size
    suspected = _visit_suspects(session, _only(wanted, suspects), accesses)
    claim = _claim(session, _without(session, wanted, suspected), limit=limit)
    if isinstance(wanted, Due):
        claim = _in_their_hours(session, claim)
    return [*suspected, *_visits(session, claim, accesses)]


def claim_named(
    session: Session, ids: Sequence[str], accesses: Accesses, *, suspects: Collection[str] | None = None
) -> list[Visit]:
    """Claim each of these feeds; one that cannot be claimed now is `Refused`, `OnHold` or `HeldElsewhere`.

    `suspects` is as for `claim_wanted`.
    """
    wanted = Named(ids=ids, now=session.run.clock(), rested=True)
    visits = claim_wanted(session, wanted, accesses, suspects=suspects)
    claimed = {visit.feed.id for visit in visits}
    missing = [id for id in ids if id not in claimed]
    if not missing:
        return visits
    rows = due.availability(session.run.database, missing, now=session.run.clock())
    known = feeds_by_id(session.run.database, missing)
    for id in missing:
        feed = known.get(id) or Feed(id=id, url="", address=FeedAddress(host=""))
        access = (accesses or {}).get(id, Access())
        why = _NO_ACCESS if _is_unknown(feed, accesses) else why_not(id, rows.get(id))
        visits.append(Visit(feed=feed, token="", access=access, outcome=why))
    return visits


def comes_later(visit: Visit) -> bool:
    """True for a feed that another run holds, or that has just answered: it is waited for at the end."""
    outcome = visit.outcome
    return isinstance(outcome, HeldElsewhere) or (isinstance(outcome, OnHold) and outcome.by_hand)


def go_first(session: Session, visits: Sequence[Visit]) -> None:
    """Have other runs make way, where they hold a host of these feeds for what is merely due."""
    held = [visit.feed.id for visit in visits if isinstance(visit.outcome, HeldElsewhere)]
    if held:
        session.leases.await_hosts(held)


def why_not(id: str, row: Row | None) -> Refused | OnHold | HeldElsewhere:
    """The reason why a claim did not take a feed, from its row of `due.availability`."""
    if row is None:
        return Refused(message=f"no feed {id} is stored: it was forgotten; add it to feeds.yaml again")
    if not row["registered"] and row["unused_since"] is not None:
        return Refused(
            message="no user subscribes to it any more, so it is not fetched; subscribe to it again"
        )
    if not row["registered"]:
        return Refused(message="no longer in feeds.yaml, so it is not fetched; add it there again to do so")
    if not row["watched"]:
        return Refused(message="`watch: false` in feeds.yaml: it is a page for people, without a feed")
    if not row["enabled"]:
        return Refused(message="`enabled: false` in feeds.yaml; remove that to fetch it")
    if row["hold_until"] is not None:
        until = datetime.fromisoformat(row["hold_until"])
        hold = FeedHold(feed_id=id, host=row["hold_host"], until=until, reason=row["hold_reason"])
        return OnHold(hold=hold)
    if row["answered_at"] is not None and row["held_token"] is None and not row["host_held"]:
        return _just_answered(id, row["own_host"], datetime.fromisoformat(row["answered_at"]))
    return HeldElsewhere()


def _just_answered(id: str, host: str, at: datetime) -> OnHold:
    reason = f"it answered at {instant(at)}, and a visit by hand waits a minute after that"
    return OnHold(hold=FeedHold(feed_id=id, host=host, until=at + AFTER_ANSWER, reason=reason), by_hand=True)


def _claim(
    session: Session, wanted: Wanted, *, limit: int, suspects: bool = False, company: int | None = None
) -> claims.Claim:
    claim = session.leases.claim(wanted, limit=limit, suspects=suspects, company=company)
    session.politeness.load_for_feeds(claim.holds)
    return claim


def _is_unknown(feed: Feed, accesses: Accesses) -> bool:
    """Its password is not known; without it the feed would only collect failures that are not its own."""
    return feed.needs_access and accesses is None


def _visits(session: Session, claim: claims.Claim, accesses: Accesses) -> list[Visit]:
    visits = []
    unknown = []
    for feed in claim.feeds:
        if _is_unknown(feed, accesses):
            unknown.append(feed)
        else:
            access = (accesses or {}).get(feed.id, Access())
            visits.append(Visit(feed=feed, token=claim.token, access=access))
    if unknown:
        # Postponed, not only released: still due, they would make the sensor start a run every minute.
        later = next_after_unreadable_registry(session.run.clock())
        leases.release(
            session.run.database,
            [leases.Release(feed_id=feed.id, token=claim.token, next=later) for feed in unknown],
        )
        logger.warning(
            "%d feeds with headers or a password wait until feeds.yaml can be read again", len(unknown)
        )
    return visits


def _in_their_hours(session: Session, claim: claims.Claim) -> claims.Claim:
    """The claim without feeds that list this hour or day to be skipped: those are due after it."""
    now = session.run.clock()
    later = {feed.id: at for feed in claim.feeds if (at := after_skipped_hours(feed, now=now)) is not None}
    leases.release(
        session.run.database,
        [leases.Release(feed_id=id, token=claim.token, next=at) for id, at in later.items()],
    )
    left = tuple(feed for feed in claim.feeds if feed.id not in later)
    if later and not left:
        session.leases.end({claim.token})
    return replace(claim, feeds=left)


def _visit_suspects(session: Session, wanted: Wanted, accesses: Accesses) -> list[Visit]:
    """Visit feeds with a claim that was never closed, in groups of a quarter of those it had.

    What a run that died had begun are suspects; each is cleared by its own visit in here. Where a run dies
    again, a quarter of its group is next, until the feed that kills it is alone.
    """
    visited: list[Visit] = []
    waiting: list[claims.Claim] = []
    if wanted.ids is not None and not wanted.ids:
        return visited
    until = time.monotonic() + SUSPECTS_SECONDS
    while time.monotonic() < until and not any(visit.lost for visit in visited):
        company = claims.company_of_suspects(session.run.database, wanted)
        if company is None:
            break
        claim = _claim(session, wanted, limit=group_size(company), suspects=True, company=company)
        if not claim.feeds:
            break
        unknown = tuple(feed for feed in claim.feeds if _is_unknown(feed, accesses))
        if unknown:
            # Kept until the loop is over: released at once, they would be the next ones again.
            waiting.append(replace(claim, feeds=unknown))
        group = [
            Visit(feed=feed, token=claim.token, access=(accesses or {}).get(feed.id, Access()))
            for feed in claim.feeds
            if not _is_unknown(feed, accesses)
        ]
        group = _condemn_or_visit(session, group, was_alone=company == 1)
        if not unknown and not any(map(_waits_for_others, group)):
            session.leases.end({claim.token})
        visited += group
        wanted = _without(session, wanted, group)
    in_use = {visit.token for visit in visited if _waits_for_others(visit)}
    for claim in waiting:
        _visits(session, claim, accesses)
        session.leases.end({claim.token} - in_use)
    return visited


def group_size(company: int) -> int:
    """The number of suspects that are visited together, of so many that a run which died had claimed."""
    return company // 4 if company > _FEW else 1


def _condemn_or_visit(session: Session, group: Sequence[Visit], *, was_alone: bool) -> list[Visit]:
    condemned = [_condemned(visit) for visit in group if was_alone and _killed_alone(visit.feed)]
    closed = close(session, condemned)
    ids = {visit.feed.id for visit in condemned}
    left = [visit for visit in group if visit.feed.id not in ids]
    requested = request(session, left, round_seconds=GROUP_SECONDS)
    # Without a document nothing could do harm now, and beside the others they show which network is down:
    # after a power cut every feed of the dead run comes this way. `fetch` closes them with the others.
    unanswered = [visit for visit in requested if _waits_for_others(visit)]
    visits = [visit for visit in requested if not _waits_for_others(visit)]
    for step in STEPS if visits else ():
        visits = step(session, visits)
    return [*closed, *unanswered, *visits]


def _waits_for_others(visit: Visit) -> bool:
    """True for a visit that met a failure of the network, or had no turn, and is not closed yet. Released at
    once, one without a turn would be in the next group again."""
    outcome = visit.outcome
    is_network = isinstance(outcome, Failure) and outcome.kind in NETWORK_KINDS
    return (is_network or isinstance(outcome, NotBegun)) and visit.next is None


def _killed_alone(feed: Feed) -> bool:
    """True where a run died with this feed alone, and one before it, or its document crashed a parser."""
    return feed.unfinished.claims > (1 if feed.failures.last_kind == "crashed" else 2)


def _condemned(visit: Visit) -> Visit:
    feed = visit.feed
    message = (
        f"{feed.unfinished.claims - 1} runs died while they visited this feed, the last one with it"
        " alone; its document was not requested again"
    )
    logger.warning("%s: %s", feed.url, message)
    return replace(visit, outcome=Failure(kind="crashed", message=message))


_LISTED = 5_000
"""Suspects that are claimed by their ids. Of more, one is soon found among all feeds that are due."""


def _only(wanted: Wanted, suspects: Collection[str] | None) -> Wanted:
    """The request for these feeds alone: a database without an index of suspects goes through all feeds that
    are due to find none."""
    if suspects is None or len(suspects) > _LISTED:
        return wanted
    named = suspects if wanted.ids is None else set(wanted.ids).intersection(suspects)
    return replace(wanted, ids=sorted(named))


def _without(session: Session, wanted: Wanted, visited: Sequence[Visit]) -> Wanted:
    """The request without the feeds of these visits: named ones are claimed due or not, so also a second
    time. It is made now: a visit after it would count as one in the future, which is a wrong clock's."""
    wanted = replace(wanted, now=session.run.clock())
    if isinstance(wanted, Named):
        ids = {visit.feed.id for visit in visited}
        return replace(wanted, ids=[id for id in wanted.ids if id not in ids])
    return wanted


def wait_for(session: Session, visits: Sequence[Visit], *, pause: float = 2.0) -> list[Visit]:
    """Visits of feeds that another run held: that run's result where it closed them, else our own visit.
    Those that had just answered wait for their minute.

    Called when this run holds no feed any more, so two runs never wait for each other.
    """
    waiting = {visit.feed.id: visit for visit in visits}
    accesses = {visit.feed.id: visit.access for visit in visits}
    done: list[Visit] = []
    rested_at = time.monotonic() + AFTER_ANSWER.total_seconds() + 2 * pause
    while waiting:
        ours: list[Visit] = []
        not_needed: set[str] = set()
        for visit in claim_named(session, list(waiting), accesses):
            id = visit.feed.id
            if isinstance(visit.outcome, HeldElsewhere):
                continue
            unchanged = visit.feed.schedule.last_visited_at == waiting[id].feed.schedule.last_visited_at
            if unchanged and comes_later(visit) and time.monotonic() < rested_at:
                continue
            before = waiting.pop(id).feed.schedule.last_visited_at
            if isinstance(visit.outcome, OnHold) and visit.feed.schedule.last_visited_at != before:
                # The other run has just visited it.
                done.append(Visit(feed=visit.feed, token="", outcome=HeldElsewhere()))
            elif not isinstance(visit.outcome, Pending):
                # Refused by now, or a suspect that was taken through all steps alone.
                done.append(visit)
            elif visit.feed.schedule.last_visited_at == before:
                ours.append(visit)
            else:
                leases.release(session.run.database, [leases.Release(feed_id=id, token=visit.token)])
                not_needed.add(visit.token)
                done.append(Visit(feed=visit.feed, token="", outcome=HeldElsewhere()))
        done += run_through(session, ours)
        session.leases.end(not_needed)
        if waiting:
            time.sleep(pause)
    return done
