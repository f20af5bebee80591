"""A feed that was visited before."""

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.feeds.closed_visits import report
from rss_pipeline_tests.storage.values import HOUR, NOW, item, register, response, spec, visit


@pytest.fixture
def known(database: Database) -> Database:
    """A feed `a` with a first document that was stored and reported an hour ago."""
    register(database, spec("a"))
    answer = response(at=NOW - HOUR, etag='"1"', last_modified="Tue, 17 Feb 2026 10:00:00 GMT")
    assert visit(database, [item("1")], at=NOW - HOUR, answer=answer, content_hash="first") == 1
    report(database, now=NOW - HOUR)
    return database
