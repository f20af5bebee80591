"""Replays judge stored items by the streams of their feed, which XPath needs."""

import pytest

from rss_pipeline.features.streams.service import refresh
from rss_pipeline_tests.features.replay.replays import all_rows, drop_database, replayed, restored
from rss_pipeline_tests.features.streams import test_events
from rss_pipeline_tests.features.streams.test_members import Feed, Watching, titled
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer

SLOW = "//*[count(//*[count(//*)>1])>1]"


def test_stored_items_are_judged_by_a_new_xpath(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Feed(pipeline, server, rss("1", "2"))
    feed.publish(rss("2", "3"))
    feed.select(path="//item[contains(title, '1') or contains(title, '3')]")
    assert refresh(pipeline.database).streams == 0
    assert (feed.members(), feed.state("path").note) == (
        {},
        "selector changed; run `rss-pipeline replay feed` to judge stored items",
    )
    before = all_rows(pipeline)
    replayed(pipeline, dry_run=True)
    assert (all_rows(pipeline), feed.members()) == (before, {})
    assert feed.state("path").note is not None
    replayed(pipeline)
    assert feed.members() == {"path": ["Title of 1", "Title of 3"]}
    assert feed.state("path").note is None
    assert feed.state("path").matched_at is not None


def test_the_newest_backup_has_the_last_word(pipeline: Pipeline, server: FeedServer) -> None:
    """An item that was renamed, and one that was renamed and named as before."""
    feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"), path="//item[title='Title of 1']")
    feed.publish(rss("1", "2").replace(b"Title of 1", b"Named 2").replace(b"Title of 2", b"Title of 1"))
    assert feed.members() == {"one": ["Title of 2"], "path": ["Title of 2"]}, "stored titles stay"
    feed.publish(rss("1", "3").replace(b"Title of 3", b"Title of 1"))
    wanted = feed.members()
    titles = ["Title of 1", "Title of 1", "Title of 2"]
    assert wanted == {"one": titles, "path": titles}
    for repair in (False, True):
        pipeline.database.query("DELETE FROM item_streams")
        replayed(pipeline, repair=repair)
        assert feed.members() == wanted


@pytest.mark.slow
def test_an_xpath_that_is_too_slow_is_an_error_of_its_stream_and_still_due(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Feed(pipeline, server, rss(*map(str, range(2_000))))
    feed.select(path=SLOW, title="//item[title='Title of 7']")
    replayed(pipeline)
    assert feed.state("path").note is not None
    assert "took longer than 2 s" in (feed.state("path").warning or "")
    feed.select(path="//item[title='Title of 8']", title="//item[title='Title of 7']")
    assert feed.state("path").warning is None
    replayed(pipeline)
    assert feed.members() == {"path": ["Title of 8"], "title": ["Title of 7"]}
    assert [feed.state(name).note for name in ("path", "title")] == [None, None]


def test_what_a_replay_brings_in_by_streams_that_changed_under_it_is_judged_again(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"))
    pipeline.database.query("DELETE FROM items")

    def change() -> None:
        feed.select(one=titled("*2"), two=titled("*2"))
        refresh(pipeline.database)

    real = pipeline.database
    pipeline.database = Watching(real, [], before="insert replayed items", act=change)
    replayed(pipeline)
    pipeline.database = real
    refresh(real)
    assert feed.members() == {"one": ["Title of 2"], "two": ["Title of 2"]}


def test_a_restore_brings_the_members_back(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"), path="//item[guid=2]")
    feed.publish(rss("2", "3"))
    wanted = feed.members()
    assert wanted == {"one": ["Title of 1"], "path": ["Title of 2"]}
    drop_database(pipeline)
    restored(pipeline)
    assert feed.members() == wanted
    assert feed.state("path").note is None
    refresh(pipeline.database)
    assert (feed.members(), feed.state("one").note) == (wanted, None)


def test_a_replay_yields_an_event_for_a_stream_with_other_members(
    dagster_pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline = dagster_pipeline
    streams = {"b": {"xpath": "//item[category='b']"}}
    pipeline.register(test_events.serve(server, "a1", "a2", "b1"), "feed", interval="30m", streams=streams)
    pipeline.sync()
    assert test_events.launch(pipeline).success
    test_events.change(pipeline, b={"xpath": "//item"})
    assert test_events.launch(pipeline, "replay_backups", partition_key="feed").success
    assert test_events.events(pipeline, "b") == [(2, 3), (1, 1)]
    assert test_events.materialize(pipeline, "feed/b").success
