"""One poll round: claim, every step, leases ended, then held feeds and further claims. Without Dagster.

The ops of `poll_feeds` call the same functions, one op a step, and report to Dagster in between. Rounds that
follow each other until nothing is due are in rounds.py.
"""

from collections.abc import Collection
from dataclasses import replace

from rss_pipeline.collector.models.outcome import CutOff, NotBegun
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.claim import (
    Accesses,
    claim_named,
    claim_wanted,
    comes_later,
    go_first,
    wait_for,
)
from rss_pipeline.pipeline.visits.session_steps import STEPS, fetch, run_through
from rss_pipeline.pipeline.visits.visit import Visit, Visits
from rss_pipeline.storage.feeds.claimable import Due, Named, Wanted

ROUND_SECONDS = 120.0
"""A feed that was not requested by then is released, still due."""
FULL = 0.9
"""The part of a batch that a full claim has at least: some of its feeds may skip this hour."""


def poll_round(
    session: Session,
    wanted: Wanted,
    accesses: Accesses,
    *,
    suspects: Collection[str] | None = None,
    round_seconds: float | None = ROUND_SECONDS,
) -> list[Visit]:
    """Do what one run of the job `poll_feeds` does, except for syncing the registry and for Dagster's events.

    `wanted` is `Due`, `NotVisitedSince` (all feeds, or those of `ids`) or `Named` (these
    feeds, due or not: the asset's partitions, for which `round_seconds` is None, and `feeds` in the config
    of the job). `accesses` is `RegistrySync.accesses`, or None where feeds.yaml could not be read; `suspects`
    is `RegistrySync.suspects`, or None likewise.

    Return one visit for each claimed feed, and, for `Named`, one for each named feed that could not be
    claimed (`Refused`, `OnHold`). All leases have ended; a feed that another run held has been waited for.
    May be called again and again with one session.

    Raises:
        ObjectStoreUnavailable, DatabaseUnavailable: a store cannot work now.
        NetworkUnavailable: our own network is down and no host answered. Where it went down during the round,
            the feeds that failed by it are `CutOff` instead; `raise_for_our_outage(visits)` then raises it.
    """
    with session.step():
        visits = claim_visits(session, wanted, accesses, suspects=suspects)
        visits = fetch(session, visits, round_seconds=round_seconds)
        for step in STEPS[1:]:
            visits = step(session, visits)
        session.leases.end({visit.token for visit in visits})
        return visit_more(session, wanted, accesses, visits)


def claim_visits(
    session: Session, wanted: Wanted, accesses: Accesses, *, suspects: Collection[str] | None = None
) -> Visits:
    """Claim what is wanted. A named feed that cannot be claimed is a visit too, with the reason.

    A run that holds a named feed or its host for feeds that are merely due makes way.
    """
    if not isinstance(wanted, Named):
        return claim_wanted(session, wanted, accesses, suspects=suspects)
    visits = claim_named(session, wanted.ids, accesses, suspects=suspects)
    go_first(session, visits)
    return visits


def visit_more(session: Session, wanted: Wanted, accesses: Accesses, visits: Visits) -> Visits:
    """These visits with those that come after them: of feeds that another run held, and of further claims.

    Called when this run holds no feed any more.
    """
    rest, held = apart(visits)
    return [*rest, *wait_for(session, held), *_go_on(session, wanted, accesses, rest)]


def apart(visits: Visits) -> tuple[Visits, Visits]:
    """The visits of this run, and those of feeds that are waited for."""
    held = [visit for visit in visits if comes_later(visit)]
    return [visit for visit in visits if not comes_later(visit)], held


def _go_on(session: Session, wanted: Wanted, accesses: Accesses, visits: Visits) -> Visits:
    """The visits of a shard's further claims, each through all steps, after the `visits` of the first one.

    The sensor would start the next run at its next tick, so that a shard got one batch a tick. Claims follow
    one another while they are full, and the last one within the first ROUND_SECONDS of the run, which so has
    twice that for its requests. Each holds its hosts as long as ever, and takes none for which a person
    waits. Other polls claim once.
    """
    found: Visits = []
    while isinstance(wanted, Due) and wanted.shard is not None and _leaves_some(session, visits):
        wanted = replace(wanted, now=session.run.clock())
        visits = claim_wanted(session, wanted, accesses, suspects=())
        visits = run_through(session, visits, round_seconds=ROUND_SECONDS)
        found += visits
    return found


def _leaves_some(session: Session, visits: Visits) -> bool:
    """True where more feeds are due than these, and there is time for them."""
    if session.seconds >= ROUND_SECONDS or len(visits) < FULL * session.run.settings.batch_size:
        return False
    if any(visit.lost or isinstance(visit.outcome, CutOff) for visit in visits):
        return False
    return not all(isinstance(visit.outcome, NotBegun) for visit in visits)
