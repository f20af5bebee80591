"""The steps of a poll with the parts of a session: the one place that hands them out.

The ops call these, and so do poll.py and claim.py. The steps themselves are modules of their own, named as
the ops.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import CutOff, Document, NotModified
from rss_pipeline.errors import NetworkUnavailable
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits import backup as backup_step
from rss_pipeline.pipeline.visits import close as close_step
from rss_pipeline.pipeline.visits import extract_images as extract_images_step
from rss_pipeline.pipeline.visits import fetch as fetch_step
from rss_pipeline.pipeline.visits import parse as parse_step
from rss_pipeline.pipeline.visits import store as store_step
from rss_pipeline.pipeline.visits.visit import Visit, Visits


def fetch(session: Session, visits: Visits, *, round_seconds: float | None = None) -> Visits:
    """Request each claimed feed. Without `round_seconds` all requests are made, however long it takes."""
    try:
        visits = fetch_step.fetch(
            visits,
            run=session.run,
            politeness=session.politeness,
            other_runs=session.other_runs,
            beginnings=session.leases,
            spool=session.spool,
            policy=replace(session.policy, round_seconds=round_seconds),
            close=_closer(session),
            backup=partial(backup, session),
            parse=partial(parse, session),
            store=[partial(_store, session), partial(_extract_early, session)],
        )
    except NetworkUnavailable:
        session.met("offline")
        raise
    outcomes = [visit.outcome for visit in visits]
    # What is cut off ends the run as an outage at its end.
    if any(isinstance(each, NotModified | Document | Failure) for each in outcomes) and not any(
        isinstance(each, CutOff) for each in outcomes
    ):
        session.answered()
    return visits


def request(session: Session, visits: Visits, *, round_seconds: float) -> Visits:
    """Request each pending feed, of which no visit begins after `round_seconds`, and close none."""
    return fetch_step.request(
        visits,
        run=session.run,
        politeness=session.politeness,
        other_runs=session.other_runs,
        beginnings=session.leases,
        spool=session.spool,
        policy=replace(session.policy, round_seconds=round_seconds),
    )


def backup(session: Session, visits: Visits) -> Visits:
    """Put each new document into the object store."""
    return backup_step.backup(
        visits,
        run=session.run,
        budget=session.backup_budget,
        objects=session.run.objects,
        close=_closer(session),
    )


def parse(session: Session, visits: Visits) -> Visits:
    """Read each document in a worker process."""
    return parse_step.parse(visits, run=session.run, pool=session.parser_pool, close=_closer(session))


def store(session: Session, visits: Visits) -> Visits:
    """Insert the items of each document and close its visit; the search for their images begins."""
    search = extract_images_step.image_search(session.run, session.parser_pool)
    return _store(session, visits, begin=lambda visit: extract_images_step.begin(visit, search))


def _store(session: Session, visits: Visits, *, begin: Callable[[Visit], None] | None = None) -> Visits:
    return store_step.store(visits, run=session.run, close=_closer(session), begin=begin)


def _extract_early(session: Session, visits: Visits) -> Visits:
    return extract_images_step.extract_early(visits, run=session.run, pool=session.parser_pool)


def extract_images(session: Session, visits: Visits) -> Visits:
    """Write a task for each image of the new items."""
    return extract_images_step.extract_images(visits, run=session.run, pool=session.parser_pool)


STEPS = (fetch, backup, parse, store, extract_images)


def run_through(session: Session, visits: Visits, *, round_seconds: float | None = None) -> Visits:
    """All steps, one after the other, and the end of the visits' leases."""
    visits = fetch(session, visits, round_seconds=round_seconds)
    for step in STEPS[1:]:
        visits = step(session, visits)
    session.leases.end({visit.token for visit in visits})
    return visits


def close(session: Session, visits: Visits, *, release: Sequence[str] = ()) -> Visits:
    """Close what ended and is not closed yet."""
    return close_step.close(
        visits,
        database=session.run.database,
        clock=session.run.clock,
        holds=session.politeness.holds,
        lease_keeper=session.leases,
        most_backup_bytes=session.run.settings.most_backup_bytes,
        release=release,
    )


def _closer(session: Session) -> close_step.Close:
    def closer(visits: Visits, *, release: Sequence[str] = ()) -> Visits:
        return close(session, visits, release=release)

    return closer
