"""Three stored items, and where their stories are kept."""

from pathlib import Path

import pytest

from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.stories.stored import AGAIN, LANDSLIDE, OTHER, arrive
from rss_pipeline_tests.support.stored import add_feeds


@pytest.fixture
def window(tmp_path: Path) -> Path:
    return tmp_path / "stories.window"


@pytest.fixture
def objects(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "objects")


@pytest.fixture
def three(database: Database) -> tuple[str, str, str]:
    """Two items of two feeds on one event, and another one."""
    add_feeds(database, "a", "b", "c")
    return (
        arrive(database, "a", "1", LANDSLIDE, minutes=-30),
        arrive(database, "b", "1", AGAIN, minutes=-20),
        arrive(database, "c", "1", OTHER, minutes=-10),
    )
