"""The steps of a visit: fetch, backup, parse, store, extract images. Each takes visits and returns them.

No Dagster: the ops call these, and so does whoever takes a feed through all steps alone. Which feeds are
visited is decided in claiming.py.
"""

import logging

from rss_pipeline.pipeline.visits.backup import backup
from rss_pipeline.pipeline.visits.extract_images import extract_images
from rss_pipeline.pipeline.visits.fetch import fetch
from rss_pipeline.pipeline.visits.parse import parse
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.store import store
from rss_pipeline.pipeline.visits.visit import Visits

logger = logging.getLogger("rss_pipeline")


STEPS = (fetch, backup, parse, store, extract_images)


def run_through(session: Session, visits: Visits) -> Visits:
    """All steps, one after the other: for visits that do not go the way of the batch."""
    for step in STEPS:
        visits = step(session, visits)
    session.end_leases({visit.token for visit in visits})
    return visits
