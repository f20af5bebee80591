"""The stores under test.

The two contract suites run over every implementation, and so do the statements by table, on the real schema:
a new one is a new name in `params` and a branch. The embedded ones lie in the test's own folder; the process
of `cloudflare.py` is one for all tests, so its stores are emptied before each.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.postgres_database import tables_of


@pytest.fixture(params=["sqlite", "d1", "postgres"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables, of every kind there is."""
    if request.param != "sqlite":
        yield request.getfixturevalue(f"empty_{request.param}")
    else:
        database = SqliteDatabase(tmp_path / "empty.sqlite")
        yield database
        database.close()


@pytest.fixture(params=["folder", "r2"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """An empty object store, of every kind there is."""
    found: ObjectStore = (
        request.getfixturevalue("r2") if request.param == "r2" else FolderStore(tmp_path / "objects")
    )
    return found


@pytest.fixture(params=["sqlite", "d1", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """A database with the schema and no rows, of every kind there is."""
    fixtures = {"sqlite": "sqlite", "d1": "migrated_d1", "postgres": "migrated_postgres"}
    found: Database = request.getfixturevalue(fixtures[request.param])
    return found


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """A SQLite file with the schema in it."""
    database = migrated(tmp_path / "rss.sqlite")
    yield database
    database.close()


@pytest.fixture(scope="session")
def shared_d1(running_cloudflare: Cloudflare) -> Iterator[D1Database]:
    database = D1Database(running_cloudflare.url, running_cloudflare.token, answer_seconds=120)
    yield database
    database.close()


@pytest.fixture
def empty_d1(shared_d1: D1Database, shared_cloudflare: Cloudflare) -> D1Database:
    """D1 without tables."""
    if names := [name for kind, name, _ in _schema(shared_d1) if kind == "table"]:
        drops = [Statement(f'DROP TABLE "{name}"') for name in names]
        shared_d1.batch([Statement("PRAGMA defer_foreign_keys = ON"), *drops])
    return shared_d1


@pytest.fixture
def migrated_d1(
    request: pytest.FixtureRequest,
    shared_d1: D1Database,
    shared_cloudflare: Cloudflare,
    migrated_schema: list[tuple[str, str, str]],
) -> D1Database:
    """D1 with the schema and no rows. Where the last test left the schema, rows go and tables stay."""
    if (found := _schema(shared_d1)) == migrated_schema:
        emptied = [name for kind, name, _ in found if kind == "table" and name != "schema_migrations"]
        newest = schema.migrations()[-1].version
        future = Statement("DELETE FROM schema_migrations WHERE version > ?", [newest])
        shared_d1.batch([*(Statement(f"DELETE FROM {name}") for name in emptied), future])
    else:
        schema.migrate(request.getfixturevalue("empty_d1"))
        # Were it another one, every test would migrate, which takes ten times as long.
        assert _schema(shared_d1) == migrated_schema
    return shared_d1


@pytest.fixture(scope="session")
def migrated_schema(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """As all migrations leave it."""
    with contextlib.closing(migrated(tmp_path_factory.mktemp("schema") / "rss.sqlite")) as database:
        return _schema(database)


@pytest.fixture(scope="session")
def shared_empty_postgres(running_postgres: Postgres) -> Iterator[PostgresDatabase]:
    running_postgres.create("empty")
    database = PostgresDatabase(running_postgres.url("empty"), where="empty")
    yield database
    database.close()


@pytest.fixture
def empty_postgres(running_postgres: Postgres, shared_empty_postgres: PostgresDatabase) -> PostgresDatabase:
    """Postgres without tables, with our functions."""
    if names := tables_of(shared_empty_postgres):
        running_postgres.execute("empty", f"DROP TABLE {', '.join(names)} CASCADE")
    shared_empty_postgres.prepare()
    return shared_empty_postgres


@pytest.fixture(scope="session")
def shared_r2(running_cloudflare: Cloudflare) -> Iterator[tuple[S3Store, Any]]:
    """The store, and a client that is not its own."""
    with contextlib.closing(running_cloudflare.s3()) as s3:
        store = S3Store(
            endpoint_url=running_cloudflare.s3_endpoint,
            bucket=running_cloudflare.bucket,
            access_key_id=running_cloudflare.access_key,
            secret_access_key=running_cloudflare.secret_key,
            read_seconds=120,  # A busy machine's disk.
        )
        yield store, s3
        store.client.close()


@pytest.fixture
def r2(shared_cloudflare: Cloudflare, shared_r2: tuple[S3Store, Any]) -> S3Store:
    """R2 without objects."""
    store, s3 = shared_r2
    while found := s3.list_objects_v2(Bucket=shared_cloudflare.bucket).get("Contents"):
        keys = [{"Key": entry["Key"]} for entry in found]
        s3.delete_objects(Bucket=shared_cloudflare.bucket, Delete={"Objects": keys, "Quiet": True})
    return store


def _schema(database: Database) -> list[tuple[str, str, str]]:
    """Kind, name and SQL of all that is not the database's own. The newest first: those that refer to a table
    come before it."""
    rows = database.query(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        " AND name NOT GLOB '_cf_*' AND name NOT GLOB 'sqlite_*' ORDER BY rowid DESC"
    ).rows
    return [(row["type"], row["name"], row["sql"]) for row in rows]


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user may enter and only its owner may write: pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="rss-pipeline-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def nobody() -> Iterator[None]:
    """Act as a user whom file rights bind; root's own are not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
