"""Polling that stopped is heard by `doctor`, its exit code, metrics and the webhook, daemon or not."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.health.alerts import (
    BACKOFF,
    AlertCursor,
    Alerted,
    AlertFact,
    OwnCursor,
    alert,
    look,
    report_checks,
    report_unusable,
    report_usable,
    watching,
)
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import Check, Finding, Look, State, evaluate
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline_tests.support.healthy_home import healthy_home
from rss_pipeline_tests.support.waiting import soon
from rss_pipeline_tests.support.webhook import Webhook

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    yield webhook
    webhook.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return healthy_home(tmp_path)


def due(home: Path, since: datetime, feed: str = "news") -> None:
    database = SqliteDatabase(home / "rss.sqlite")
    database.query("UPDATE feeds SET next_fetch_at = ? WHERE id = ?", [instant(since), feed])
    database.close()


def of(home: Path, webhook: Webhook) -> Settings:
    environ = {"RSS_PIPELINE_HOME": str(home), "RSS_ALERT_WEBHOOK": webhook.url}
    return Settings.from_environ(environ, cwd=home.parent)


def looked(settings: Settings, now: datetime) -> Alerted:
    with open_database(settings) as database:
        return look(database, settings, now=now)


def test_feeds_that_nothing_polls_for_seven_hours_are_heard_by_doctor_and_metrics(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)
    environ = {"RSS_PIPELINE_HOME": str(home)}
    due(home, utc_now() - timedelta(hours=7))
    # As Dagster stores a click: the sensor is off, and the daemon gave its last sign of life hours ago.
    for file in ("schedules/schedules.db", "history/runs.db"):
        (home / "dagster" / file).parent.mkdir()
    with sqlite3.connect(home / "dagster/history/runs.db") as runs:
        runs.execute("CREATE TABLE daemon_heartbeats (daemon_type, timestamp)")
        runs.execute("INSERT INTO daemon_heartbeats VALUES ('SENSOR', '2026-03-02 05:00:00.000000')")
    runs.close()
    done = CliRunner().invoke(main, ["doctor", "--json"], env=environ)
    failed = {each["name"]: each["found"] for each in json.loads(done.stdout) if each["state"] == "failure"}
    assert done.exit_code == 1
    assert set(failed) == {"overdue feeds", "daemon"}
    assert "the longest for 7 hours" in failed["overdue feeds"]
    assert failed["daemon"].startswith("it was last seen")
    with sqlite3.connect(home / "dagster/schedules/schedules.db") as schedules:
        schedules.execute("CREATE TABLE instigators (status, instigator_body)")
        body = json.dumps({"origin": {"job_name": "poll_feeds_when_due"}})
        schedules.execute("INSERT INTO instigators VALUES ('STOPPED', ?)", [body])
    schedules.close()
    done = CliRunner().invoke(main, ["doctor"], env=environ)
    assert "switched off in Dagster's UI: poll_feeds_when_due" in done.stdout
    text = CliRunner().invoke(main, ["metrics"], env=environ).stdout
    states = {
        sample.labels["check"]: sample.value
        for family in text_string_to_metric_families(text)
        if family.name == "rss_check_state"
        for sample in family.samples
    }
    assert states.pop("no_feed_overdue") == 2
    assert set(states.values()) == {0}
    checks = health_checks(Settings.from_environ(environ, cwd=home))
    assert states.keys() == {check.name for check in checks if check.asset} - {"no_feed_overdue"}


def test_a_check_that_fails_is_sent_once_by_whoever_looks_and_again_after_a_day_and_when_it_comes_again(
    home: Path, webhook: Webhook
) -> None:
    settings = of(home, webhook)
    due(home, NOON - timedelta(hours=7))
    assert looked(settings, NOON).sent == (), "it may be polled in a moment"
    assert looked(settings, NOON + MINUTE).sent == ()
    [fact] = looked(settings, NOON + 2 * MINUTE).sent
    [message] = webhook.taken
    assert message["text"] == "rss_pipeline: a check has failed: no_feed_overdue"
    assert "the longest for 7 hours" in message["attachments"][0]["fields"][0]["value"]
    assert fact.key == "no_feed_overdue"
    assert looked(settings, NOON + 3 * MINUTE).sent == ()
    looked(settings, NOON + timedelta(hours=24, minutes=3))
    assert len(webhook.taken) == 2, "a reminder each day"
    visited = NOON + timedelta(hours=25)
    due(home, visited + timedelta(hours=1))
    for minutes in range(2):
        looked(settings, visited + minutes * MINUTE)
    again = visited + timedelta(hours=8)
    for minutes in range(3):
        looked(settings, again + minutes * MINUTE)
    [well, failed] = webhook.taken[2:]
    assert well["text"] == "rss_pipeline: a check is well again: no_feed_overdue"
    assert well["attachments"][0]["fields"][0]["value"] == "Every feed is visited when it is due"
    assert well["attachments"][0]["color"] == "good"
    assert failed["text"] == "rss_pipeline: a check has failed: no_feed_overdue"


def test_any_check_alerts_from_the_state_that_it_names_until_it_is_well(home: Path, webhook: Webhook) -> None:
    settings = of(home, webhook)
    states: list[State] = ["ok", "warning", "failure", "warning", "ok", "ok", "warning", "ok", "warning"]
    check = Check(
        name="no_dust", find=lambda _: Finding("no_dust", states.pop(0), "there is dust"), alert="warning"
    )

    def evaluated(now: datetime) -> list[str]:
        with open_database(settings) as database:
            place = Look(database=database, objects=lambda: FolderStore(home), settings=settings, now=now)
            before = len(webhook.taken)
            report_checks(place, [(check, evaluate(check, place))])
        return [message["text"].removeprefix("rss_pipeline: ") for message in webhook.taken[before:]]

    failed, well = "a check has failed: no_dust", "a check is well again: no_dust"
    assert evaluated(NOON) == []
    assert evaluated(NOON) == [failed]
    assert evaluated(NOON + timedelta(hours=23)) == []
    assert evaluated(NOON + timedelta(hours=24)) == [failed]
    webhook.status = 500
    assert evaluated(NOON + timedelta(hours=25)) == []
    webhook.status = 200
    assert evaluated(NOON + timedelta(hours=26)) == [well], "the webhook did not take it before"
    assert evaluated(NOON + timedelta(hours=27)) == [failed]
    webhook.status = 500
    assert evaluated(NOON + timedelta(hours=28)) == []
    webhook.status = 200
    assert evaluated(NOON + timedelta(hours=29)) == [failed], "nobody heard that it was well, and it is not"


def test_a_poll_that_catches_up_after_a_night_has_half_an_hour(home: Path, webhook: Webhook) -> None:
    settings = of(home, webhook)
    for minutes in range(30):
        due(home, NOON - timedelta(hours=8) + minutes * MINUTE)
        assert looked(settings, NOON + minutes * MINUTE).sent == ()
    due(home, NOON - timedelta(hours=7))
    assert len(looked(settings, NOON + 30 * MINUTE).sent) == 1


def test_a_message_that_is_refused_is_sent_later(home: Path, webhook: Webhook) -> None:
    settings = of(home, webhook)
    (home / "objects/backups/news/2026-03-02T08:00:00Z.xml").unlink()
    webhook.status = 500
    assert looked(settings, NOON).refused is not None
    webhook.status = 200
    assert looked(settings, NOON).is_backing_off
    [fact] = looked(settings, NOON + BACKOFF[0]).sent
    assert fact.key == "backups_there", "it is not evaluated each minute, but until it is reported"


def test_the_cursor_of_an_older_version_goes_on() -> None:
    old = (
        '{"since": "2026-03-02T11:00:00Z", "reported": {"check backups_there": "2026-03-02T11:00:00Z"},'
        ' "unconfirmed": {"check no_feed_overdue": ["2026-03-02T11:58:00Z", "x"]},'
        ' "looked_at": {"no_image_backlog": "2026-03-02T11:30:00Z"}, "waiting": {"1a2b": [["job", "poll"]]},'
        ' "refusals": 2, "again_at": "2026-03-02T12:02:00Z"}'
    )
    cursor = AlertCursor.read(old, NOON)
    assert json.loads(cursor.write()) == json.loads(old)
    assert cursor.recovered == {}


class CutOff(OwnCursor):
    """A cursor that cannot be used any more once a message was sent, as after a kill of its process."""

    def replace(self, before: str | None, after: str) -> bool:
        if self.text is not None:
            raise DatabaseUnavailable("the store is away")
        return OwnCursor.replace(self, before, after)


@pytest.mark.parametrize("status", [200, 500])
def test_a_message_with_an_end_that_was_not_noted_is_sent_again(
    home: Path, webhook: Webhook, status: int
) -> None:
    settings = of(home, webhook)
    run = AlertFact(kind="run", key="1a2b", fields=[("job", "poll"), ("run", "1a2b")])
    webhook.status = status
    cut_off = CutOff()
    with pytest.raises(DatabaseUnavailable):
        alert(settings, cut_off, [run], now=NOON)
    webhook.status, left = 200, OwnCursor(cut_off.text)
    other = AlertFact(kind="feed", key="a", fields=[("A", "it fails")])
    assert alert(settings, left, [other], now=NOON).is_backing_off, "it may still be under way"
    # No one finds a run again: it is in the cursor.
    sent = alert(settings, left, [other], now=NOON + MINUTE).sent
    assert [fact.key for fact in sent] == ["1a2b", "a"]
    assert alert(settings, left, [other], now=NOON + 2 * MINUTE).sent == ()


def test_the_reader_alone_sends_what_is_wrong_and_that_the_database_is_away(
    home: Path, webhook: Webhook
) -> None:
    settings = of(home, webhook)
    minutes = count()

    def clock() -> datetime:
        return NOON + next(minutes) * MINUTE

    due(home, NOON - timedelta(hours=7))
    with watching(settings, clock=clock, seconds=0.01):
        soon(lambda: webhook.taken)
    assert "overdue" in webhook.taken[0]["text"]
    webhook.taken.clear()
    away = replace(settings, home=home / "dagster" / "dagster.yaml")
    with watching(away, clock=clock, seconds=0.01):
        soon(lambda: webhook.taken)
    assert webhook.taken[0]["text"] == "rss_pipeline: a check has failed: stores"


def test_stores_that_can_be_used_again_are_reported_once(home: Path, webhook: Webhook) -> None:
    settings, own = of(home, webhook), OwnCursor()
    away = DatabaseUnavailable("no answer")
    for minutes in (0, 31):
        report_unusable(settings, own, away, now=NOON + minutes * MINUTE)
    webhook.status = 500
    own = report_usable(settings, own, now=NOON + 40 * MINUTE)
    webhook.status = 200
    for minutes in (42, 43):
        own = report_usable(settings, own, now=NOON + minutes * MINUTE)
    assert [message["text"] for message in webhook.taken] == [
        "rss_pipeline: a check has failed: stores",
        "rss_pipeline: a check is well again: stores",
    ]
    report_unusable(settings, own, away, now=NOON + 50 * MINUTE)
    own = report_usable(settings, own, now=NOON + 51 * MINUTE)
    assert (own.text, len(webhook.taken)) == (None, 2)


def test_each_check_that_alerts_is_in_doctor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.parent)
    done = CliRunner().invoke(main, ["doctor", "--json"], env={"RSS_PIPELINE_HOME": str(home)})
    names = {each["name"] for each in json.loads(done.stdout)}
    own = {"database_has_room": "database size"}
    settings = Settings.from_environ({}, cwd=home.parent)
    for check in health_checks(settings):
        assert check.alert is None or {check.doctor, own.get(check.name)} & names, check.name
