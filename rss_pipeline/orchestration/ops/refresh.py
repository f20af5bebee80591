"""The ops of the job `refresh_feeds`, besides those that it shares with a poll (poll.py).

The requests of users, their claim and their answers are in reader/refresh_run.py.
https://docs.dagster.io/guides/build/ops
"""

import dagster as dg

from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.ops.claim import accesses_of, synced_registry
from rss_pipeline.orchestration.ops.visits import (
    VISITS_IO_MANAGER,
    SessionResource,
    Visits,
    visits_in,
    visits_out,
)
from rss_pipeline.orchestration.reporting import feeds as reporting
from rss_pipeline.orchestration.ui_labels import kind
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.reader.refresh_run import Requests, reportable
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.refresh.open_requests import OpenRequest

_requests = dg.DagsterType(
    name="Requests",
    type_check_fn=lambda _, value: isinstance(value, Requests),
    description="The requests of users for visits that this run has claimed.",
)
_requests_in = {"requests": dg.In(_requests)}


@dg.op(
    out={"visits": visits_out, "requests": dg.Out(_requests, io_manager_key=VISITS_IO_MANAGER)},
    tags=kind("sql"),
)
def claim_requested(context: dg.OpExecutionContext, session: SessionResource) -> tuple[Visits, Requests]:
    """Sync the registry, check that both stores work, and claim the feeds that users wait for."""
    with run_step(context, session):
        synced = synced_registry(context, session)
        reporting.mark_recorded(session.run, context.instance)
        requests = Requests(
            session,
            accesses=accesses_of(session, synced),
            suspects=None if synced is None else synced.suspects,
            search=_search,
        )
        visits = requests.claim()
        context.log.info(f"{len(visits)} feeds to refresh")
        return visits, requests


def _search(session: Session, request: OpenRequest) -> tuple[Row, Visits]:
    # Every poll imports this module, and what a search needs beside a poll takes a fiftieth of a second.
    from rss_pipeline.reader.searches import search

    return search(session, request)


@dg.op(ins={**visits_in, **_requests_in}, out=visits_out, tags=kind("http"))
def fetch_requested(
    context: dg.OpExecutionContext, session: SessionResource, visits: Visits, requests: Requests
) -> Visits:
    """Request each feed with the validators of its stored document; close unchanged and failed visits."""
    with run_step(context, session):
        return requests.fetch(visits)


@dg.op(ins={**visits_in, **_requests_in}, out=visits_out, tags=kind("sql"))
def answer(
    context: dg.OpExecutionContext, session: SessionResource, visits: Visits, requests: Requests
) -> Visits:
    """Report to the users how the visits of their feeds ended."""
    with run_step(context, session):
        requests.answer(visits)
        return visits


@dg.op(ins={**visits_in, **_requests_in}, out=visits_out, tags=kind("http"))
def visit_the_rest(
    context: dg.OpExecutionContext, session: SessionResource, visits: Visits, requests: Requests
) -> Visits:
    """Visit the feeds that another run held, and those that were requested meanwhile."""
    with run_step(context, session):
        return reportable([*visits, *requests.visit_the_rest()])
