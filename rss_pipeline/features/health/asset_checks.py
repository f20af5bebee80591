"""The health checks, as asset checks, and the job and the schedule that evaluate them.

They are those of the table in features/health/checks.py that name an asset. Each passes, warns or is an
error, with a sentence on what to do and a table of the feeds concerned. No check blocks a materialization.
https://docs.dagster.io/guides/test/asset-checks
"""

from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.health.alerts import report_checks
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import Check, Finding, Look, Watch
from rss_pipeline.orchestration.cause_first import cause_first
from rss_pipeline.orchestration.queueing import UPKEEP_TAGS
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, ITEM_IMAGES
from rss_pipeline.orchestration.run_config import QUIET
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.objects import ObjectStore

CHECK_HEALTH = "check_health"
_ASSETS = {"feeds": FEED_ITEMS, "images": ITEM_IMAGES}


def build_checks(settings: Settings, *, clock: Clock) -> list[dg.AssetChecksDefinition]:
    """All checks, those of the feeds first."""
    return [
        _build(check, _ASSETS[check.asset], settings, clock=clock)
        for check in health_checks(settings)
        if check.asset is not None
    ]


def _build(
    health: Check, asset: dg.AssetKey, settings: Settings, *, clock: Clock
) -> dg.AssetChecksDefinition:
    def result(
        context: dg.AssetCheckExecutionContext, database: Database, objects: Callable[[], ObjectStore]
    ) -> dg.AssetCheckResult:
        with cause_first(context):
            look = Look(database=database, objects=objects, settings=settings, now=clock())
            found = health.find(look) or Finding(health.name, "ok", "There is nothing to check")
        # A message that cannot be sent fails no check.
        report_checks(look, [(health, found)])
        return check_result(found)

    def by_database(
        context: dg.AssetCheckExecutionContext, database: dg.ResourceParam[Database]
    ) -> dg.AssetCheckResult:
        return result(context, database, lambda: open_objects(settings))

    def by_objects(
        context: dg.AssetCheckExecutionContext,
        database: dg.ResourceParam[Database],
        objects: dg.ResourceParam[ObjectStore],
    ) -> dg.AssetCheckResult:
        return result(context, database, lambda: objects)

    # A check without objects does not open their store, so that it passes while that is away.
    check: Callable[..., dg.AssetCheckResult] = by_objects if health.kind == "file" else by_database
    # The graph of a run shows it: the description of the op is the docstring of the function.
    check.__doc__ = health.description
    return dg.asset_check(
        asset=asset,
        name=health.name,
        description=health.description,
        compute_kind=health.kind,
    )(check)


def check_result(found: Finding) -> dg.AssetCheckResult:
    """A finding as the UI shows it."""
    metadata: dict[str, Any] = dict(found.figures)
    if found.rows:
        metadata["concerned"] = _table(found.rows)
    return dg.AssetCheckResult(
        passed=found.state == "ok",
        severity=dg.AssetCheckSeverity.ERROR if found.state == "failure" else dg.AssetCheckSeverity.WARN,
        description=found.sentences,
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


def build_watches(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """The sensors that evaluate a check as soon as its result changes, on the main machine; on by default.

    The job of the other checks may be executed by a worker: it could never say that there is none.
    """
    return [
        _build_watch(check, check.watch, settings, clock=clock)
        for check in health_checks(settings)
        if check.watch is not None
    ]


def _build_watch(check: Check, watch: Watch, settings: Settings, *, clock: Clock) -> dg.SensorDefinition:
    def evaluate(context: dg.SensorEvaluationContext) -> dg.SkipReason | dg.SensorResult:
        try:
            with open_database(settings) as database:
                look = Look(
                    database=database,
                    objects=lambda: open_objects(settings),
                    settings=settings,
                    now=clock(),
                )
                found, state = watch.look(look)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be read: {error}")
        if state == context.cursor:
            return dg.SkipReason(f"{found.found}.")
        result = check_result(found)
        evaluation = dg.AssetCheckEvaluation(
            asset_key=_ASSETS[check.asset or "feeds"],
            check_name=check.name,
            passed=result.passed,
            severity=result.severity,
            description=result.description,
            metadata=result.metadata,
        )
        return dg.SensorResult(asset_events=[evaluation], skip_reason=f"{found.found}.", cursor=state)

    return dg.sensor(
        name=watch.sensor,
        minimum_interval_seconds=watch.seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        tags={CONCERNS: "upkeep"},
        owners=OWNERS,
        description=watch.description,
    )(evaluate)


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
