"""The job `clean_store`, which removes old items, images and backups, what it reports, and its schedules.

https://docs.dagster.io/guides/build/jobs/op-jobs
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import CleanRefused
from rss_pipeline.features.retention.model import CleanResult, Removed
from rss_pipeline.features.retention.service import clean
from rss_pipeline.orchestration.cause_first import cause_first
from rss_pipeline.orchestration.parts import Building, DagsterParts
from rss_pipeline.orchestration.run_config import NOTHING, plain
from rss_pipeline.orchestration.schedules import upkeep_schedule
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.triggers.daily import (
    REFUSED_TAG,
    UNFINISHED_TAG,
    Allowance,
    decide_again,
    decide_daily,
)
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

CLEAN_STORE = "clean_store"
CLEAN_SECONDS = 600.0
"""A clean stops after this time; the next one, within the hour, continues."""
BACKUPS_TAG = "rss_pipeline/backups_through"
"""A tag of a clean that did not come to all backups: the last one that it looked at."""

_RUNS_LOOKED_AT = 8
"""For one that was no dry run."""
_TABLE_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """The stores and settings of a clean. A resource of the run."""

    settings: Settings
    database: Database
    objects: ObjectStore
    clock: Clock


def cleaning_resource(settings: Settings, *, clock: Clock) -> dg.ResourceDefinition:
    """The `Cleaning` of a run, with the stores of the run."""

    def open_cleaning(context: dg.InitResourceContext) -> Cleaning:
        return Cleaning(
            settings=settings,
            database=context.resources.database,
            objects=context.resources.objects,
            clock=clock,
        )

    return dg.ResourceDefinition(
        resource_fn=open_cleaning,
        config_schema=NOTHING,
        required_resource_keys={"database", "objects"},
        description="Everything a clean needs: the stores, and how long items and backups are kept.",
    )


class CleanConfig(dg.Config):
    """The options of a clean."""

    dry_run: bool = Field(default=False, description="Only report what would be removed; nothing is written.")
    yes: bool = Field(
        default=False,
        description=(
            "Remove it although it is a large part of all items (a fifth, or half of a small store), or"
            " no feed was visited for days. Both are usually a wrong clock."
        ),
    )


@dg.op(name="clean", config_schema=plain(CleanConfig), out=dg.Out(dg.Nothing), tags=kind("sql"))
def clean_(context: dg.OpExecutionContext, cleaning: dg.ResourceParam[Cleaning]) -> dg.Output[None]:
    """Remove old items with their images, and old backups; write backups again that must not expire."""
    config = CleanConfig(**context.op_config)
    with cause_first(context):
        try:
            cleaned = clean(
                cleaning.database,
                cleaning.objects,
                cleaning.settings,
                now=cleaning.clock(),
                dry_run=config.dry_run,
                confirmed=config.yes,
                allowance=Allowance(CLEAN_SECONDS),
                backups_after=_looked_through(context.instance),
            )
        except CleanRefused:
            context.instance.add_run_tags(context.run_id, {REFUSED_TAG: "true"})
            raise
        if cleaned.refusal is not None:
            context.log.warning(f"Without `dry_run`: {cleaned.refusal}")
        if cleaned.is_unfinished and not config.dry_run:
            context.instance.add_run_tags(context.run_id, {UNFINISHED_TAG: "true"})
            if cleaned.backups_through is not None:
                context.instance.add_run_tags(context.run_id, {BACKUPS_TAG: cleaned.backups_through})
        for key, reason in cleaned.refusals.items():
            context.log.warning(f"{key} could not be removed: {reason}")
        return dg.Output(None, metadata=metadata(cleaned))


def _looked_through(instance: dg.DagsterInstance) -> str:
    """The backup at which the last clean that ended by itself stopped, or nothing: to go on behind it."""
    ended = dg.RunsFilter(job_name=CLEAN_STORE, statuses=[dg.DagsterRunStatus.SUCCESS])
    for run in instance.get_runs(ended, limit=_RUNS_LOOKED_AT):
        config: Any = run.run_config
        if not config.get("ops", {}).get("clean", {}).get("config", {}).get("dry_run"):
            return run.tags.get(BACKUPS_TAG, "")
    return ""


def metadata(cleaned: CleanResult) -> dict[str, Any]:
    """Numbers, which plot over runs, and a table of the feeds with the most removed items."""
    tables: dict[str, Any] = {}
    if cleaned.by_feed:
        tables["by_feed"] = _table(cleaned.by_feed)
    return {**cleaned.figures(), **tables}


def _table(by_feed: Mapping[str, Removed]) -> dg.TableMetadataValue:
    first = sorted(by_feed.items(), key=lambda each: (-each[1].items, -each[1].backups, each[0]))
    columns = [dg.TableColumn("feed")]
    columns += [dg.TableColumn(each.name, type="int") for each in fields(Removed)]
    records = [dg.TableRecord({"feed": id, **asdict(removed)}) for id, removed in first[:_TABLE_ROWS]]
    return dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))


@dg.job(
    name=CLEAN_STORE,
    description=(
        "Removes items older than RSS_KEEP_DAYS (or `keep` in feeds.yaml) with their images, and backups"
        " older than RSS_BACKUP_DAYS, and feeds a week after their last subscriber left;"
        " the newest backup of each feed is written again before it expires. A"
        " removed item does not come back while its feed still lists it. The schedule `clean_daily` starts"
        " it each day; if it did not finish, `clean_again` starts it again within the hour. The run fails"
        " if a store fails, or if it would remove what is probably not old; `yes` in its configuration"
        " confirms that."
    ),
    # A run that was killed with its machine looks alive until then.
    tags={"dagster/max_runtime": "1800"},
    owners=OWNERS,
)
def clean_store() -> None:
    clean_()


def parts(of: Building) -> DagsterParts:
    """The job with its resource and its schedules."""
    at = of.settings.clean_at
    return DagsterParts(
        jobs=[clean_store],
        schedules=[
            upkeep_schedule(
                of,
                "clean_daily",
                clean_store,
                f"{at.minute} {at.hour} * * *",
                decide_daily,
                f"Starts the clean each day at {at:%H:%M} ({of.settings.timezone}), the time of RSS_CLEAN_AT"
                " and RSS_TIMEZONE.",
            ),
            upkeep_schedule(
                of,
                "clean_again",
                clean_store,
                # Half an hour after the daily one, so that the two never start a clean each.
                f"{(at.minute + 30) % 60} * * * *",
                decide_again,
                "Starts the clean again where the last one failed, was killed, or left work.",
            ),
        ],
        resources={"cleaning": cleaning_resource(of.settings, clock=of.clock)},
    )
