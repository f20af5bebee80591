"""The marks on topics, in the batch of whatever changes what they show, and topics that follow feeds.yaml."""

import pytest

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.collector.models.item import FeedHeader, item_id
from rss_pipeline.errors import RegistryError
from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline.storage.feeds.closing_parts import mark_header
from rss_pipeline.storage.objects import ObjectInfo
from rss_pipeline_tests.storage.values import (
    NOW,
    change,
    claim_one,
    closing,
    item,
    register,
    spec,
    visit,
)
from rss_pipeline_tests.support.pipeline import Pipeline


def topic_changes(synced: RegistrySync) -> sql.TopicChanges:
    [changes] = [each for each in synced.changes_of_features if isinstance(each, sql.TopicChanges)]
    return changes


def test_streams_and_topics_of_feeds_yaml_are_stored_and_follow_it(pipeline: Pipeline) -> None:
    one = {"one": {"author": "Jane"}}
    pipeline.register("http://example.com/feed", "feed", streams=one, allow_private=False)
    pipeline.topics = {"t": {"of": ["feed/one"], "title": "T"}}
    pipeline.write_registry()
    synced = pipeline.sync()
    assert [topic.id for topic in topic_changes(synced).written] == ["t"]
    assert "1 topics: 1 new or changed, 0 no longer listed" in str(synced)
    assert pipeline.feed("feed")["streams"] == '[{"name":"one","author":["Jane"]}]'
    assert pipeline.rows("SELECT * FROM topic_members") == [{"topic_id": "t", "feed_id": "feed"}]
    again = pipeline.sync()
    assert again.is_without_changes

    pipeline.topics["t"]["of"] = ["feed/two"]
    pipeline.write_registry()
    with pytest.raises(RegistryError, match='the feed "feed" has no stream "two"'):
        pipeline.sync()
    assert pipeline.feed("feed")["streams"] == '[{"name":"one","author":["Jane"]}]', "nothing changed"
    assert pipeline.rows("SELECT removed FROM topics") == [{"removed": 0}]

    pipeline.topics = {}
    del pipeline.feeds[0]["streams"]
    pipeline.write_registry()
    assert topic_changes(pipeline.sync()).removed == ("t",)
    assert pipeline.feed("feed")["streams"] is None


def test_topics_show_the_restored_title(database: Database) -> None:
    """Its items came before, in batches of their own."""
    register(database, spec("a"), spec("b"))
    made = sql.topic_changes([TopicSpec(id=id, of=(Member(id),)) for id in ("a", "b")], [])
    sql.write_topics(database, made)
    change(database, "UPDATE topics SET stale = 0")
    feed = feeds.feeds_by_id(database, ["a"])["a"]
    restores = pytest.importorskip("rss_pipeline.features.replay.restore_sql")
    state = restores.FeedState(feed=feed, earliest=NOW)
    assert restores.restore_state(database, state, now=NOW)
    stale = [row["id"] for row in database.query("SELECT id FROM topics WHERE stale > 0").rows]
    assert stale == ["a"]
    change(database, "UPDATE topics SET stale = 0")
    change(database, "UPDATE feeds SET content_hash = 'hash', last_visited_at = '2026'")
    assert not restores.restore_state(database, state, now=NOW)
    assert database.query("SELECT id FROM topics WHERE stale > 0").rows == []


def test_topics_show_images_that_are_found_again(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    for id in ("a", "b"):
        visit(database, [item("1")], id=id)
    sql.write_topics(
        database, sql.topic_changes([TopicSpec(id=id, of=(Member(id),)) for id in ("a", "b")], [])
    )
    change(
        database,
        """INSERT INTO image_tasks (id, item_id, original_url, created_at, updated_at, host, position)
        VALUES ('task', ?, 'https://a.example/1.png', '2026', '2026', 'a.example', 0)""",
        item_id("a", "1"),
    )
    restores = pytest.importorskip("rss_pipeline.features.replay.restore_sql")
    image = ObjectInfo(key="images/a/x/0.png", size=9, modified=NOW)
    for adopted, stale in ((1, ["a"]), (0, [])):
        change(database, "UPDATE topics SET stale = 0")
        assert restores.adopt(database, {"task": image}) == adopted
        rows = database.query("SELECT id FROM topics WHERE stale > 0").rows
        assert [row["id"] for row in rows] == stale


def test_topics_are_marked_for_a_first_document_and_for_another_title_or_link(database: Database) -> None:
    """They show fewer items of a first document, so its end changes them although its title is known."""
    register(database, spec("a", title="Mine"))
    made = sql.topic_changes([TopicSpec(id="t", of=(Member("a"),))], [])
    sql.write_topics(database, made)

    def marks(title: str | None, link: str | None, *, token: str | None = None) -> bool:
        database.query("UPDATE topics SET stale = 0")
        feed, own = claim_one(database)
        header = FeedHeader(format="rss20", title=title, link=link, charset="utf-8", charset_rule="utf-8")
        for statement in mark_header(feed, token or own, header):
            database.batch([statement])
        database.batch([closing(feed, own, [], title=title, link=link)])
        return bool(database.query("SELECT stale FROM topics").rows[0]["stale"])

    assert marks(None, None), "the first document"
    assert not marks("The publisher's title", None)
    assert marks(None, "https://a.example/")
    assert not marks(None, "https://a.example/")
    assert marks(None, "https://a.example/blog")
    assert not marks(None, "https://a.example/", token="lost")
