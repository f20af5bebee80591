"""Alerts: a run that failed, and a feed's tenth failure in a row, to a webhook of the user's.

Off until RSS_ALERT_WEBHOOK is set. How a message is sent, and in what form, is webhook.py's. An alert that
cannot be delivered is said in the sensor's tick and harms nothing.
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
from rss_pipeline.orchestration.ui_labels import CONCERNS, OWNERS
from rss_pipeline.pipeline.health.webhook import AlertFailed, Fact, room_for, send
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.reports.health import just_prominent

OVERLAP = timedelta(minutes=15)
"""A visit may be written that much later than its time says: its poll runs that long at most."""
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 16, 32, 60))
"""After the first, second ... message in a row that was not taken; the last one from then on."""


def build_alerts(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """The two sensors; they run where a webhook is set."""
    on = settings.alert_webhook is not None
    status = dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED
    where = "" if on else " Off: set RSS_ALERT_WEBHOOK to a URL that takes Slack's JSON, and start again."

    @dg.run_failure_sensor(
        name="alert_run_failed",
        default_status=status,
        minimum_interval_seconds=30,
        tags={CONCERNS: "alerts"},
        description=(
            "Tells RSS_ALERT_WEBHOOK of every run that failed: a store, our network, a bug. Not of runs by"
            " hand that failed only because feeds of theirs did, nor of runs of other code locations: those"
            f" want a run failure sensor of their own.{where}"
        ),
    )
    def alert_run_failed(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if settings.alert_webhook is None:
            return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
        if _only_feeds_failed(context):
            return dg.SkipReason("Only feeds of this run failed; it says which.")
        run = context.dagster_run
        facts = [("job", run.job_name), ("run", run.run_id), ("reason", _reason(context))]
        try:
            send(settings, f"rss_pipeline: a run of {run.job_name} failed", facts)
        except AlertFailed as failed:
            context.log.error(str(failed))
        return None

    @dg.sensor(
        name="alert_feed_failing",
        default_status=status,
        minimum_interval_seconds=60,
        tags={CONCERNS: "alerts"},
        owners=OWNERS,
        description=f"Tells RSS_ALERT_WEBHOOK of every feed that failed the tenth time in a row.{where}",
    )
    def alert_feed_failing(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        if settings.alert_webhook is None:
            return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
        now = clock()
        cursor = _Cursor.read(context.cursor, now)
        if cursor.is_pausing(now):
            return dg.SkipReason("The webhook did not take the last message; it is asked again later.")
        try:
            with open_database(settings) as database:
                found = just_prominent(database, since=cursor.since - OVERLAP)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be asked: {error}")
        fresh = [row for row in found if row["id"] not in cursor.told]
        said = "No feed failed the tenth time in a row."
        try:
            if fresh:
                send(settings, *_about(fresh))
                names = ", ".join(row["id"] for row in fresh[:5])
                said = f"Told of {len(fresh)}: {names}."
        except AlertFailed as failed:
            context.log.error(str(failed))
            return dg.SensorResult(cursor=cursor.refused(now).write(), skip_reason=dg.SkipReason(str(failed)))
        cursor = _Cursor(
            now, frozenset(row["id"] for row in found if row["prominent_at"] >= instant(now - OVERLAP))
        )
        return dg.SensorResult(cursor=cursor.write(), skip_reason=dg.SkipReason(said))

    # The decorator of sensors on runs takes none, though a sensor has them and the UI shows them.
    alert_run_failed._owners = OWNERS
    return [alert_run_failed, alert_feed_failing]


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Up to where feeds were told of, and how the webhook does."""

    since: datetime
    """Feeds whose tenth failure is older, and more than the overlap so, are told or never will be."""
    told: frozenset[str] = frozenset()
    """Of those later than `since` less the overlap."""
    refusals: int = 0
    """Messages in a row that were not taken."""
    again_at: datetime | None = None

    @classmethod
    def read(cls, text: str | None, now: datetime) -> "_Cursor":
        """At first, feeds that have long been failing stay untold."""
        try:
            read = json.loads(text or "")
            since = from_instant(read["since"])
            told = frozenset(str(id) for id in read["told"])
            refusals, again_at = int(read.get("refusals", 0)), from_instant(read.get("again_at"))
        except (ValueError, LookupError, TypeError, AttributeError):
            return cls(now)
        # A clock that was wrong must not silence the alerts until then.
        return cls((now if since is None else min(since, now)).astimezone(UTC), told, refusals, again_at)

    def write(self) -> str:
        again_at = (
            {} if self.again_at is None else {"refusals": self.refusals, "again_at": instant(self.again_at)}
        )
        return json.dumps({"since": instant(self.since), "told": sorted(self.told), **again_at})

    def is_pausing(self, now: datetime) -> bool:
        # Likewise: no pause is longer than the last.
        return self.again_at is not None and now < self.again_at <= now + PAUSES[-1]

    def refused(self, now: datetime) -> "_Cursor":
        """With all that is untold still to be told, after a pause."""
        pause = PAUSES[min(self.refusals, len(PAUSES) - 1)]
        return replace(self, refusals=self.refusals + 1, again_at=now + pause)


def _about(rows: Sequence[Row]) -> tuple[str, list[Fact]]:
    facts = [_fact(row) for row in rows]
    told = facts[: room_for(facts)]
    count = "a feed has" if len(rows) == 1 else f"{len(rows)} feeds have"
    more = "" if len(told) == len(rows) else f"; {len(rows) - len(told)} more are in the check feeds_answer"
    text = f"rss_pipeline: {count} failed ten times in a row; each is asked once a day now{more}"
    return text, told


def _fact(row: Row) -> Fact:
    title = (row["title"] or "").strip() or row["id"]
    # A long URL must not leave the reason out.
    url, reason = row["url"][:200], (row["last_error"] or "no reason is recorded")[:300]
    return title, f"{url} — {reason} (last success: {row['last_success_at'] or 'never'})"


def _only_feeds_failed(context: dg.RunFailureSensorContext) -> bool:
    """Whether its steps ended with feeds that were not collected, none of them by our fault."""
    failures = [event.step_failure_data.user_failure_data for event in context.get_step_failure_events()]
    return bool(failures) and all(
        failure is not None and failure.metadata.get(FAILED_OURS) == dg.MetadataValue.int(0)
        for failure in failures
    )


def _reason(context: dg.RunFailureSensorContext) -> str:
    """The failure's own words, without a traceback's."""
    for step in context.get_step_failure_events():
        error = step.step_failure_data.error
        while error is not None and error.cause is not None:
            error = error.cause
        if error is not None:
            return error.message
    return context.failure_event.message or "no reason is recorded"
