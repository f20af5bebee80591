"""The state of a feed that a restore writes. Whole restores are in features/replay/test_restore.py."""

from rss_pipeline.features.replay.restore_sql import FeedState, restore_state
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline_tests.storage.values import NOW, change, feed_row, register, spec


def test_a_restored_feed_is_no_longer_postponed_by_an_outage(sqlite: SqliteDatabase) -> None:
    register(sqlite, spec("a"))
    change(sqlite, "UPDATE feeds SET schedule_reason = 'our network was down', schedule_kind = 'our_outage'")
    feed = feeds.feeds_by_id(sqlite, ["a"])["a"]
    assert restore_state(sqlite, FeedState(feed=feed, earliest=NOW), now=NOW)
    assert feed_row(sqlite)["schedule_kind"] is None, "the reason and its kind change together"
    assert feeds.not_our_outage(sqlite, ["a"], answered=True) == frozenset()
