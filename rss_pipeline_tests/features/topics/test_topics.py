"""Topics of the registry in their tables: what is new, changed, gone or back, and what is published again."""

from datetime import timedelta

import pytest

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.features.streams.model import FieldSelector, StreamSpec
from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.stale import mark_stale
from rss_pipeline_tests.features.streams.stream_documents import keys
from rss_pipeline_tests.storage.values import register, spec


def topic(id: str, *of: str, **keys: object) -> TopicSpec:
    return TopicSpec(id=id, of=tuple(map(Member.of, of)), **keys)  # type: ignore[arg-type]


def sync(database: Database, *specs: TopicSpec) -> sql.TopicChanges:
    stored = database.batch([sql.STORED_TOPICS])[0].rows
    changes = sql.topic_changes(specs, stored)
    sql.write_topics(database, changes)
    return changes


def stale(database: Database) -> dict[str, int]:
    rows = database.query("SELECT id, stale FROM topics ORDER BY id").rows
    return {row["id"]: int(row["stale"]) for row in rows}


def members(database: Database) -> list[tuple[str, str]]:
    rows = database.query("SELECT topic_id, feed_id FROM topic_members ORDER BY 1, 2").rows
    return [(row["topic_id"], row["feed_id"]) for row in rows]


def published(database: Database) -> None:
    database.query("UPDATE topics SET stale = 0, published_at = 'then'")


def test_a_new_topic_is_to_be_published_and_has_its_feeds_once(database: Database) -> None:
    changes = sync(database, topic("t", "b/one", "b/two", "a", title="T"), topic("u", "a"))
    assert [one.id for one in changes.written] == ["t", "u"]
    assert stale(database) == {"t": 1, "u": 1}
    assert members(database) == [("t", "a"), ("t", "b"), ("u", "a")]
    [row] = database.query("SELECT * FROM topics WHERE id = 't'").rows
    assert TopicSpec.of_json(row["definition"]) == topic("t", "b/one", "b/two", "a", title="T")
    assert (row["published_at"], row["removed"], row["lease_token"]) == (None, 0, None)


def test_what_did_not_change_is_not_written_and_what_did_is_published_again(database: Database) -> None:
    sync(database, topic("t", "a", "b"), topic("u", "a"))
    published(database)
    assert sync(database, topic("t", "a", "b"), topic("u", "a")).is_empty
    changes = sync(database, topic("t", "b", "c", every=timedelta(hours=1)), topic("u", "a"))
    assert ([one.id for one in changes.written], changes.removed) == (["t"], ())
    assert stale(database) == {"t": 1, "u": 0}
    assert members(database) == [("t", "b"), ("t", "c"), ("u", "a")]
    assert sync(database, topic("t", "b", "c", every=timedelta(hours=1)), topic("u", "a")).is_empty
    sync(database, topic("t", "c", "b"), topic("u", "a"))
    assert stale(database)["t"] == 2, "the order of members decides which of two equal items is taken"


def test_a_topic_that_left_is_published_once_more_and_comes_back(database: Database) -> None:
    sync(database, topic("t", "a"), topic("u", "a"))
    published(database)
    assert sync(database, topic("u", "a")).removed == ("t",)
    assert stale(database) == {"t": 1, "u": 0}
    assert members(database) == [("u", "a")], "no news of a feed asks for its publication"
    assert sync(database, topic("u", "a")).is_empty
    assert [one.id for one in sync(database, topic("t", "a"), topic("u", "a")).written] == ["t"]
    assert database.query("SELECT removed, stale FROM topics WHERE id = 't'").rows == [
        {"removed": 0, "stale": 2}
    ]
    assert members(database) == [("t", "a"), ("u", "a")]


def test_news_of_a_feed_count_in_its_topics_alone(database: Database) -> None:
    sync(database, topic("t", "a", "b"), topic("u", "b/one"), topic("v", "c"))
    published(database)
    database.batch([*mark_stale(compact(["a", "b"])), *mark_stale(compact(["a"]))])
    assert stale(database) == {"t": 2, "u": 1, "v": 0}


def test_a_feed_with_a_changed_entry_is_shown_anew(database: Database) -> None:
    """Its title, its address and its streams are part of a topic."""
    one = StreamSpec(name="one", selector=FieldSelector(author=("Jane",)))
    register(database, spec("a"), spec("b", feature_keys=keys(one)))
    sync(database, topic("t", "a"), topic("u", "b/one"))
    published(database)
    register(database, spec("a"), spec("b", feature_keys=keys(one)))
    assert stale(database) == {"t": 0, "u": 0}
    other = StreamSpec(name="one", selector="//item[enclosure]")
    register(database, spec("a"), spec("b", feature_keys=keys(other)))
    assert stale(database) == {"t": 0, "u": 1}
    register(database, spec("a", title="New"), spec("b", feature_keys=keys(other)))
    assert stale(database) == {"t": 1, "u": 1}


@pytest.mark.slow
def test_many_topics_are_written_in_pieces_that_d1_takes(database: Database) -> None:
    many = [topic(f"t{n}", *(f"feed-{n}-{m}" for m in range(20)), title="x" * 400) for n in range(1_500)]
    assert len(sync(database, *many).written) == 1_500
    assert database.query("SELECT count(*) AS n FROM topic_members").rows == [{"n": 30_000}]
    assert sync(database, *many).is_empty
