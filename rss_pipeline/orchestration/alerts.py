"""The alerts: messages to the user's webhook about a failed run and about a feed's tenth failure in a row.

Off until RSS_ALERT_WEBHOOK is set. The form and the delivery of a message are in pipeline/health/webhook.py.
An alert that cannot be delivered shows in the sensor's tick and has no other effect.
https://docs.dagster.io/guides/automate/run-status-sensors
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, from_instant, instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.reporting.feeds import FAILED_OURS
from rss_pipeline.orchestration.reporting.run_errors import first_error
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.health.webhook import AlertFailed, Fact, room_for, send
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.reports.health import just_prominent

OVERLAP = timedelta(minutes=15)
"""The time of a visit and its write to the database are at most this far apart: as long as a poll runs."""
BACKOFF = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 16, 32, 60))
"""The back-off after the first, second ... message in a row that the webhook refused; then the last one."""


def build_alerts(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """The two sensors; they run where a webhook is set."""
    on = settings.alert_webhook is not None
    status = dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED
    how_to = "" if on else " Off: set RSS_ALERT_WEBHOOK to a URL that takes Slack's JSON, and start again."

    def alert_run_failed(context: dg.RunStatusSensorContext) -> dg.SkipReason | None:
        return _alert_of_run(context.for_run_failure(), settings)

    def alert_feed_failing(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return _alert_of_feeds(context, settings, now=clock())

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
            name="alert_feed_failing",
            default_status=status,
            minimum_interval_seconds=60,
            tags={CONCERNS: "alerts"},
            owners=OWNERS,
            description=(
                "Sends a message to RSS_ALERT_WEBHOOK for every feed that failed for the tenth time in a row."
                f"{how_to}"
            ),
        )(alert_feed_failing),
    ]


def _alert_of_run(context: dg.RunFailureSensorContext, settings: Settings) -> dg.SkipReason | None:
    if settings.alert_webhook is None:
        return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
    if _only_feeds_failed(context):
        return dg.SkipReason("Only feeds of this run failed; the run lists them.")
    run = context.dagster_run
    facts = [("job", run.job_name), ("run", run.run_id), ("reason", _reason(context))]
    try:
        send(settings, f"rss_pipeline: a run of {run.job_name} failed", facts)
    except AlertFailed as failed:
        context.log.error(str(failed))
    return None


def _alert_of_feeds(
    context: dg.SensorEvaluationContext, settings: Settings, *, now: datetime
) -> dg.SensorResult | dg.SkipReason:
    if settings.alert_webhook is None:
        return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
    cursor = _Cursor.read(context.cursor, now)
    if cursor.is_backing_off(now):
        return dg.SkipReason("The webhook refused the last message; the next attempt is later.")
    try:
        with open_database(settings) as database:
            found = just_prominent(database, since=cursor.since - OVERLAP)
    except RssPipelineError as error:
        return dg.SkipReason(f"The database cannot be read: {error}")
    fresh = [row for row in found if row["id"] not in cursor.reported]
    outcome = "No feed failed for the tenth time in a row."
    try:
        if fresh:
            send(settings, *_message(fresh))
            names = ", ".join(row["id"] for row in fresh[:5])
            outcome = f"Sent an alert about {len(fresh)}: {names}."
    except AlertFailed as failed:
        context.log.error(str(failed))
        return dg.SensorResult(cursor=cursor.refused(now).write(), skip_reason=dg.SkipReason(str(failed)))
    reported = frozenset(row["id"] for row in found if row["prominent_at"] >= instant(now - OVERLAP))
    return dg.SensorResult(cursor=_Cursor(now, reported).write(), skip_reason=dg.SkipReason(outcome))


class _OwnedRunStatusSensor(dg.RunStatusSensorDefinition):
    """A run status sensor with owners: the UI shows them, but Dagster's own class takes none."""

    @property
    def owners(self) -> Sequence[str]:
        return OWNERS


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The instant up to which feeds were reported, and the back-off of the webhook."""

    since: datetime
    """Feeds with an older tenth failure, by more than the overlap, were reported or never will be."""
    reported: frozenset[str] = frozenset()
    """Reported feeds with a tenth failure later than `since` minus the overlap."""
    refusals: int = 0
    """Messages in a row that the webhook refused."""
    again_at: datetime | None = None

    @classmethod
    def read(cls, text: str | None, now: datetime) -> "_Cursor":
        """The cursor in this text; without one it begins now: feeds that failed before are not reported."""
        try:
            read = json.loads(text or "")
            since = from_instant(read["since"])
            # The key's name is in the cursors of running instances.
            reported = frozenset(str(id) for id in read["told"])
            refusals, again_at = int(read.get("refusals", 0)), from_instant(read.get("again_at"))
        except (ValueError, LookupError, TypeError, AttributeError):
            return cls(now)
        # A clock that was wrong must not silence the alerts until then.
        return cls((now if since is None else min(since, now)).astimezone(UTC), reported, refusals, again_at)

    def write(self) -> str:
        again_at = (
            {} if self.again_at is None else {"refusals": self.refusals, "again_at": instant(self.again_at)}
        )
        return json.dumps({"since": instant(self.since), "told": sorted(self.reported), **again_at})

    def is_backing_off(self, now: datetime) -> bool:
        # A clock that was wrong: no back-off is longer than the last one.
        return self.again_at is not None and now < self.again_at <= now + BACKOFF[-1]

    def refused(self, now: datetime) -> "_Cursor":
        """The cursor after a refused message: nothing counts as reported, and the next attempt is later."""
        wait = BACKOFF[min(self.refusals, len(BACKOFF) - 1)]
        return replace(self, refusals=self.refusals + 1, again_at=now + wait)


def _message(rows: Sequence[Row]) -> tuple[str, list[Fact]]:
    facts = [_fact(row) for row in rows]
    shown = facts[: room_for(facts)]
    count = "a feed has" if len(rows) == 1 else f"{len(rows)} feeds have"
    more = "" if len(shown) == len(rows) else f"; {len(rows) - len(shown)} more are in the check feeds_answer"
    text = f"rss_pipeline: {count} failed ten times in a row; each is now visited once a day{more}"
    return text, shown


def _fact(row: Row) -> Fact:
    title = (row["title"] or "").strip() or row["id"]
    # A long URL must not leave the reason out.
    url, reason = row["url"][:200], (row["last_error"] or "no reason is recorded")[:300]
    return title, f"{url} — {reason} (last success: {row['last_success_at'] or 'never'})"


def _only_feeds_failed(context: dg.RunFailureSensorContext) -> bool:
    """True where the steps failed only by feeds that were not collected, none of them by our fault."""
    failures = [event.step_failure_data.user_failure_data for event in context.get_step_failure_events()]
    return bool(failures) and all(
        failure is not None and failure.metadata.get(FAILED_OURS) == dg.MetadataValue.int(0)
        for failure in failures
    )


def _reason(context: dg.RunFailureSensorContext) -> str:
    """The first sentence of the run, without a traceback."""
    found = first_error([*context.get_step_failure_events(), context.failure_event])
    return context.failure_event.message or "no reason is recorded" if found is None else found[1]
