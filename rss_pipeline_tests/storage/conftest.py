"""The stores under test.

The two contract suites run over every implementation: a new one is a new name in `params` and a branch. The
statements by table are tried on a real SQLite file with the real schema.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rss_pipeline.storage import schema
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.folder import FolderStore
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sqlite import SqliteDatabase


@pytest.fixture(params=["sqlite"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables, of every kind there is."""
    assert request.param == "sqlite"
    database = SqliteDatabase(tmp_path / "empty.sqlite")
    yield database
    database.close()


@pytest.fixture(params=["folder"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """An empty object store, of every kind there is."""
    assert request.param == "folder"
    return FolderStore(tmp_path / "objects")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """A SQLite file with the schema in it."""
    database = SqliteDatabase(tmp_path / "rss.sqlite")
    schema.migrate(database)
    yield database
    database.close()


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
