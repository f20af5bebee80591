"""The health checks, as asset checks, and the job and the schedule that evaluate them.

Each is one query (storage/reports) and a `Check` (pipeline/health/verdicts.py): it passes, warns or is an
error, with a sentence on what to do and a table of the feeds concerned. No check blocks a materialization.
https://docs.dagster.io/guides/test/asset-checks
"""

import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.orchestration.cause_first import cause_first
from rss_pipeline.orchestration.queueing import UPKEEP_TAGS
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, ITEM_IMAGES
from rss_pipeline.orchestration.run_config import QUIET
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.health import verdicts
from rss_pipeline.pipeline.health.findings import Check, check_d1_size, check_postgres_size, judge_disk
from rss_pipeline.pipeline.health.fleet_verdicts import judge_workers, what_to_add
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import probes
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.fleet.workers import fleet
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.reports import health as tables

CHECK_HEALTH = "check_health"
BACKUPS_LOOKED_AT = 25
"""The number of feeds with a look for their newest backup at each check: one request for each."""

Judge = Callable[[Database, datetime], Check]

_ABOUT_FEEDS: dict[str, tuple[str, Judge]] = {
    "feeds_answer": (
        "No feed has failed three times in a row, or before it was ever read. The table has the kind and the"
        " reason of each failure, since when, and the next visit.",
        lambda database, _: verdicts.judge_not_answering(tables.not_answering(database)),
    ),
    "feeds_not_gone": (
        "No publisher has answered that a feed is gone for good (HTTP status 410).",
        lambda database, _: verdicts.judge_gone(tables.gone(database)),
    ),
    "feeds_not_moved": (
        "Every feed is at its address in feeds.yaml; no permanent redirect leads to another address.",
        lambda database, _: verdicts.judge_moved(tables.moved(database), tables.redirecting(database)),
    ),
    "no_gaps": (
        "In the last week, each new document of a feed had an item in common with the one before, so none"
        " was missed.",
        lambda database, now: verdicts.judge_gaps(
            tables.with_gaps(database, since=now - verdicts.GAPS_WITHIN)
        ),
    ),
    "guids_stable": (
        "Items keep their guids, and no two share one. If a server puts changing tokens into guids, known"
        " items may come again as new ones; if it gives two items one guid or link, the second is left out.",
        lambda database, _: verdicts.judge_unstable(tables.unstable(database)),
    ),
    "dates_readable": (
        "Every feed with items has dates in them; without a date, an item gets its fetch time.",
        lambda database, _: verdicts.judge_undated(tables.undated(database)),
    ),
}
_ABOUT_IMAGES: dict[str, tuple[str, Judge]] = {
    "images_had": (
        "In the last week, no feed lost ten images or more, each after three attempts.",
        lambda database, now: verdicts.judge_given_up(
            tables.given_up_images(
                database, since=now - verdicts.GIVEN_UP_WITHIN, least=verdicts.MANY_GIVEN_UP
            )
        ),
    ),
    "no_image_backlog": (
        "No image has waited for its download longer than six hours; an error after two days.",
        lambda database, now: verdicts.judge_waiting_images(
            tables.waiting_images(database, since=now - verdicts.IMAGES_OVERDUE), now=now
        ),
    ),
}


def build_checks(settings: Settings, *, clock: Clock) -> list[dg.AssetChecksDefinition]:
    """All checks, those of the feeds first."""

    @dg.asset_check(
        asset=FEED_ITEMS,
        name="backups_there",
        description=(
            f"The {BACKUPS_LOOKED_AT} feeds that changed last have their newest backup in the object store;"
            " a restore needs it."
        ),
        compute_kind="file",
    )
    def backups_there(
        context: dg.AssetCheckExecutionContext,
        database: dg.ResourceParam[Database],
        objects: dg.ResourceParam[ObjectStore],
    ) -> dg.AssetCheckResult:
        """Look in the object store for the newest backup of each feed that changed last."""
        with cause_first(context):
            loss = diagnostics.backup_loss(database, objects, limit=BACKUPS_LOOKED_AT)
        return check_result(verdicts.judge_backups(loss))

    @dg.asset_check(
        asset=FEED_ITEMS,
        name="database_has_room",
        description=(
            "The database is below 80 % of D1's limit. If database or objects are on this machine, their disk"
            " has more than 1 GB left; an error below 100 MB."
        ),
        compute_kind="python",
    )
    def database_has_room(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        """Compare the database's size with D1's limit, and read the free space of the disk."""
        with cause_first(context):
            return judge_room()

    def judge_room() -> dg.AssetCheckResult:
        checks = []
        if settings.d1 is not None:
            size = probes.query_proxy(settings.d1, ca_file=settings.ca_file).size_bytes
            checks.append(check_d1_size(size))
        elif settings.postgres is not None:
            size = probes.query_postgres(settings.postgres).size_bytes
            checks.append(check_postgres_size(size))
        else:
            size = settings.database_path.stat().st_size if settings.database_path.exists() else None
        if settings.has_embedded_database or settings.s3 is None:
            checks.append(judge_disk(settings.home, shutil.disk_usage(settings.home).free))
        return check_result(verdicts.judge_room(checks, bytes_=size))

    def judge_overdue(database: Database, now: datetime) -> Check:
        found = tables.overdue(database, since=now - verdicts.OVERDUE)
        advice = None
        if settings.fleet is not None and found.count:
            advice = what_to_add(fleet(database), shards=settings.shards)
        return verdicts.judge_overdue(found, now=now, advice=advice)

    def judge_busiest(database: Database, now: datetime) -> Check:
        found = tables.busiest(
            database,
            day=f"{now:%Y-%m-%d}",
            items=settings.items_per_day,
            image_bytes=settings.image_mb_per_day * 1_000_000,
        )
        return verdicts.judge_busiest(found)

    busiest = _build(
        FEED_ITEMS,
        "no_feed_fills_the_disk",
        "No feed reached its most new items or bytes of images of a day. The table has those that took most"
        " today.",
        judge_busiest,
        clock=clock,
    )
    about_feeds = {
        "no_feed_overdue": (
            "No feed has waited for its visit longer than 30 minutes; an error after six hours.",
            judge_overdue,
        ),
        **_ABOUT_FEEDS,
    }
    if settings.fleet is not None:
        about_feeds["workers_alive"] = (
            "At least one worker was seen within a minute, none has died within the last day, and all have"
            " the version and the time of the main machine.",
            lambda database, _: judge_workers(fleet(database)),
        )
    of_feeds = [_build(FEED_ITEMS, name, *about, clock=clock) for name, about in about_feeds.items()]
    of_images = [_build(ITEM_IMAGES, name, *about, clock=clock) for name, about in _ABOUT_IMAGES.items()]
    return [*of_feeds, backups_there, database_has_room, busiest, *of_images]


def _build(
    asset: dg.AssetKey, name: str, description: str, judge: Judge, *, clock: Clock
) -> dg.AssetChecksDefinition:
    def check(
        context: dg.AssetCheckExecutionContext, database: dg.ResourceParam[Database]
    ) -> dg.AssetCheckResult:
        with cause_first(context):
            return check_result(judge(database, clock()))

    # The graph of a run shows it: the description of the op is the docstring of the function.
    check.__doc__ = description
    return dg.asset_check(asset=asset, name=name, description=description, compute_kind="sql")(check)


def check_result(check: Check) -> dg.AssetCheckResult:
    """A check as the UI shows it."""
    metadata: dict[str, Any] = dict(check.figures)
    if check.rows:
        metadata["concerned"] = _table(check.rows)
    return dg.AssetCheckResult(
        passed=check.state == "ok",
        severity=dg.AssetCheckSeverity.ERROR if check.state == "failure" else dg.AssetCheckSeverity.WARN,
        description=check.sentences,
        metadata=metadata,
    )


def _table(rows: Sequence[Row]) -> dg.TableMetadataValue:
    columns = [
        dg.TableColumn(name, type="int" if isinstance(value, int) else "string")
        for name, value in rows[0].items()
    ]
    records = [
        dg.TableRecord({name: "" if value is None else value for name, value in row.items()}) for row in rows
    ]
    return dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))


check_health = dg.define_asset_job(
    name=CHECK_HEALTH,
    selection=dg.AssetSelection.checks_for_assets(FEED_ITEMS, ITEM_IMAGES),
    tags={**UPKEEP_TAGS, "dagster/max_runtime": "600"},
    owners=OWNERS,
    description=(
        "Evaluates every health check: overdue, failing, gone, moved and irregular feeds, images that cannot"
        " be downloaded, backups, and the size of the database. The schedule `check_health_hourly` starts it"
        " each hour. It changes nothing."
    ),
)


def build_check_schedule() -> dg.ScheduleDefinition:
    """The schedule of `check_health`, on by default."""
    return dg.ScheduleDefinition(
        name="check_health_hourly",
        job=check_health,
        run_config=QUIET,
        cron_schedule="40 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        tags={CONCERNS: "upkeep", **UPKEEP_TAGS},
        owners=OWNERS,
        description="Starts the health checks once an hour; the pages of the assets show their results.",
    )
