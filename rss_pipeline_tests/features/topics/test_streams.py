"""Topics of streams: written with the registry, and published again where members of a stream changed."""

from pathlib import Path

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.features.streams.model import FieldSelector
from rss_pipeline.features.streams.service import refresh
from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.streams.stream_documents import JANE, by, store, stream_keys
from rss_pipeline_tests.pipeline.registry.test_edit import WRITTEN, write
from rss_pipeline_tests.storage.values import DAY, HOUR, NOW, change, item, register, spec, visit


def with_topic(database: Database, *of: str) -> None:
    topic = TopicSpec(id="t", of=tuple(map(Member.of, of)))
    sql.write_topics(database, sql.topic_changes([topic], database.batch([sql.STORED_TOPICS])[0].rows))
    published(database)


def published(database: Database) -> None:
    database.query("UPDATE topics SET stale = 0")


def is_stale(database: Database) -> bool:
    [row] = database.query("SELECT stale FROM topics").rows
    published(database)
    return bool(row["stale"])


def test_topics_are_stale_where_members_changed_and_not_else(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE)), spec("b"))
    with_topic(database, "a/jane")
    store(database, [item("1")], {"jane": ["1"]})
    assert is_stale(database)
    store(database, [item("1")], {"jane": ["1"]}, at=NOW + HOUR)
    assert not is_stale(database)
    store(database, [item("1")], {"jane": []}, at=NOW + 2 * HOUR)
    assert is_stale(database)
    store(database, [item("1")], {"jane": ["1"]}, at=NOW + 3 * HOUR)
    assert is_stale(database)
    visit(database, [item("5")], id="b")
    assert not is_stale(database), "a feed of no topic"


def test_a_retired_item_that_is_listed_makes_no_topic_stale(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE)))
    change(database, "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('a', '1', '2026')")
    with_topic(database, "a")
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]})
    assert is_stale(database)
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]}, at=NOW + HOUR)
    assert not is_stale(database)


def _register(database: Database, **selectors: FieldSelector | str) -> None:
    register(database, spec("a", feature_keys=stream_keys(**selectors)), spec("b"), now=NOW + DAY)


def test_a_topic_is_stale_only_if_members_changed(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    bob = item("2", author="Bob", authors=("Bob",))
    visit(database, [item("1", author="Jane", authors=("Jane",)), bob])
    _register(database, jane=JANE)
    refresh(database)
    with_topic(database, "a/jane")
    _register(database, jane=by("JANE"))
    published(database)
    refresh(database)
    assert not is_stale(database)
    _register(database, jane=by("bob"))
    published(database)
    refresh(database)
    assert is_stale(database)


def test_streams_and_topics_stay_when_a_feed_is_added(tmp_path: Path) -> None:
    path = tmp_path / "feeds.yaml"
    head = "feeds:\n  - url: https://a.example/\n    id: a\n    streams:\n      one: {author: Jane}  # mine\n"
    tail = "topics:\n  t:\n    of: [a/one]\n"
    path.write_text(head + tail, "utf-8")
    assert write(path) == ["https://new.example/feed"]
    assert path.read_text("utf-8") == f"{head}  {WRITTEN.replace('  id', '    id')}{tail}"
