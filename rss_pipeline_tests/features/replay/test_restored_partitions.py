"""A restore as the command runs it: keys of all feeds, and an event at the first visit after it."""

from functools import partial

import pytest

from rss_pipeline.features.replay.restore import restore
from rss_pipeline.orchestration.registry_partitions import register, register_keys
from rss_pipeline_tests.features.replay.replays import drop_database
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline) -> DagsterPipeline:
    return dagster_pipeline


def test_a_restored_feed_has_its_key_and_is_reported_at_its_next_visit(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"), etag='"1"')), "left")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("b"), etag='"2"')), "stays")
    pipeline.poll()
    pipeline.feeds.pop(0)
    pipeline.write_registry()
    drop_database(pipeline)
    for id in ("left", "stays"):
        pipeline.instance.delete_dynamic_partition("feeds", id)
    with pipeline.session() as session:
        restored = restore(
            session.run,
            pool=session.parser_pool,
            spool=session.spool,
            on_registry=partial(register, pipeline.database, pipeline.instance),
            on_feeds=partial(register_keys, pipeline.database, pipeline.instance),
        )
    assert restored.unregistered == ["left"]
    assert sorted(pipeline.instance.get_dynamic_partitions("feeds")) == ["left", "stays"]
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)
    assert [len(pipeline.events(id)) for id in ("left", "stays")] == [1, 2]
