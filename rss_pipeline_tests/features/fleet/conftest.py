from collections.abc import Iterator
from pathlib import Path

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.support.databases import migrated


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """The statements are tested on all databases in test_sql.py."""
    database = migrated(tmp_path / "rss.sqlite")
    yield database
    database.close()
