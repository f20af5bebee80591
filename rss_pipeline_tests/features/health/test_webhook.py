"""Alerts to a real HTTP server: sent once, as Slack and Discord take it; a webhook that fails is no harm."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._utils.interrupts import setup_interrupt_handlers

from rss_pipeline.features.health.webhook import AlertFailed, room_for, send
from rss_pipeline.orchestration.reporting.feeds import raise_for
from rss_pipeline.pipeline.visits.summary import FailureRow
from rss_pipeline.settings import Settings
from rss_pipeline_tests.orchestration.conftest import pipeline
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.webhook import SECRET, Webhook

__all__ = ["pipeline"]

NOTHING = "There is nothing new to report."
TLS = Path(__file__).parents[2] / "support" / "tls"


def settings(url: str, ca_file: Path | None = None) -> Settings:
    """Settings that need no pipeline."""
    return Settings(home=TLS, feeds_file=TLS, user_agent="x", alert_webhook=url, ca_file=ca_file)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    yield webhook
    webhook.close()


@pytest.fixture
def failing(pipeline: DagsterPipeline, server: FeedServer, webhook: Webhook) -> DagsterPipeline:
    """A feed that has failed nine times in a row, and alerts that are on."""
    pipeline.set(alert_webhook=webhook.url)
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(status=500)), "ill")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("a"))), "well")
    pipeline.visit()
    pipeline.database.query("UPDATE feeds SET consecutive_failures = 9 WHERE id = 'ill'")
    return pipeline


def tick(pipeline: DagsterPipeline, cursor: str | None = None) -> str:
    """A tick of the sensor for checks: what it says."""
    sensor = pipeline.definitions().resolve_sensor_def("alert_check_failed")
    with dg.build_sensor_context(instance=pipeline.instance, cursor=cursor) as context:
        result = sensor(context)
    if isinstance(result, dg.SkipReason):
        return str(result.skip_message)
    assert isinstance(result, dg.SensorResult)
    assert result.skip_reason is not None
    return str(result.skip_reason.skip_message)


def test_the_tenth_failure_is_reported_once_with_its_reason(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    said = tick(failing)
    assert said == NOTHING
    failing.clock.turn(minutes=1)
    failing.visit("ill")
    said = tick(failing)
    assert said == "Sent an alert about 1: ill."
    [alert] = webhook.taken
    assert (
        alert["text"] == "rss_pipeline: a feed has failed ten times in a row; each is now visited once a day"
    )
    [field] = alert["attachments"][0]["fields"]
    assert field["title"] == "ill"
    assert "500" in field["value"]
    assert "last success: never" in field["value"]

    said = tick(failing)
    failing.clock.turn(hours=25)
    failing.visit("ill")
    said = tick(failing)
    assert len(webhook.taken) == 1, "the eleventh is none"


def test_a_visit_that_is_written_late_is_reported_all_the_same(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    tick(failing)
    failing.visit("ill")
    failing.clock.turn(minutes=8)
    failing.database.query("UPDATE feeds SET consecutive_failures = 9 WHERE id = 'ill'")
    tick(failing)
    failing.database.query("UPDATE feeds SET consecutive_failures = 10 WHERE id = 'ill'")
    failing.clock.turn(minutes=1)
    tick(failing)
    assert len(webhook.taken) == 1


def test_a_webhook_that_fails_is_tried_again_more_and_more_rarely(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    tick(failing)
    failing.visit("ill")
    webhook.status = 403
    for asked, minutes in enumerate((1, 2, 4, 8, 16, 32, 60, 60), 1):
        said = tick(failing)
        assert said == "the alert was refused with 403: invalid_token for …"
        failing.clock.turn(minutes=minutes, seconds=-1)
        said = tick(failing)
        assert said == "The last message was refused, or is being sent; the next attempt is later."
        assert webhook.asked == asked
        failing.clock.turn(seconds=1)
    webhook.status = 200
    said = tick(failing)
    assert said == "Sent an alert about 1: ill."


def test_a_webhook_that_was_down_for_days_gets_the_feeds_that_went_on_failing(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    tick(failing)
    webhook.status = 503
    for _ in range(3):
        failing.visit("ill")
        tick(failing)
        failing.clock.turn(hours=25)
    assert failing.feed("ill")["consecutive_failures"] == 12
    webhook.status = 200
    said = tick(failing)
    assert said == "Sent an alert about 2: no_feed_overdue, ill."
    failing.visit()
    failing.clock.turn(hours=2)
    assert tick(failing) == "Sent an alert about 1: no_feed_overdue (well again)."
    assert tick(failing) == NOTHING


def test_two_visits_between_two_ticks_hide_no_tenth_failure(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    tick(failing)
    failing.visit("ill")
    failing.visit("ill")
    assert failing.feed("ill")["consecutive_failures"] == 11
    assert tick(failing) == "Sent an alert about 1: ill."


def test_feeds_that_have_long_been_failing_are_not_reported(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    failing.visit("ill")
    failing.clock.turn(hours=25)
    failing.visit("ill")
    said = tick(failing)
    assert said == NOTHING, "at the first start"
    failing.database.query("UPDATE feeds SET prominent_at = NULL")
    failing.visit("ill")
    assert tick(failing) == NOTHING, "before it was written down"


def test_a_clock_that_was_wrong_pauses_no_longer_than_an_hour(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    tick(failing)
    failing.visit("ill")
    webhook.status = 500
    failing.clock.turn(days=30)
    tick(failing)
    failing.clock.turn(days=-30)
    webhook.status = 200
    assert tick(failing) == "Sent an alert about 1: ill."


def thirty_failing(pipeline: DagsterPipeline, *, title: str = "", error: str = "5") -> None:
    """Thirty feeds more that just failed the tenth time."""
    row = "SELECT 'ill' || n, url || n, host, next_fetch_at, created_at, 10, last_visited_at, last_visited_at"
    pipeline.database.query(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 30) INSERT INTO feeds (id,"
        " url, host, next_fetch_at, created_at, consecutive_failures, last_visited_at, prominent_at, title,"
        f" last_error) {row}, ?, ? FROM feeds, t WHERE id = 'ill'",
        [title, error],
    )


def test_many_feeds_are_one_message(failing: DagsterPipeline, webhook: Webhook) -> None:
    tick(failing)
    thirty_failing(failing)
    tick(failing)
    [alert] = webhook.taken
    assert len(alert["attachments"][0]["fields"]) == 20
    assert alert["text"].startswith("rss_pipeline: 30 feeds have failed ten times in a row")
    assert "10 more are in the check feeds_answer" in alert["text"]


@pytest.mark.parametrize("written", ["x", "&", "é", "<!channel> "])
def test_whatever_publishers_write_fits_into_a_message_and_calls_no_one(
    failing: DagsterPipeline, webhook: Webhook, written: str
) -> None:
    tick(failing)
    thirty_failing(failing, title=written * 200, error=written * 400)
    said = tick(failing)
    assert said.startswith("Sent an alert about 30: ")
    [alert] = webhook.taken
    fields = alert["attachments"][0]["fields"]
    assert 3 <= len(fields) < 30
    assert f"{30 - len(fields)} more are in the check feeds_answer" in alert["text"]
    assert "<" not in json.dumps(alert)
    assert "&" not in json.dumps(alert).replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    for field in fields:
        assert field["value"].startswith("http://127.0.0.2:")
        assert " — " in field["value"]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("two\n lines", "two lines"),
        ("\x1b[2J\x9b \u202egnp.exe\u2069", "\ufffd[2J\ufffd gnp.exe"),
        (
            "@everyone @here <@12> <!channel>",
            "@\u200beveryone @\u200bhere &lt;\u200b@\u200b12&gt; &lt;\u200b!channel&gt;",
        ),
        ("[here](http://e.example) ![](x)", "[here]\u200b(http://e.example) ![]\u200b(x)"),
        ("**bold** ~no~ `x` |y|", "\u2217\u2217bold\u2217\u2217 \u223cno\u223c \u02cbx\u02cb \u2223y\u2223"),
        ("_it_ __u__ http_status", "\uff3fit\uff3f \uff3f\uff3fu\uff3f\uff3f http_status"),
        ("# A heading", "\u200b#\u200b A heading"),
        (
            "> 1. - a quote #tag <#1> :boom:",
            "\u200b&gt; 1. - a quote #\u200btag &lt;\u200b#\u200b1&gt; :\u200bboom:",
        ),
        ("https://e.example:443/a/?b=c&d=e#f", "https://e.example:443/a/?b=c&amp;d=e#f"),
        ("*" * 501, "\u2217" * 499 + "…"),
        (" \t", "-"),
        ("half a pair \ud800", "half a pair ?"),
        ("x" * 501, "x" * 499 + "…"),
        ("x" * 500, "x" * 500),
        ("&" * 101, "&amp;" * 99 + "…"),
    ],
)
def test_a_text_goes_out_as_one_line_escaped_and_cut(webhook: Webhook, text: str, sent: str) -> None:
    send(settings(webhook.url), text)
    assert webhook.taken == [{"text": sent}]


def test_there_is_room_for_three_facts_at_least() -> None:
    assert room_for([("t" * 2_000, "v" * 2_000)] * 30) == 3
    assert room_for([("t", "v")] * 30) == 20
    assert room_for([]) == 0


def tell_of(pipeline: DagsterPipeline, result: dg.ExecuteInProcessResult) -> str | None:
    """A run's failure as the sensor for runs sees it: what it says where that has no text."""
    sensor = pipeline.definitions().resolve_sensor_def("alert_run_failed")
    context = dg.build_run_status_sensor_context(
        sensor_name="alert_run_failed",
        dagster_instance=pipeline.instance,
        dagster_run=result.dagster_run,
        dagster_event=result.get_run_failure_event(),
    ).for_run_failure()
    skipped = sensor(context)
    return skipped.skip_message if isinstance(skipped, dg.SkipReason) else None


def test_a_refresh_by_hand_in_which_feeds_failed_sends_no_alert(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    result = failing.materialize("ill", "well")
    assert not result.success
    assert tell_of(failing, result) == "Only feeds of this run failed; the run lists them."
    assert webhook.taken == []


@pytest.mark.parametrize("kind", ["our_network", "lost"])
def test_a_refresh_by_hand_that_failed_by_our_fault_is_reported(
    failing: DagsterPipeline, webhook: Webhook, kind: str
) -> None:
    @dg.op
    def report() -> None:
        told = [("ill", "http_status", "500"), ("well", kind, "It was ours.")]
        failed = [FailureRow(feed_id=id, url="", kind=kind, message=message) for id, kind, message in told]
        raise_for(failed, visits=2)

    @dg.job
    def refresh() -> None:
        report()

    result = refresh.execute_in_process(instance=failing.instance, raise_on_error=False)
    assert tell_of(failing, result) is None
    [alert] = webhook.taken
    assert "2 of 2 feeds were not collected" in json.dumps(alert)


def test_a_run_that_a_signal_has_stopped_sends_no_alert(failing: DagsterPipeline, webhook: Webhook) -> None:
    @dg.op
    def wait() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.sigtimedwait([], 60)

    @dg.job
    def refresh() -> None:
        wait()

    before = signal.getsignal(signal.SIGTERM)
    setup_interrupt_handlers()
    try:
        result = refresh.execute_in_process(instance=failing.instance, raise_on_error=False)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not result.success
    assert "stopped by a signal" in (tell_of(failing, result) or "")
    assert webhook.taken == []


def test_a_failed_run_is_reported_with_its_reason(failing: DagsterPipeline, webhook: Webhook) -> None:
    failing.objects.delete_many([])
    failing.database.query("DROP TABLE image_tasks")
    job = failing.definitions().resolve_job_def("check_health")
    result = job.execute_in_process(instance=failing.instance, raise_on_error=False)
    assert tell_of(failing, result) is None
    [alert] = webhook.taken
    assert alert["text"] == "rss_pipeline: a run of check_health failed"
    facts = {field["title"]: field["value"] for field in alert["attachments"][0]["fields"]}
    assert facts["run"] == result.run_id
    assert "no such table: image_tasks" in facts["reason"]


def test_a_run_that_could_not_open_a_store_is_reported_with_that_reason(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    shutil.rmtree(failing.settings.objects_path)
    failing.settings.objects_path.write_text("")
    job = failing.definitions().resolve_job_def("poll_feeds")
    result = job.execute_in_process(instance=failing.instance, raise_on_error=False)
    assert tell_of(failing, result) is None
    facts = {field["title"]: field["value"] for field in webhook.taken[0]["attachments"][0]["fields"]}
    assert facts["reason"].startswith("object folder: ")


def test_no_url_is_in_what_is_said(webhook: Webhook) -> None:
    webhook.status = 500
    for url, said in (
        (webhook.url, r"refused with 500: invalid_token for …$"),
        (f"http://127.0.0.1:1/{SECRET}", r"ConnectError: .*Connection refused$"),
        (f"http://nowhere.invalid/{SECRET}", r"ConnectError: .*[Nn]ame"),
        (f"http://127.0.0.1:80\x00/{SECRET}", r"InvalidURL$"),
        (f"ftp://127.0.0.1/{SECRET}", r"UnsupportedProtocol$"),
    ):
        with pytest.raises(AlertFailed, match=said) as caught:
            send(settings(url), "text")
        assert SECRET not in str(caught.value) + repr(caught.value.__cause__)
        assert SECRET not in repr(settings(url))


def test_a_webhook_behind_an_authority_of_ones_own_is_trusted_where_it_is_named() -> None:
    webhook = Webhook(certificate=TLS / "good.pem")
    try:
        with pytest.raises(AlertFailed, match="certificate verify failed"):
            send(settings(webhook.url), "text")
        with pytest.raises(AlertFailed, match="FileNotFoundError"):
            send(settings(webhook.url, TLS / "gone.pem"), "text")
        send(settings(webhook.url, TLS / "authority.pem"), "text")
        assert webhook.taken == [{"text": "text"}]
    finally:
        webhook.close()


def test_alerts_are_off_until_their_url_is_set(pipeline: DagsterPipeline) -> None:
    for url, status in (
        (None, dg.DefaultSensorStatus.STOPPED),
        ("http://h/x", dg.DefaultSensorStatus.RUNNING),
    ):
        pipeline.set(alert_webhook=url)
        for name in ("alert_run_failed", "alert_check_failed"):
            assert pipeline.definitions().resolve_sensor_def(name).default_status is status


def test_a_check_that_fails_in_its_job_is_reported_at_once(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    failing.objects.delete_many(failing.backups("well"))
    job = failing.definitions().resolve_job_def("check_health")
    for _ in range(2):
        job.execute_in_process(instance=failing.instance)
    [alert] = webhook.taken
    assert alert["text"] == "rss_pipeline: a check has failed: backups_there"


def test_a_database_that_is_away_for_half_an_hour_is_reported_once(
    failing: DagsterPipeline, webhook: Webhook
) -> None:
    failing.database.query("UPDATE schema_migrations SET version = 9999")
    sensor = failing.definitions().resolve_sensor_def("alert_check_failed")
    cursor = None
    for _ in range(5):
        with dg.build_sensor_context(instance=failing.instance, cursor=cursor) as context:
            result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        cursor = result.cursor
        failing.clock.turn(minutes=10)
    [alert] = webhook.taken
    assert alert["text"] == "rss_pipeline: a check has failed: stores"
    assert "9999" in json.dumps(alert)
