"""`rss-pipeline doctor`, `status` and `migrate` with the tables in Postgres: what is wrong, what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.health.doctor import examine
from rss_pipeline.features.health.model import Finding
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline_tests.features.fleet.machines import machine, main
from rss_pipeline_tests.support.healthy_home import healthy_home
from rss_pipeline_tests.support.services.postgres import PASSWORD, Postgres
from rss_pipeline_tests.support.services.redis_server import PASSWORD as BROKER_PASSWORD
from rss_pipeline_tests.support.services.redis_server import RedisServer


@pytest.fixture
def url(running_postgres: Postgres) -> str:
    """The size of a database with the schema."""
    running_postgres.execute("postgres", "DROP DATABASE IF EXISTS examined WITH (FORCE)")
    running_postgres.create("examined")
    database = PostgresDatabase(running_postgres.url("examined"), where="examined")
    schema.migrate(database)
    database.close()
    return running_postgres.tcp_url("examined")


def examined(tmp_path: Path, **environ: str) -> dict[str, Finding]:
    home = tmp_path / "home"
    if not home.exists():
        healthy_home(tmp_path)
    checks = examine({"RSS_PIPELINE_HOME": str(home), **environ}, cwd=tmp_path, clock=utc_now)
    return {check.name: check for check in checks}


@pytest.mark.slow
def test_a_database_in_postgres_is_ok_with_its_version_size_and_clock(tmp_path: Path, url: str) -> None:
    found = examined(tmp_path, DATABASE_URL=url)
    assert {
        name: check.state for name, check in found.items() if name.startswith(("database", "schema"))
    } == {
        "database": "ok",
        "database clock": "ok",
        "database size": "ok",
        "schema": "ok",
    }
    assert "PostgreSQL 1" in found["database"].found
    assert found["settings"].found == "complete; state is kept in Postgres and a folder"
    assert PASSWORD not in str(found)


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


@pytest.mark.slow
def test_what_is_wrong_with_postgres_is_said_and_the_other_checks_go_on(
    tmp_path: Path, url: str, running_postgres: Postgres
) -> None:
    cases = {
        url.replace(PASSWORD, "hunter2"): "check user and password in DATABASE_URL",
        url.replace("/examined", "/nosuch"): "check the database's name in DATABASE_URL",
        running_postgres.tcp_url("examined", port=1): "no server listens there",
    }
    for wrong, said in cases.items():
        found = examined(tmp_path, DATABASE_URL=wrong)
        assert (found["database"].state, said in found["database"].found) == ("failure", True)
        assert found["objects"].state == "ok"
        assert "hunter2" not in str(found)
        assert PASSWORD not in str(found)
    found = examined(tmp_path, DATABASE_URL="mysql://u:hunter2@h/d")
    assert found["settings"].state == "failure"
    assert "DATABASE_URL: not the URL of a database" in found["settings"].found
    assert "database" not in found


@pytest.mark.slow
def test_a_schema_or_functions_that_are_behind_say_migrate(
    tmp_path: Path, url: str, running_postgres: Postgres
) -> None:
    running_postgres.execute("examined", "COMMENT ON SCHEMA rss_sqlite IS 'older'")
    found = examined(tmp_path, DATABASE_URL=url)
    assert found["database functions"].state == "failure"
    assert "run `rss-pipeline migrate`" in found["database functions"].found
    dropping = "DROP SCHEMA public CASCADE;\nCREATE SCHEMA public;\nDROP SCHEMA rss_sqlite CASCADE"
    running_postgres.execute("examined", dropping)
    schema = examined(tmp_path, DATABASE_URL=url)["schema"]
    assert (schema.state, schema.fix) == ("failure", "Run `rss-pipeline migrate`.")


def command(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "RSS_PIPELINE_HOME": str(tmp_path / "home"), **environ}
    return subprocess.run(
        [sys.executable, "-m", "rss_pipeline.cli", *arguments],
        env=given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_status_says_migrate_and_after_migrate_the_feeds_can_be_counted(
    tmp_path: Path, running_postgres: Postgres
) -> None:
    running_postgres.execute("postgres", "DROP DATABASE IF EXISTS examined WITH (FORCE)")
    running_postgres.create("examined")
    environ = {"DATABASE_URL": running_postgres.tcp_url("examined")}
    before = command(tmp_path, "status", **environ)
    assert before.returncode == 1
    assert "the database has schema 0" in before.stderr
    assert "run `rss-pipeline migrate`" in before.stderr
    migrated = command(tmp_path, "migrate", **environ)
    assert (migrated.returncode, "schema.sql" in migrated.stdout) == (0, True)
    assert PASSWORD not in migrated.stdout
    again = command(tmp_path, "migrate", **environ)
    assert "already up to date" in again.stdout
    refused = command(tmp_path, "status", DATABASE_URL=running_postgres.tcp_url("examined", port=1))
    assert refused.returncode == 1
    assert "no server listens there" in refused.stderr
    assert not list(tmp_path.rglob("rss.sqlite"))
