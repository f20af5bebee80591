"""The sensors that send alerts to the user's webhook: about failed runs, failed checks and feeds that fail.

Off until RSS_ALERT_WEBHOOK is set. The one `alert` and the look at the checks are in
features/health/alerts.py. An alert that cannot be delivered shows in the sensor's tick and is sent later.
https://docs.dagster.io/guides/automate/run-status-sensors
"""

from collections.abc import Sequence
from datetime import datetime

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
    report_unusable,
    report_usable,
    seconds_between_looks,
)
from rss_pipeline.orchestration.reporting.feeds import FAILED_OURS
from rss_pipeline.orchestration.reporting.run_errors import first_error, was_stopped
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database


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
