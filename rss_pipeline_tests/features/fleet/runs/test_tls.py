"""A broker with TLS (`rediss://`): runs go through it where its authority is trusted, and nowhere else."""

from pathlib import Path

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from rss_pipeline.features.fleet.launcher import TASK, new_app
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.services.redis_server import AUTHORITY, RedisServer
from rss_pipeline_tests.support.waiting import PROMPT


def app_of(broker_url: str, cwd: Path, **environ: str) -> Celery:
    given = {"DATABASE_URL": "postgresql://localhost/none", "RSS_BROKER_URL": broker_url, **environ}
    settings = Settings.from_environ(given, cwd=cwd)
    fleet = settings.of(FleetSettings)
    assert fleet is not None
    return new_app(settings, fleet)


def test_a_run_goes_through_a_broker_with_tls(redis_with_tls: RedisServer, tmp_path: Path) -> None:
    with app_of(redis_with_tls.url(2), tmp_path, RSS_CA_FILE=str(AUTHORITY)) as app:
        app.send_task(TASK, args=["a-run"], queue="high")
        with app.connection_for_read() as connection:
            queue = connection.SimpleQueue("high")
            message = queue.get(timeout=PROMPT)
            message.ack()
            queue.close()
        assert message.payload[0] == ["a-run"]


def test_no_run_goes_to_a_broker_with_a_certificate_of_an_unknown_authority(
    redis_with_tls: RedisServer, tmp_path: Path
) -> None:
    with (
        app_of(redis_with_tls.url(3), tmp_path) as app,
        pytest.raises(OperationalError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        app.send_task(TASK, args=["a-run"], queue="high")
