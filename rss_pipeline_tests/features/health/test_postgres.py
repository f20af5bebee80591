"""`rss-pipeline doctor`, `status` and `migrate` with the tables in Postgres: what is wrong, what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.features.health.doctor import examine
from rss_pipeline.features.health.model import Finding
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline_tests.support.healthy_home import healthy_home
from rss_pipeline_tests.support.services.postgres import PASSWORD, Postgres


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
