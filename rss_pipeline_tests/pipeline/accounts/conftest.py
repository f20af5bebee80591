"""A database with the schema, on SQLite and on D1, and a clock that stands still until it is moved."""

from datetime import UTC, datetime, timedelta

import pytest

from rss_pipeline_tests.storage.conftest import database, empty_d1, migrated_d1, shared_d1, sqlite

__all__ = ["Time", "database", "empty_d1", "migrated_d1", "shared_d1", "sqlite", "time"]


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
