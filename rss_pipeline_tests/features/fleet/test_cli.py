"""`rss-pipeline worker` where it may not join: a sentence that says what to do, and no trace of it.

What it does once it has joined: test_up.py.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from rss_pipeline.features.fleet import membership as joining
from rss_pipeline.features.fleet import sql as workers
from rss_pipeline.features.fleet.membership import KEY, code_version, mark
from rss_pipeline.features.fleet.model import FleetMember
from rss_pipeline.features.health.model import SKEW_FAILURE
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.schema import migrations
from rss_pipeline_tests.features.fleet.machines import machine, main
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.redis_server import RedisServer

Join = Callable[..., Result]
MAIN = main(code_version=code_version(), schema_version=migrations()[-1].version)


@pytest.fixture
def environment(
    monkeypatch: pytest.MonkeyPatch, running_postgres: Postgres, running_redis: RedisServer
) -> pytest.MonkeyPatch:
    """A broker and a database, and this worker's name."""
    monkeypatch.setenv("DATABASE_URL", running_postgres.url("shared"))
    monkeypatch.setenv("RSS_BROKER_URL", running_redis.url(901))
    monkeypatch.setenv("RSS_WORKER_NAME", "one")
    return monkeypatch


@pytest.fixture
def database(migrated_postgres: PostgresDatabase, tmp_path: Path) -> Database:
    """With a main machine that keeps its objects in this home."""
    workers.join(migrated_postgres, MAIN, clock_offset=0)
    mark(FolderStore(tmp_path / "objects"), MAIN)
    return migrated_postgres


def refused(invoke: Any) -> str:
    found: Result = invoke("worker")
    assert found.exit_code == 1, found.output
    return " ".join(found.stderr.split())


def test_without_a_broker_it_says_which_settings_to_make(invoke: Any) -> None:
    assert "RSS_BROKER_URL: not set; a worker takes its runs from the main machine's broker" in refused(
        invoke
    )


def test_a_broker_or_a_database_that_cannot_be_used_is_reported(
    invoke: Any, environment: pytest.MonkeyPatch, running_postgres: Postgres, running_redis: RedisServer
) -> None:
    environment.setenv("RSS_BROKER_URL", f"redis://:wrong@127.0.0.1:{running_redis.port}/0")
    assert "check user and password in RSS_BROKER_URL" in refused(invoke)
    environment.setenv("RSS_BROKER_URL", running_redis.url(901))
    environment.setenv("DATABASE_URL", running_postgres.tcp_url("shared", password="wrong"))
    assert "check user and password in DATABASE_URL" in refused(invoke)


def test_a_schema_that_is_not_this_codes_is_reported(
    invoke: Any, environment: pytest.MonkeyPatch, database: Database
) -> None:
    newest = migrations()[-1].version
    database.query("INSERT INTO schema_migrations (version, name, applied_at) VALUES (9999, 'later', '')")
    assert f"the database has schema 9999, this code knows {newest} at most: update rss_pipeline" in refused(
        invoke
    )
    turn = "UPDATE schema_migrations SET version = -version WHERE abs(version) = ?"
    database.query("DELETE FROM schema_migrations WHERE version = 9999")
    database.query(turn, [newest])
    said = refused(invoke)
    database.query(turn, [newest])
    assert f"this code needs {newest}: run `rss-pipeline migrate`" in said


@pytest.mark.slow
def test_a_machine_that_does_not_fit_the_others_is_reported_and_leaves_no_trace(
    invoke: Any, environment: pytest.MonkeyPatch, database: Database, tmp_path: Path
) -> None:
    def only(*members: FleetMember) -> None:
        database.query("DELETE FROM workers")
        for member in members:
            workers.join(database, member, clock_offset=0)
            mark(FolderStore(tmp_path / "objects"), member)

    only(main(code_version="2", schema_version=MAIN.schema_version))
    assert "the main machine 2: update the one that is older" in refused(invoke)
    environment.setattr(joining, "clock_offset", lambda *_: SKEW_FAILURE * 4)
    only(MAIN)
    # A bucket refuses a wrong clock as it refuses a wrong key: so the clock is checked before it.
    FolderStore(tmp_path / "objects").delete_many([KEY])
    assert "this machine's clock is 1 h ahead of the database's" in refused(invoke)
    mark(FolderStore(tmp_path / "objects"), MAIN)
    environment.undo()
    assert [seen.member for seen in workers.fleet(database).machines] == [MAIN]


@pytest.mark.slow
def test_a_store_of_objects_that_is_not_the_main_machines_is_reported(
    invoke: Any, environment: pytest.MonkeyPatch, database: Database, tmp_path: Path
) -> None:
    environment.setattr("rss_pipeline.features.fleet.cli._LOOK_SECONDS", 0.01)
    mark(FolderStore(tmp_path / "objects"), machine("another fleet"))
    mark(FolderStore(tmp_path / "objects"), main(incarnation="other"))
    assert f"{tmp_path}/objects is not where the main machine, main, keeps objects: set S3_*" in refused(
        invoke
    )
