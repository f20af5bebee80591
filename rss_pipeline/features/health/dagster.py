"""The health checks, as asset checks, and the job and the schedule that evaluate them.

They are those of the table in features/health/checks.py that name an asset. Each passes, warns or is an
error, with a sentence on what to do and a table of the feeds concerned. No check blocks a materialization.
https://docs.dagster.io/guides/test/asset-checks
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.health.alerts import (
    Alerted,
    AlertFact,
    OwnCursor,
    StoredCursor,
    alert,
    look,
    report_checks,
    report_unusable,
    report_usable,
    seconds_between_looks,
)
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import Check, Finding, Look, Watch
from rss_pipeline.orchestration.cause_first import cause_first
from rss_pipeline.orchestration.parts import Building, DagsterParts
from rss_pipeline.orchestration.queueing import UPKEEP_TAGS
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, ITEM_IMAGES
from rss_pipeline.orchestration.reporting.feeds import FAILED_OURS
from rss_pipeline.orchestration.reporting.run_errors import first_error, was_stopped
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
            found = health.evaluate(look) or Finding(health.name, "ok", "There is nothing to check")
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


# The sensors that send alerts to the user's webhook: about failed runs, failed checks and feeds that fail.
#
# Off until RSS_ALERT_WEBHOOK is set. The one `alert` and the look at the checks are in
# features/health/alerts.py. An alert that cannot be delivered shows in the sensor's tick and is sent later.
# https://docs.dagster.io/guides/automate/run-status-sensors


def build_alerts(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """The two sensors; they run where a webhook is set."""
    on = settings.alert_webhook is not None
    status = dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED
    how_to = "" if on else " Off: set RSS_ALERT_WEBHOOK to a URL that takes Slack's JSON, and start again."

    def alert_run_failed(context: dg.RunStatusSensorContext) -> dg.SkipReason | None:
        return _alert_of_run(context.for_run_failure(), settings, now=clock())

    def alert_check_failed(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return _alert_of_checks(context, settings, now=clock())

    return [
        _OwnedRunStatusSensor(
            name="alert_run_failed",
            run_status=dg.DagsterRunStatus.FAILURE,
            run_status_sensor_fn=alert_run_failed,
            default_status=status,
            minimum_interval_seconds=30,
            tags={CONCERNS: "alerts"},
            description=(
                "Sends a message to RSS_ALERT_WEBHOOK for every run that failed because of a store, our"
                " network or a bug. No message for a run started by hand that failed only because feeds"
                " failed, and none for runs of other code locations: those need their own run failure"
                f" sensor.{how_to}"
            ),
        ),
        dg.sensor(
            name="alert_check_failed",
            default_status=status,
            minimum_interval_seconds=int(seconds_between_looks(settings)),
            tags={CONCERNS: "alerts"},
            owners=OWNERS,
            description=(
                "Sends a message to RSS_ALERT_WEBHOOK for every health check that becomes an error or is well"
                f" again, and for every feed that failed for the tenth time in a row.{how_to}"
            ),
        )(alert_check_failed),
    ]


def _alert_of_run(
    context: dg.RunFailureSensorContext, settings: Settings, *, now: datetime
) -> dg.SkipReason | None:
    if settings.alert_webhook is None:
        return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
    if _only_feeds_failed(context):
        return dg.SkipReason("Only feeds of this run failed; the run lists them.")
    if was_stopped(_errors(context)):
        return dg.SkipReason("The run was stopped by a signal; what it had not finished is due again.")
    run = context.dagster_run
    fields = [("job", run.job_name), ("run", run.run_id), ("reason", _reason(context))]
    fact = AlertFact(kind="run", key=run.run_id, fields=fields)
    try:
        with open_database(settings) as database:
            alerted = alert(settings, StoredCursor(database), [fact], now=now)
    except RssPipelineError:
        # The database may be why the run failed.
        alerted = alert(settings, OwnCursor(), [fact], now=now)
    if alerted.refused is not None:
        context.log.error(alerted.refused)
    return None


def _alert_of_checks(
    context: dg.SensorEvaluationContext, settings: Settings, *, now: datetime
) -> dg.SensorResult | dg.SkipReason:
    if settings.alert_webhook is None:
        return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
    # For while the database cannot be used: the cursor that all processes share is in it.
    own = OwnCursor(context.cursor or None)
    try:
        with open_database(settings) as database:
            alerted = look(database, settings, now=now)
        own = report_usable(settings, own, now=now)
    except RssPipelineError as error:
        alerted = report_unusable(settings, own, error, now=now)
    if alerted.refused is not None:
        context.log.error(alerted.refused)
    return dg.SensorResult(cursor=own.text or "", skip_reason=dg.SkipReason(_said(alerted)))


def _said(alerted: Alerted) -> str:
    if alerted.refused is not None:
        return alerted.refused
    if alerted.is_backing_off:
        return "The last message was refused, or is being sent; the next attempt is later."
    if not alerted.sent:
        return "There is nothing new to report."
    names = ", ".join(
        f"{fact.key.partition(' ')[0]}{' (well again)' if fact.kind == 'well' else ''}"
        for fact in alerted.sent[:5]
    )
    return f"Sent an alert about {len(alerted.sent)}: {names}."


class _OwnedRunStatusSensor(dg.RunStatusSensorDefinition):
    """A run status sensor with owners: the UI shows them, but Dagster's own class takes none."""

    @property
    def owners(self) -> Sequence[str]:
        return OWNERS


def _only_feeds_failed(context: dg.RunFailureSensorContext) -> bool:
    """True where the steps failed only by feeds that were not collected, none of them by our fault."""
    failures = [event.step_failure_data.user_failure_data for event in context.get_step_failure_events()]
    return bool(failures) and all(
        failure is not None and failure.metadata.get(FAILED_OURS) == dg.MetadataValue.int(0)
        for failure in failures
    )


def _errors(context: dg.RunFailureSensorContext) -> list[dg.DagsterEvent]:
    return [*context.get_step_failure_events(), context.failure_event]


def _reason(context: dg.RunFailureSensorContext) -> str:
    """The first sentence of the run, without a traceback."""
    found = first_error(_errors(context))
    return context.failure_event.message or "no reason is recorded" if found is None else found[1]


def parts(of: Building) -> DagsterParts:
    """All of it."""
    settings, clock = of.settings, of.clock
    return DagsterParts(
        asset_checks=build_checks(settings, clock=clock),
        jobs=[check_health],
        schedules=[build_check_schedule()],
        sensors=[*build_alerts(settings, clock=clock), *build_watches(settings, clock=clock)],
    )
