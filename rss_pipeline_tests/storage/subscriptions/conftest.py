"""Two users and two feeds."""

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.subscriptions.readers import add_user
from rss_pipeline_tests.storage.values import register, spec


@pytest.fixture
def two(database: Database) -> Database:
    """Ann and Bob, and the feeds a and b without items; nothing is subscribed."""
    for id in ("ann", "bob"):
        add_user(database, id)
    register(database, spec("a"), spec("b"))
    return database
