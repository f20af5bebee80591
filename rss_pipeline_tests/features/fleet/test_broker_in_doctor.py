"""`rss-pipeline doctor` with a fleet: the broker and the machines."""

from pathlib import Path

import pytest

from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.health.model import Finding
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline_tests.features.fleet.machines import machine, main
from rss_pipeline_tests.features.health.test_postgres import examined, url
from rss_pipeline_tests.support.services.redis_server import PASSWORD as BROKER_PASSWORD
from rss_pipeline_tests.support.services.redis_server import RedisServer

__all__ = ["url"]


@pytest.mark.slow
def test_the_broker_of_a_fleet_is_looked_at(tmp_path: Path, url: str, running_redis: RedisServer) -> None:
    assert "broker" not in examined(tmp_path, DATABASE_URL=url)
    broker_url = running_redis.url(901)
    found = examined(tmp_path, DATABASE_URL=url, RSS_BROKER_URL=broker_url)
    assert found["broker"] == Finding(
        "broker", "ok", f"redis://127.0.0.1:{running_redis.port}/901 takes runs", ""
    )
    assert found["machines"].state == "failure"
    assert found["machines"].found.startswith("No worker is alive: no run begins; No main machine is alive")
    database = PostgresDatabase(url, where="examined")
    workers.join(database, main(), clock_offset=601)
    workers.join(database, machine("one", runs_at_once=200), clock_offset=0)
    database.close()
    found = examined(tmp_path, DATABASE_URL=url, RSS_BROKER_URL=broker_url)
    assert found["machines"].state == "warning"
    assert "Clocks differ from the database's: main +601 s" in found["machines"].found
    assert "connections, and the main machine and 1 worker need up to some 617" in found["machines"].found
    wrong = broker_url.replace(BROKER_PASSWORD, "hunter2")
    found = examined(tmp_path, DATABASE_URL=url, RSS_BROKER_URL=wrong)
    assert found["broker"].state == "failure"
    assert "check user and password in RSS_BROKER_URL" in found["broker"].found
    assert "hunter2" not in str(found)
    assert found["database"].state == "ok"
