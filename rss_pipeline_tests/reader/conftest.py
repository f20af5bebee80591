"""A database of every kind, and a clock that does not move until it is turned."""

import pytest

from rss_pipeline_tests.pipeline.conftest import prepared
from rss_pipeline_tests.storage.conftest import (
    database,
    empty_d1,
    migrated_d1,
    migrated_schema,
    shared_d1,
    sqlite,
)
from rss_pipeline_tests.support.pipeline import Clock

__all__ = [
    "database",
    "empty_d1",
    "migrated_d1",
    "migrated_schema",
    "prepared",
    "shared_d1",
    "sqlite",
]


@pytest.fixture
def clock() -> Clock:
    return Clock()
