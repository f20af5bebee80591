"""Fixtures of all rooms: a feed server, a whole pipeline without Dagster, a Cloudflare when wanted.

Nothing heavy is imported here, so that a room's tests start as fast as what they test. A room's own fixtures
are in its conftest.py: in rss_pipeline_tests/orchestration a pipeline has a Dagster instance.
"""

import contextlib
import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from rss_pipeline_tests.support.server import FeedServer

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
    from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
    from rss_pipeline_tests.support.kept_parsers import KeptParsers
    from rss_pipeline_tests.support.pipeline import Pipeline
    from rss_pipeline_tests.support.services.cloudflare import Cloudflare
    from rss_pipeline_tests.support.services.postgres import Postgres
    from rss_pipeline_tests.support.services.redis_server import RedisServer


# Tests that a shell starts in the background ignore SIGINT. Dagster gives SIGTERM the same handler, so that
# it would be ignored here and in every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# To collect thousands of tests makes no garbage: to look for it again and again takes a fifth of the time.
gc.disable()

# On a busy machine inputs are slow to make, and that is no fault of what is tested.
settings.register_profile(
    "busy", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.load_profile("busy")
# For `make quick` and `make soak`.
settings.register_profile("quick", settings.get_profile("busy"), max_examples=20)
settings.register_profile("long", settings.get_profile("busy"), max_examples=500)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark the tests that start the local Cloudflare or a Postgres; put those that are to run in order."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        # Not the text of what is none: that of a body of megabytes takes long to make.
        given = getattr(getattr(item, "callspec", None), "params", {}).values()
        params = [value for value in given if isinstance(value, str)]
        if "running_cloudflare" in names or not {"cloudflare", "d1", "r2"}.isdisjoint(params):
            item.add_marker(pytest.mark.workerd)
        if "running_postgres" in names or "postgres" in params:
            item.add_marker(pytest.mark.postgres)
    yield
    items[:] = in_order(items, workers=int(getattr(config, "workerinput", {}).get("workercount", 1)))


def in_order(items: list[pytest.Item], *, workers: int) -> list[pytest.Item]:
    """Tests of minutes begin first, then the slow: begun last, they would be all that still runs.

    xdist gives each worker a part of the list, in order. Tests of minutes in one file share what they start,
    so they are in one part.
    """
    marked = {item: {mark.name for mark in item.iter_markers()} for item in items}
    minutes = [item for item in items if "minutes" in marked[item]]
    rest = [item for item in items if "minutes" not in marked[item]]
    files: dict[Path, list[pytest.Item]] = {}
    for item in minutes:
        files.setdefault(item.path, []).append(item)
    ordered: list[pytest.Item] = []
    for n in range(workers):
        first = [item for file in [*files.values()][n::workers] for item in file]
        size = max((len(items) - len(ordered)) // (workers - n) - len(first), 0)
        part, rest = rest[:size], rest[size:]
        if workers > 1:
            part.sort(key=lambda item: "slow" not in marked[item])
        ordered += [*first, *part]
    return ordered


def pytest_collection_finish() -> None:
    """Collected tests stay until the end, so the search for garbage leaves it out."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


@pytest.fixture(scope="session")
def running_cloudflare() -> Iterator["Cloudflare"]:
    """One process for all tests of the session; for fixtures of the session."""
    from rss_pipeline_tests.support.services.cloudflare import local_cloudflare

    with local_cloudflare() as running:
        yield running


@pytest.fixture
def shared_cloudflare(running_cloudflare: "Cloudflare") -> "Cloudflare":
    """As earlier tests left it, and answering; most want `cloudflare`."""
    running_cloudflare.wake()
    return running_cloudflare


@pytest.fixture
def bare_cloudflare(shared_cloudflare: "Cloudflare") -> "Cloudflare":
    """Empty: no table, no object."""
    shared_cloudflare.wipe()
    return shared_cloudflare


@pytest.fixture(scope="session")
def running_postgres() -> Iterator["Postgres"]:
    """One cluster for all tests of the session; for fixtures of the session."""
    from rss_pipeline_tests.support.services.postgres import local_postgres, programs

    if programs() is None:
        pytest.skip("no Postgres on this machine: install the package postgresql")
    with local_postgres() as running:
        yield running


@pytest.fixture(scope="session")
def running_redis() -> Iterator["RedisServer"]:
    """One server for all tests of the session; for fixtures of the session. Each test takes a database."""
    from rss_pipeline_tests.support.services.redis_server import local_redis, program

    if program() is None:
        pytest.skip("no redis-server on this machine: install the package redis-server")
    with local_redis() as running:
        yield running


@pytest.fixture(scope="session")
def redis_with_tls() -> Iterator["RedisServer"]:
    """The same, where everything is encrypted."""
    from rss_pipeline_tests.support.services.redis_server import local_redis, program

    if program() is None:
        pytest.skip("no redis-server on this machine: install the package redis-server")
    with local_redis(tls=True) as running:
        yield running


@pytest.fixture(scope="session")
def emptied_postgres(running_postgres: "Postgres") -> Iterator["Callable[[], PostgresDatabase]"]:
    from rss_pipeline_tests.support.services.postgres_database import SHARED, emptied_database

    with emptied_database(running_postgres, SHARED) as emptied:
        yield emptied


@pytest.fixture
def migrated_postgres(emptied_postgres: "Callable[[], PostgresDatabase]") -> "PostgresDatabase":
    """Postgres with the schema and no rows."""
    return emptied_postgres()


@pytest.fixture
def postgres_url(migrated_postgres: "PostgresDatabase", running_postgres: "Postgres") -> str:
    """The URL of that database, for programs that connect to it themselves."""
    from rss_pipeline_tests.support.services.postgres_database import SHARED

    return running_postgres.url(SHARED)


@pytest.fixture(scope="session")
def cloudflare_s3(running_cloudflare: "Cloudflare") -> Iterator[Any]:
    """A client of its objects for all tests: to make one takes as long as ten requests."""
    with contextlib.closing(running_cloudflare.s3()) as s3:
        yield s3


@pytest.fixture
def cloudflare(shared_cloudflare: "Cloudflare", cloudflare_s3: Any) -> "Cloudflare":
    """No row of a test and no object; the schema, or, where a test left another one, no table."""
    from rss_pipeline_tests.support.databases import migrated_rows, migrated_schema

    shared_cloudflare.empty(migrated_schema(), migrated_rows(), cloudflare_s3)
    return shared_cloudflare


@pytest.fixture(scope="session")
def kept_parsers() -> Iterator["KeptParsers"]:
    """Parser processes for the pipelines of all tests."""
    from rss_pipeline_tests.support.kept_parsers import KeptParsers

    kept = KeptParsers()
    yield kept
    kept.end()


@pytest.fixture
def pipeline(tmp_path: Path, kept_parsers: "KeptParsers") -> Iterator["Pipeline"]:
    """A whole pipeline, its state in a folder."""
    from rss_pipeline_tests.support.pipeline import Pipeline

    pipeline = Pipeline(tmp_path, parser_pool=kept_parsers)
    yield pipeline
    pipeline.close()


@pytest.fixture
def away(tmp_path: Path, cloudflare: "Cloudflare", kept_parsers: "KeptParsers") -> Iterator["Pipeline"]:
    """A pipeline with its state in D1 and R2."""
    from rss_pipeline_tests.support.pipeline import Pipeline, on_cloudflare

    pipeline = Pipeline(tmp_path, parser_pool=kept_parsers, **on_cloudflare(cloudflare))
    yield pipeline
    pipeline.close()


@pytest.fixture
def on_postgres(tmp_path: Path, postgres_url: str, kept_parsers: "KeptParsers") -> Iterator["Pipeline"]:
    """A pipeline with its tables in Postgres and its objects in a folder."""
    from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
    from rss_pipeline_tests.support.pipeline import Pipeline

    pipeline = Pipeline(tmp_path, parser_pool=kept_parsers, database_server=PostgresBackend(url=postgres_url))
    yield pipeline
    pipeline.close()


@pytest.fixture(params=["embedded", pytest.param("cloudflare", marks=pytest.mark.soak)])
def place(request: pytest.FixtureRequest) -> "Pipeline":
    """A pipeline with its state in a folder, in `make soak` also one with it in D1 and R2; for a few tests
    everywhere (support/places.py)."""
    names = {"embedded": "pipeline", "cloudflare": "away", "postgres": "on_postgres"}
    found: Pipeline = request.getfixturevalue(names[request.param])
    return found


@pytest.fixture
def instance(tmp_path: Path) -> Iterator["DagsterInstance"]:
    """A Dagster instance on disk."""
    from rss_pipeline_tests.support.dagster_pipeline import new_instance

    with new_instance(tmp_path) as instance:
        yield instance


@pytest.fixture
def dagster_pipeline(tmp_path: Path, instance: "DagsterInstance") -> Iterator["DagsterPipeline"]:
    """A whole pipeline with a Dagster instance, its state in a folder."""
    from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

    pipeline = DagsterPipeline(tmp_path, instance)
    yield pipeline
    pipeline.close()
