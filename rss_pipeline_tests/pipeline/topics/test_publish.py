"""Topics from rows to objects: what is due, what is put, and what a publication leaves behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.pipeline.topics.publish import Publication, Stores, due, publish
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def pipeline(tmp_path: Path) -> Any:
    pipeline = Pipeline(tmp_path)
    yield pipeline
    pipeline.close()


def stores(pipeline: Pipeline) -> Stores:
    return Stores.of(pipeline.settings, pipeline.database, pipeline.objects)


def published(pipeline: Pipeline, *only: str) -> list[Publication]:
    pipeline.clock.turn(minutes=20)
    return publish(stores(pipeline), clock=pipeline.clock, only=only or None)


def body(pipeline: Pipeline, key: str) -> bytes:
    found = pipeline.objects.get(f"topics/{key}")
    assert found is not None
    return found[0]


def test_a_topic_is_published_from_the_items_of_its_feeds(pipeline: Pipeline) -> None:
    with FeedServer() as server:
        pipeline.register(server.route("127.0.0.2", "/a", Answer(body=rss("a1", "a2"))), "a")
        pipeline.register(server.route("127.0.0.3", "/b", Answer(body=rss("b1"))), "b")
        pipeline.topics = {"t": {"title": "Both", "of": ["a", "b"], "public": True}}
        pipeline.write_registry()
        pipeline.poll()
    assert due(pipeline.database, now=pipeline.clock()) == ["index", "t"]
    [publication] = published(pipeline)
    assert (publication.topic_id, publication.entries, publication.feeds) == ("t", 3, 2)
    assert publication.changed == ("topics/t.json", "topics/t.atom")
    assert publication.error is None
    shown = json.loads(body(pipeline, "t.json"))
    assert sorted(item["title"] for item in shown["items"]) == [f"Title of {n}" for n in ("a1", "a2", "b1")]
    assert [topic["id"] for topic in json.loads(body(pipeline, "index.json"))["topics"]] == ["t"]
    assert b"t.atom" in body(pipeline, "index.opml")
    assert due(pipeline.database, now=pipeline.clock()) == []
    assert published(pipeline) == []
