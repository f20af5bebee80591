"""A database with the schema, on SQLite and on D1, and a clock that does not move until it is set."""

from datetime import UTC, datetime, timedelta

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.conftest import empty_d1, migrated_d1, migrated_schema, shared_d1, sqlite

__all__ = ["Time", "empty_d1", "migrated_d1", "migrated_schema", "shared_d1", "sqlite"]


@pytest.fixture(params=["sqlite", "d1"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue("sqlite" if request.param == "sqlite" else "migrated_d1")
    return found


class Time:
    """A clock."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 18, 8, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **parts: float) -> None:
        self.now += timedelta(**parts)


@pytest.fixture
def time() -> Time:
    return Time()
