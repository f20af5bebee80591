"""The mark on topics: whoever changes what a topic shows leaves it in the same batch, and no one else does.

On SQLite and a folder, and on D1 and R2 in workerd.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rss_pipeline.features.streams.service import refresh
from rss_pipeline.storage.feeds import forget
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of


class Topic:
    """A feed in a topic of its own, beside another feed with one, which must never be marked."""

    def __init__(self, pipeline: Pipeline, server: FeedServer) -> None:
        self.pipeline, self.server = pipeline, server
        pipeline.register(self.serve(rss("1", "2")), "feed", streams={"one": {"title": "*1"}})
        pipeline.register(server.route("127.0.0.3", "/", Answer(body=rss("9"))), "other")
        pipeline.topics = {
            "t": {"of": ["feed/one"], "public": True},
            "u": {"of": ["other"], "public": True},
        }
        pipeline.write_registry()
        pipeline.poll()
        pipeline.database.query("UPDATE topics SET stale = 0")

    def serve(self, body: bytes) -> str:
        return self.server.route("127.0.0.2", "/feed", Answer(body=body, etag=etag_of(body)))

    def poll(self, body: bytes | None = None) -> None:
        if body is not None:
            self.serve(body)
        self.pipeline.clock.turn(hours=3)
        self.pipeline.poll(all_feeds=True)

    @contextmanager
    def marks(self, what: str) -> Iterator[None]:
        self._settle()
        yield
        assert self._marked() == {"t"}, what

    @contextmanager
    def leaves(self, what: str) -> Iterator[None]:
        self._settle()
        yield
        assert self._marked() == set(), what

    def _settle(self) -> None:
        self.pipeline.database.query("UPDATE topics SET stale = 0")

    def _marked(self) -> set[str]:
        return {row["id"] for row in self.pipeline.rows("SELECT id FROM topics WHERE stale > 0")}


class Public:
    """An object store with public URLs."""

    def __init__(self, real: ObjectStore) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def url(self, key: str) -> str:
        return f"https://images.example/{key}"


@pytest.fixture
def topic(place: Pipeline, server: FeedServer) -> Topic:
    place.set(image_host_delay_seconds=0.0)
    return Topic(place, server)


def test_polls(topic: Topic) -> None:
    with topic.leaves("a 304"):
        topic.poll()
    with topic.marks("a new item"):
        topic.poll(rss("1", "2", "3"))
    with topic.leaves("the same bytes, from a server without validators"):
        topic.server.route("127.0.0.2", "/feed", Answer(body=rss("1", "2", "3")))
        topic.poll()
    changed = rss("1", "2", "3").replace(b"Text of 1", b"Another text")
    with topic.leaves("another document with the same items: they stay as they were stored"):
        topic.poll(changed)
    with topic.marks("an item that leaves a stream"):
        topic.poll(changed.replace(b"Title of 1", b"No more"))
    with topic.marks("an item that joins a stream"):
        topic.poll(changed)
    with topic.marks("the feed's title"):
        topic.poll(changed.replace(b"A feed", b"The feed"))
    with topic.marks("the feed's link"):
        topic.poll(changed.replace(b"A feed", b"The feed").replace(b"com/</link>", b"org/</link>", 1))
    with topic.leaves("a document that cannot be read"):
        topic.poll(b"<html>")


def test_the_registry(topic: Topic) -> None:
    pipeline = topic.pipeline
    with topic.leaves("the same file"):
        pipeline.sync()
    with topic.marks("another title of the feed"):
        pipeline.feeds[0]["title"] = "Mine"
        pipeline.write_registry()
        pipeline.sync()
    with topic.leaves("the publisher's title, which is not shown"):
        topic.poll(rss("1", "2", title="Another"))
    with topic.marks("another selector"):
        pipeline.feeds[0]["streams"] = {"one": {"title": "*2"}}
        pipeline.write_registry()
        pipeline.sync()
    with topic.marks("the items by that selector"):
        refresh(pipeline.database)
    with topic.leaves("a second refresh"):
        refresh(pipeline.database)
    with topic.marks("the feed's end"):
        forget.begin_forget(pipeline.database, "feed")


def test_replays(topic: Topic) -> None:
    pytest.importorskip("rss_pipeline.features.replay")
    from rss_pipeline_tests.features.replay.replays import replayed

    pipeline = topic.pipeline
    with topic.leaves("a replay of what is stored"):
        replayed(pipeline, "feed")
    pipeline.database.query("DELETE FROM items WHERE feed_id = 'feed' AND guid = '2'")
    with topic.leaves("a dry run"):
        replayed(pipeline, "feed", dry_run=True)
    with topic.marks("an item that was missing"):
        replayed(pipeline, "feed")
    pipeline.database.query("UPDATE items SET title = 'Wrong' WHERE feed_id = 'feed' AND guid = '2'")
    with topic.leaves("a replay that repairs nothing"):
        replayed(pipeline, "feed", repair=True, dry_run=True)
    with topic.marks("a repair"):
        replayed(pipeline, "feed", repair=True)
    with topic.leaves("a second repair"):
        replayed(pipeline, "feed", repair=True)
    pipeline.database.query("DELETE FROM item_streams")
    with topic.marks("members alone"):
        replayed(pipeline, "feed")


def test_retention(topic: Topic) -> None:
    pytest.importorskip("rss_pipeline.features.retention")
    from rss_pipeline_tests.features.retention.archive import age, cleaned

    pipeline = topic.pipeline
    with topic.leaves("a clean of nothing"):
        cleaned(pipeline)
    age(pipeline, "feed", 181, "2")
    with topic.leaves("a dry run"):
        cleaned(pipeline, dry_run=True)
    with topic.marks("a retired item"):
        assert cleaned(pipeline).total.items == 1
    with topic.leaves("a retired item that is listed"):
        topic.poll(rss("1", "2", title="A feed "))
    pytest.importorskip("rss_pipeline.features.replay")
    from rss_pipeline.features.replay.service import revive
    from rss_pipeline_tests.features.replay.test_revive import LONG_AGO

    with topic.marks("its return"), pipeline.session() as session:
        revive(session.run, pool=session.parser_pool, spool=session.spool, since=LONG_AGO)
    assert pipeline.guids("feed") == ["1", "2"]


@EVERYWHERE
def test_images(topic: Topic) -> None:
    pipeline, server = topic.pipeline, topic.server
    for guid in ("3", "4"):
        server.route("127.0.0.2", f"/{guid}.png", Answer(body=png(), headers={"Content-Type": "image/png"}))
    topic.poll(rss("3", image=server.url("127.0.0.2", "")))
    with topic.leaves("an archived image without a public URL"):
        assert pipeline.download().archived == 1
    topic.poll(rss("4", image=server.url("127.0.0.2", "")))
    with topic.marks("an archived image with one"):
        assert pipeline.download(objects=Public(pipeline.objects)).archived == 1
    [task] = pipeline.rows("SELECT id, item_id, r2_key FROM image_tasks WHERE original_url LIKE '%/4.png'")
    retention = pytest.importorskip("rss_pipeline.features.retention.sql")
    known = retention.DueImage(
        id=task["id"],
        item_id=task["item_id"],
        position=1,
        r2_key=task["r2_key"],
        size=1,
        lease_token=None,
        is_live=False,
    )
    with topic.marks("the end of an image whose item stays"):
        retention.drop_tasks(pipeline.database, [known])
    with topic.leaves("the end of no image"):
        retention.drop_tasks(pipeline.database, [known])


def test_a_restore(topic: Topic) -> None:
    pytest.importorskip("rss_pipeline.features.replay")
    from rss_pipeline_tests.features.replay.replays import drop_database, restored

    pipeline = topic.pipeline
    drop_database(pipeline)
    pipeline.sync()
    pipeline.database.query("UPDATE topics SET stale = 0")
    restored(pipeline)
    assert {row["id"] for row in pipeline.rows("SELECT id FROM topics WHERE stale > 0")} == {"t", "u"}
    rows = pipeline.rows("SELECT guid FROM item_streams JOIN items ON items.id = item_id")
    assert [row["guid"] for row in rows] == ["1"]
    with topic.leaves("a second one"):
        restored(pipeline)
