"""Documents that are decoded otherwise than before, in a replay and after a restore: nothing comes twice."""

import pytest

from rss_pipeline_tests.features.replay.replays import drop_database, replayed, restored
from rss_pipeline_tests.pipeline.visits.test_former_charset import FEEDS, RUSSIAN, Publisher, item, xml
from rss_pipeline_tests.pipeline.visits.test_identify import retire
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "former", "text"), [("koi8-r", "cp1251", RUSSIAN), ("cp1252", "cp1250", "não")]
)
def test_an_item_that_is_read_otherwise_keeps_its_guid_and_comes_once(
    codec: str, former: str, text: str, pipeline: Pipeline, server: FeedServer
) -> None:
    feeds = {id: Publisher(pipeline, server, codec, id=id, key=key) for id, (key, _) in FEEDS.items()}

    def publish(*numbers: int) -> None:
        for id, feed in feeds.items():
            feed.serves(xml(*(FEEDS[id][1](f"{text} {n}") for n in numbers)))
        pipeline.clock.turn(hours=3)
        pipeline.poll(all_feeds=True)

    publish(1, 2)
    for feed in feeds.values():
        feed.was_read_by(former)
    before = {id: feed.guids() for id, feed in feeds.items()}
    sources = pipeline.rows("SELECT id, guid_source FROM items ORDER BY id")
    for dry_run in (True, False):
        results = replayed(pipeline, dry_run=dry_run)
        assert [(each.items_new, each.items_gone) for each in results] == [(0, 0)] * len(feeds), "a replay"
    publish(3, 2, 1)
    publish(4, 3, 2, 1)
    for id, feed in feeds.items():
        assert set(before[id]) < set(feed.guids())
        assert len(feed.guids()) == 4, f"{id}: two are new, a visit each"
        assert [report["items_new"] for report in pipeline.reports(id)] == [1, 1, 2]
        assert feed.charsets() == (codec, former)
    assert [each.items_new for each in replayed(pipeline, dry_run=True)] == [0] * len(feeds)
    results = replayed(pipeline, repair=True)
    assert [(each.items_new, each.items_repaired) for each in results] == [(0, 2)] * len(feeds)
    stored = pipeline.rows("SELECT id, guid_source FROM items ORDER BY id")
    assert [row for row in stored if row in sources] == sources
    titles = {row["title"] for row in pipeline.rows("SELECT title FROM items")}
    assert titles == {f"{text} {n}" for n in (1, 2, 3, 4)}, "the repair gave all the new reading"


def test_a_retired_item_does_not_come_back_in_another_reading(place: Pipeline, server: FeedServer) -> None:
    feed = Publisher(place, server, "koi8-r")
    document = xml(item(RUSSIAN, guid=RUSSIAN))
    feed.publishes(document)
    feed.was_read_by("cp1251")
    retire(place, feed.guids()[0])
    replayed(place)
    assert feed.guids() == []
    feed.publishes(xml(item(RUSSIAN, guid=RUSSIAN), item("a", guid="a")))
    assert feed.guids() == ["a"]


def test_a_restored_feed_knows_its_former_codec(pipeline: Pipeline, server: FeedServer) -> None:
    mislabelled = RUSSIAN.encode("koi8-r").decode("cp1251")
    Publisher(pipeline, server, "cp1251").publishes(xml(item(mislabelled, guid=mislabelled)))
    feed = Publisher(pipeline, server, "koi8-r")
    feed.publishes(xml(item(RUSSIAN, guid=RUSSIAN), item("b", guid="b")))
    feed.publishes(xml(item("a", guid="a")))
    before, charsets = feed.guids(), feed.charsets()
    assert before == ["a", "b", mislabelled]
    assert charsets == ("koi8-r", "cp1251")
    pipeline.database.query("DELETE FROM items")
    [dry] = replayed(pipeline, dry_run=True)
    assert dry.items_new == 3, "as many as a replay would bring"
    drop_database(pipeline)
    restored(pipeline)
    assert (feed.guids(), feed.charsets()) == (before, charsets)
