"""Alerts to a real HTTP server: told once, in a form Slack takes; a webhook that fails harms nothing."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import dagster as dg
import pytest

from rss_pipeline.orchestration.alerts import AlertFailed, send
from rss_pipeline_tests.pipeline import Pipeline, rss
from rss_pipeline_tests.server import Answer, FeedServer

SECRET = "T0/B0/sEcReT"


class Webhook:
    """A server that takes alerts, or answers with another status."""

    def __init__(self) -> None:
        self.status = 200
        self.taken: list[dict[str, Any]] = []
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if webhook.status == 200:
                    webhook.taken.append(json.loads(body))
                self.send_response(webhook.status)
                self.end_headers()
                self.wfile.write(b"ok" if webhook.status == 200 else b"invalid_token")

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/services/{SECRET}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    yield webhook
    webhook.close()


@pytest.fixture
def failing(pipeline: Pipeline, server: FeedServer, webhook: Webhook) -> Pipeline:
    """A feed that has failed nine times in a row, and alerts that are on."""
    pipeline.set(alert_webhook=webhook.url)
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(status=500)), "ill")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("a"))), "well")
    pipeline.poll()
    pipeline.database.query("UPDATE feeds SET consecutive_failures = 9 WHERE id = 'ill'")
    return pipeline


def tick(pipeline: Pipeline, cursor: str | None = None) -> tuple[str | None, str]:
    """A tick of the feeds' sensor: the cursor after it, and what it says."""
    sensor = pipeline.definitions().resolve_sensor_def("alert_feed_failing")
    with dg.build_sensor_context(instance=pipeline.instance, cursor=cursor) as context:
        result = sensor(context)
    if isinstance(result, dg.SkipReason):
        return cursor, str(result.skip_message)
    assert isinstance(result, dg.SensorResult)
    assert result.skip_reason is not None
    return result.cursor, str(result.skip_reason.skip_message)


def test_the_tenth_failure_is_told_once_with_its_reason(failing: Pipeline, webhook: Webhook) -> None:
    cursor, said = tick(failing)
    assert said == "No feed failed the tenth time in a row."
    failing.clock.turn(minutes=1)
    failing.poll("ill")
    cursor, said = tick(failing, cursor)
    assert said == "Told of 1: ill."
    [alert] = webhook.taken
    assert alert["text"] == "rss_pipeline: a feed has failed ten times in a row; each is asked once a day now"
    [field] = alert["attachments"][0]["fields"]
    assert field["title"] == "ill"
    assert "500" in field["value"]
    assert "last success: never" in field["value"]

    cursor, said = tick(failing, cursor)
    failing.clock.turn(hours=25)
    failing.poll("ill")
    cursor, said = tick(failing, cursor)
    assert len(webhook.taken) == 1, "the eleventh is none"


def test_a_visit_that_is_written_late_is_told_all_the_same(failing: Pipeline, webhook: Webhook) -> None:
    cursor, _ = tick(failing)
    failing.poll("ill")
    failing.clock.turn(minutes=8)
    failing.database.query("UPDATE feeds SET consecutive_failures = 9 WHERE id = 'ill'")
    cursor, _ = tick(failing, cursor)
    failing.database.query("UPDATE feeds SET consecutive_failures = 10 WHERE id = 'ill'")
    failing.clock.turn(minutes=1)
    tick(failing, cursor)
    assert len(webhook.taken) == 1


def test_a_webhook_that_fails_is_tried_again_and_harms_nothing(failing: Pipeline, webhook: Webhook) -> None:
    cursor, _ = tick(failing)
    failing.poll("ill")
    webhook.status = 403
    before = cursor
    cursor, said = tick(failing, cursor)
    assert said == "the alert was refused with 403: invalid_token"
    assert cursor == before
    webhook.status = 200
    cursor, said = tick(failing, cursor)
    assert said == "Told of 1: ill."


def test_many_feeds_are_one_message(failing: Pipeline, webhook: Webhook) -> None:
    cursor, _ = tick(failing)
    row = "SELECT 'ill' || n, url || n, host, next_fetch_at, created_at, 10, ?, '5'"
    failing.database.query(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 30) INSERT INTO feeds (id,"
        " url, host, next_fetch_at, created_at, consecutive_failures, last_visited_at, last_error)"
        f" {row} FROM feeds, t WHERE id = 'ill'",
        [failing.feed("ill")["last_visited_at"]],
    )
    tick(failing, cursor)
    [alert] = webhook.taken
    assert len(alert["attachments"][0]["fields"]) == 20
    assert alert["text"].startswith("rss_pipeline: 30 feeds have failed ten times in a row")
    assert "10 more are in the check feeds_answer" in alert["text"]


def test_a_failed_run_is_told_with_its_reason(failing: Pipeline, webhook: Webhook) -> None:
    failing.objects.delete_many([])
    failing.database.query("DROP TABLE image_tasks")
    job = failing.definitions().resolve_job_def("check_health")
    result = job.execute_in_process(instance=failing.instance, raise_on_error=False)
    sensor = failing.definitions().resolve_sensor_def("alert_run_failed")
    context = dg.build_run_status_sensor_context(
        sensor_name="alert_run_failed",
        dagster_instance=failing.instance,
        dagster_run=result.dagster_run,
        dagster_event=result.get_run_failure_event(),
    ).for_run_failure()
    sensor(context)
    [alert] = webhook.taken
    assert alert["text"] == "rss_pipeline: a run of check_health failed"
    facts = {field["title"]: field["value"] for field in alert["attachments"][0]["fields"]}
    assert facts["run"] == result.run_id
    assert "no such table: image_tasks" in facts["reason"]


def test_nobody_s_url_stands_in_what_is_said(webhook: Webhook, failing: Pipeline) -> None:
    webhook.status = 500
    with pytest.raises(AlertFailed) as refused:
        send(failing.settings, "text")
    failing.set(alert_webhook=f"http://127.0.0.1:1/{SECRET}")
    with pytest.raises(AlertFailed) as unreachable:
        send(failing.settings, "text")
    for caught in (refused, unreachable):
        assert SECRET not in str(caught.value) + repr(caught.value.__cause__)
    assert SECRET not in repr(failing.settings)


def test_alerts_are_off_until_their_url_is_set(pipeline: Pipeline) -> None:
    for url, status in (
        (None, dg.DefaultSensorStatus.STOPPED),
        ("http://h/x", dg.DefaultSensorStatus.RUNNING),
    ):
        pipeline.set(alert_webhook=url)
        for name in ("alert_run_failed", "alert_feed_failing"):
            assert pipeline.definitions().resolve_sensor_def(name).default_status is status
