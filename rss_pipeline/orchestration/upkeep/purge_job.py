"""The job `purge_history`: it removes old run history, and reports what it removed.

The purge itself is in purge.py; schedules.py starts it.
https://docs.dagster.io/guides/build/jobs/op-jobs
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.purged import Purged
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.ops.visits import SessionResource
from rss_pipeline.orchestration.run_config import plain
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.retention.result import Allowance
from rss_pipeline.pipeline.triggers.daily import UNFINISHED_TAG

PURGE_HISTORY = "purge_history"
PURGE_SECONDS = 600.0
"""A purge stops after this time; the next one, within the hour, continues."""


class PurgeConfig(dg.Config):
    """The options of a purge."""

    days: float | None = Field(
        default=None,
        description="Remove runs that ended more days ago than this. Default: RSS_HISTORY_DAYS (30).",
        gt=0,
    )
    dry_run: bool = Field(default=False, description="Only report what would be removed; nothing is written.")


@dg.op(name="purge", config_schema=plain(PurgeConfig), out=dg.Out(dg.Nothing), tags=kind("sql"))
def purge_(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Remove old runs with their files; record again each feed with its only event in one of them."""
    # Imported in its own runs only: what it needs of Dagster takes every other process a quarter of a second.
    from rss_pipeline.orchestration.upkeep.purge import purge

    config = PurgeConfig(**context.op_config)
    with run_step(context, session):
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
        "Removes runs that ended more than RSS_HISTORY_DAYS (30) ago with their events, files, compute logs"
        " and tags, ended backfills, and old ticks of sensors and schedules with their logs. Collected items"
        " stay. A feed with its newest materialization in such a run gets a new one, without news, so that no"
        " partition turns grey; a run with the newest materialization of a downstream asset is kept. The"
        " schedule `purge_daily` starts it each day, and again within the hour if it did not finish."
    ),
    tags={"dagster/max_runtime": "1800"},
    owners=OWNERS,
)
def purge_history() -> None:
    purge_()
