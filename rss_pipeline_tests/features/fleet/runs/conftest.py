"""Dagster's tables in Postgres, as a fleet has them."""

import os
from collections.abc import Iterator

import pytest

from rss_pipeline.features.fleet.execute_run import STATEMENT_MS
from rss_pipeline.orchestration.instance.home import open_instance
from rss_pipeline.settings import Settings
from rss_pipeline.storage import schema
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.services.postgres import Postgres

_NAME = "of_a_fleet"


@pytest.fixture(scope="module")
def fleet(running_postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings of a fleet with a migrated database. Its broker gets no request."""
    running_postgres.create(_NAME)
    home = tmp_path_factory.mktemp("fleet")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DAGSTER_HOME", "DAGSTER_DATABASE_URL"):
            patch.setenv(name, "")
        patch.setenv("DATABASE_URL", running_postgres.tcp_url(_NAME))
        patch.setenv("RSS_BROKER_URL", "redis://:sEcReT-bRoKeR@127.0.0.1:1/0")
        patch.setenv("RSS_PIPELINE_HOME", str(home))
        settings = Settings.from_environ(os.environ, cwd=home)
        database = settings.database.connect()
        schema.migrate(database)
        database.close()
        yield settings
    running_postgres.execute("postgres", f"DROP DATABASE {_NAME} WITH (FORCE)")


@pytest.fixture(scope="module")
def on_postgres(fleet: Settings) -> Iterator[DagsterPipeline]:
    """A whole pipeline, all of its tables in Postgres."""
    with open_instance(fleet) as instance:
        # As a run at a worker has it: a connection for each event took most of the time.
        instance.optimize_for_webserver(STATEMENT_MS, 3600, 20)
        pipeline = DagsterPipeline(fleet.home, instance, database_server=fleet.database_server)
        yield pipeline
        pipeline.close()
