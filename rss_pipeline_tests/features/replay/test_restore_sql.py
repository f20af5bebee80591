"""The state of a feed that a restore writes. Whole restores are in features/replay/test_restore.py."""

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.features.replay.restore_sql import FeedState, adopt, restore_state
from rss_pipeline.features.topics import topics
from rss_pipeline.features.topics.model import Member, TopicSpec
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feeds
from rss_pipeline.storage.objects import ObjectInfo
from rss_pipeline_tests.storage.values import NOW, change, feed_row, item, register, spec, visit


def test_a_restored_feed_is_no_longer_postponed_by_an_outage(sqlite: SqliteDatabase) -> None:
    register(sqlite, spec("a"))
    change(sqlite, "UPDATE feeds SET schedule_reason = 'our network was down', schedule_kind = 'our_outage'")
    feed = feeds.feeds_by_id(sqlite, ["a"])["a"]
    assert restore_state(sqlite, FeedState(feed=feed, earliest=NOW), now=NOW)
    assert feed_row(sqlite)["schedule_kind"] is None, "the reason and its kind change together"
    assert feeds.not_our_outage(sqlite, ["a"], answered=True) == frozenset()


def test_topics_show_the_restored_title(database: Database) -> None:
    """Its items came before, in batches of their own."""
    register(database, spec("a"), spec("b"))
    made = topics.topic_changes([TopicSpec(id=id, of=(Member(id),)) for id in ("a", "b")], [])
    topics.apply(database, made)
    change(database, "UPDATE topics SET stale = 0")
    feed = feeds.feeds_by_id(database, ["a"])["a"]
    state = FeedState(feed=feed, earliest=NOW)
    assert restore_state(database, state, now=NOW)
    stale = [row["id"] for row in database.query("SELECT id FROM topics WHERE stale > 0").rows]
    assert stale == ["a"]
    change(database, "UPDATE topics SET stale = 0")
    change(database, "UPDATE feeds SET content_hash = 'hash', last_visited_at = '2026'")
    assert not restore_state(database, state, now=NOW)
    assert database.query("SELECT id FROM topics WHERE stale > 0").rows == []


def test_topics_show_images_that_are_found_again(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    for id in ("a", "b"):
        visit(database, [item("1")], id=id)
    topics.apply(
        database, topics.topic_changes([TopicSpec(id=id, of=(Member(id),)) for id in ("a", "b")], [])
    )
    change(
        database,
        """INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position)
        VALUES ('task', ?, 'https://a.example/1.png', '2026', '2026', 'a.example', 0)""",
        item_id("a", "1"),
    )
    image = ObjectInfo(key="images/a/x/0.png", size=9, modified=NOW)
    for adopted, stale in ((1, ["a"]), (0, [])):
        change(database, "UPDATE topics SET stale = 0")
        assert adopt(database, {"task": image}) == adopted
        rows = database.query("SELECT id FROM topics WHERE stale > 0").rows
        assert [row["id"] for row in rows] == stale
