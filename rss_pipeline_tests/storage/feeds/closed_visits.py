"""Visits that end in each way there is, and the report of the changes they leave.

No test is in here.
"""

from collections.abc import Callable
from typing import Any

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_changes
from rss_pipeline_tests.storage.values import NOW, failed, item, store, unchanged


def report(database: Database, *, now: Any = NOW) -> list[feed_changes.Change]:
    changes = feed_changes.unreported(database)
    feed_changes.mark_reported(database, changes, now=now)
    return changes


ASKED = "https://a.example/a"
ENDINGS: dict[str, Callable[[Database, Feed, str], Any]] = {
    "not modified": lambda database, feed, token: unchanged(database, feed, token, etag='"new"'),
    "same bytes": lambda database, feed, token: unchanged(database, feed, token, body_bytes=9),
    "failed": lambda database, feed, token: failed(database, feed, token, answered=True, document_hash="x"),
    "stored": lambda database, feed, token: store(database, feed, token, [item("new")]),
}
