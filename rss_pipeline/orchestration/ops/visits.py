"""The visits that ops pass to each other, and the session that each has from the run."""

import dagster as dg

from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.visit import Visit

VISITS_IO_MANAGER = "visits_io_manager"
"""A key of our own: bound as `io_manager`, the memory would hold the assets of other projects, too."""

Visits = list[Visit]
SessionResource = dg.ResourceParam[Session]
# From the annotation list[Visit] Dagster would take a type that checks each visit before and after each op.
_visits = dg.DagsterType(
    name="Visits",
    type_check_fn=lambda _, value: isinstance(value, list),
    description="The visits of a run, or the backups of a replay, each with its outcome so far.",
)
visits_in = {"visits": dg.In(_visits)}
visits_out = dg.Out(
    _visits,
    io_manager_key=VISITS_IO_MANAGER,
    description="The visits of this run, each with its outcome so far.",
)
