"""Alerts: a run that failed, and a feed's tenth failure in a row, to a webhook of the user's.

Off until RSS_ALERT_WEBHOOK is set. What goes out is JSON that Slack's incoming webhooks take, and Mattermost,
Rocket.Chat and Discord (with /slack at the end of its URL) as well. An alert that cannot be delivered is said
in the sensor's tick and harms nothing; nobody's URL or secret stands in a message.
https://docs.dagster.io/guides/automate/run-status-sensors
"""

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import httpx

from rss_pipeline.collector.models import Clock, from_instant, instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.orchestration.labels import CONCERNS, OWNERS
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.health import just_prominent
from rss_pipeline.storage.opening import open_database

SECONDS = 10.0
OVERLAP = timedelta(minutes=15)
"""A visit may be written that much later than its time says: its poll runs that long at most."""
_FEEDS_A_MESSAGE = 20
_LONGEST = 300


class AlertFailed(Exception):
    """The webhook did not take it. The text says why, without the URL."""


def send(settings: Settings, text: str, facts: Sequence[tuple[str, str]] = ()) -> None:
    """POST one alert to the webhook that is set: `text`, and facts as fields of an attachment.

    Raises:
        AlertFailed: nobody answers, or not with 2xx.
    """
    message: dict[str, Any] = {"text": text}
    if facts:
        fields = [{"title": title, "value": value, "short": len(value) < 40} for title, value in facts]
        message["attachments"] = [{"color": "danger", "fallback": text, "fields": fields}]
    try:
        with httpx.Client(timeout=SECONDS, trust_env=False, proxy=settings.proxy) as client:
            answer = client.post(settings.alert_webhook or "", json=message)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise AlertFailed(f"the alert could not be sent: {type(error).__name__}") from None
    if not answer.is_success:
        raise AlertFailed(f"the alert was refused with {answer.status_code}: {_cut(answer.text)}")


def build_alerts(settings: Settings, *, clock: Clock) -> list[dg.SensorDefinition]:
    """The two sensors; they run where a webhook is set."""
    for name in ("httpx", "httpcore"):
        # Below, they log the URL of each request.
        logging.getLogger(name).setLevel(logging.WARNING)
    on = settings.alert_webhook is not None
    status = dg.DefaultSensorStatus.RUNNING if on else dg.DefaultSensorStatus.STOPPED
    where = "" if on else " Off: set RSS_ALERT_WEBHOOK to a URL that takes Slack's JSON, and start again."

    @dg.run_failure_sensor(
        name="alert_run_failed",
        default_status=status,
        minimum_interval_seconds=30,
        tags={CONCERNS: "alerts"},
        description=f"Tells RSS_ALERT_WEBHOOK of every run that failed: a store, our network, a bug.{where}",
    )
    def alert_run_failed(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if settings.alert_webhook is None:
            return dg.SkipReason("RSS_ALERT_WEBHOOK is not set.")
        run = context.dagster_run
        facts = [("job", run.job_name), ("run", run.run_id), ("reason", _cut(_reason(context)))]
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
        since, told = _read_cursor(context.cursor, now)
        try:
            with open_database(settings) as database:
                found = just_prominent(database, since=since - OVERLAP)
        except RssPipelineError as error:
            return dg.SkipReason(f"The database cannot be asked: {error}")
        fresh = [row for row in found if row["id"] not in told]
        cursor = _write_cursor(now, [row["id"] for row in found])
        if not fresh:
            return dg.SensorResult(
                cursor=cursor, skip_reason=dg.SkipReason("No feed failed the tenth time in a row.")
            )
        try:
            send(settings, *_about(fresh))
        except AlertFailed as failed:
            context.log.error(str(failed))
            # The cursor stays: it is tried again at the next tick.
            return dg.SkipReason(str(failed))
        names = ", ".join(row["id"] for row in fresh[:5])
        return dg.SensorResult(cursor=cursor, skip_reason=dg.SkipReason(f"Told of {len(fresh)}: {names}."))

    # The decorator of sensors on runs takes none, though a sensor has them and the UI shows them.
    alert_run_failed._owners = OWNERS
    return [alert_run_failed, alert_feed_failing]


def _about(rows: Sequence[Row]) -> tuple[str, list[tuple[str, str]]]:
    some = rows[:_FEEDS_A_MESSAGE]
    facts = [
        (
            row["title"] or row["id"],
            _cut(f"{row['url']} — {row['last_error']} (last success: {row['last_success_at'] or 'never'})"),
        )
        for row in some
    ]
    count = "a feed has" if len(rows) == 1 else f"{len(rows)} feeds have"
    more = "" if len(some) == len(rows) else f"; {len(rows) - len(some)} more are in the check feeds_answer"
    text = f"rss_pipeline: {count} failed ten times in a row; each is asked once a day now{more}"
    return text, facts


def _reason(context: dg.RunFailureSensorContext) -> str:
    """The failure's own words, without a traceback's."""
    for step in context.get_step_failure_events():
        error = step.step_failure_data.error
        while error is not None and error.cause is not None:
            error = error.cause
        if error is not None:
            return error.message
    return context.failure_event.message or "no reason is recorded"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _read_cursor(cursor: str | None, now: datetime) -> tuple[datetime, set[str]]:
    """From when on, and the feeds told of already in the overlap. At first: what is older stays untold."""
    try:
        read = json.loads(cursor or "")
        since = from_instant(read["since"])
        told = {str(id) for id in read["told"]}
    except (ValueError, LookupError, TypeError):
        since, told = None, set()
    # A clock that was wrong must not silence the alerts until then.
    return (now if since is None else min(since, now)).astimezone(UTC), told


def _write_cursor(now: datetime, told: Sequence[str]) -> str:
    return json.dumps({"since": instant(now), "told": sorted(told)})
