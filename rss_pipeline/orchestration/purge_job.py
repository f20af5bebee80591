"""The job `purge_history`: removes run history that is past its time, and reports what that was.

What it does is purging.py's; when it starts, schedules.py's and purging_times.py's.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.ops import SessionResource
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.retention.result import Allowance
from rss_pipeline.pipeline.triggers.daily import UNFINISHED_TAG

PURGE_HISTORY = "purge_history"
PURGE_SECONDS = 600.0
"""What a purge has not done by then the next one takes up, within the hour."""


class PurgeConfig(dg.Config):
    """What a purge removes."""

    days: float | None = Field(
        default=None,
        description="Remove what ended longer ago than this; unset, RSS_HISTORY_DAYS (30).",
        gt=0,
    )
    dry_run: bool = Field(
        default=False, description="Only report what would be removed; nothing is written anywhere."
    )


@dg.op(name="purge", out=dg.Out(dg.Nothing), tags=kind("sql"))
def purge_(context: dg.OpExecutionContext, config: PurgeConfig, session: SessionResource) -> Iterator[Any]:
    """Remove old runs with all they left; tell again of each feed that only they told of."""
    # Imported in its own runs only: what it needs of Dagster takes every other process a quarter of a second.
    from rss_pipeline.orchestration.purge import Purged, purge

    with session.step():
        days = session.run.settings.history_days if config.days is None else config.days
        for each in purge(
            session.run,
            context.instance,
            keep=timedelta(days=days),
            now=session.run.clock(),
            dry_run=config.dry_run,
            allowance=Allowance(PURGE_SECONDS),
        ):
            if isinstance(each, Purged):
                if each.is_unfinished and not config.dry_run:
                    context.instance.add_run_tags(context.run_id, {UNFINISHED_TAG: "true"})
                yield dg.Output(None, metadata=each.figures())
            else:
                record_events(context, each)


@dg.job(
    name=PURGE_HISTORY,
    description=(
        "Removes runs that ended more than RSS_HISTORY_DAYS ago (30) with their events, files, compute logs"
        " and tags, ended backfills, and old ticks of sensors and schedules with what they logged. What was"
        " collected is not touched. A feed whose newest materialization would go is materialized once more,"
        " as a heartbeat without news, so that no key turns grey; a run in which somebody's own asset was"
        " last materialized stays. Started daily by `purge_daily`, which goes on within the hour where it did"
        " not finish."
    ),
    tags={"dagster/max_runtime": "1800"},
    owners=OWNERS,
)
def purge_history() -> None:
    purge_()
