"""Retention after a lost database: what `keep` kept is kept, also of feeds that left feeds.yaml."""

import json
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.feed import FOREVER_DAYS
from rss_pipeline.storage.backups.backups import METADATA_NAME
from rss_pipeline_tests.features.replay.replays import drop_database, restored
from rss_pipeline_tests.support.checked import checked
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

archive = pytest.importorskip("rss_pipeline_tests.features.retention.archive")
KEEP = {"for-ever": "forever", "month": "30d", "usual": None}


def lost(place: Pipeline, server: FeedServer) -> None:
    """Three feeds that leave the registry after a poll; then the database is lost."""
    for number, (id, keep) in enumerate(KEEP.items(), start=2):
        options = {} if keep is None else {"keep": keep}
        url = server.route(f"127.0.0.{number}", "/feed", Answer(body=rss("a", "b")))
        place.register(url, id, **options)
    place.poll()
    place.feeds[:] = []
    place.register(server.route("127.0.0.9", "/feed", Answer(body=rss("z"))), "left", keep="7d")
    drop_database(place)


def keeps(place: Pipeline) -> dict[str, tuple[object, object]]:
    rows = place.rows("SELECT id, keep_days, keep_unknown FROM feeds")
    return {row["id"]: (row["keep_days"], row["keep_unknown"]) for row in rows}


def test_keep_comes_back_with_the_backups_of_feeds_that_left_the_registry(
    place: Pipeline, server: FeedServer
) -> None:
    lost(place, server)
    assert restored(place).is_whole
    assert keeps(place) == {
        "for-ever": (FOREVER_DAYS, 0),
        "month": (30, 0),
        "usual": (None, 0),
        "left": (7, 0),
    }
    for id in KEEP:
        archive.age(place, id, 10_000)
    archive.add_rest(place)
    came = archive.cleaned(place)
    assert {id: removed.items for id, removed in came.by_feed.items()} == {"month": 2, "usual": 2}
    assert place.guids("for-ever") == ["a", "b"]


def test_feeds_of_backups_that_do_not_say_it_are_left_alone_until_the_registry_does(
    place: Pipeline, server: FeedServer
) -> None:
    lost(place, server)
    for info in list(place.objects.list("backups/")):
        body, found = place.objects.get(info.key) or (b"", info)
        known = json.loads(found.metadata[METADATA_NAME])
        del known["keep"]
        metadata = {METADATA_NAME: json.dumps(known)}
        place.objects.put(info.key, body, content_type="application/xml", metadata=metadata)
    assert restored(place).is_whole
    assert {id: unknown for id, (_, unknown) in keeps(place).items()} == {**dict.fromkeys(KEEP, 1), "left": 0}
    for id in KEEP:
        archive.age(place, id, 10_000)
    assert archive.cleaned(place).total.items == 0
    [check] = checked({"keep_known"}, place.database, now=place.clock())
    assert (check.state, "3 feeds" in check.found) == ("warning", True)
    place.register(server.url("127.0.0.3", "/feed"), "month", keep="30d")
    place.sync()
    assert keeps(place)["month"] == (30, 0)
    assert archive.cleaned(place).total.items == 2


def test_what_a_restore_brought_in_is_kept_its_whole_time(place: Pipeline, server: FeedServer) -> None:
    lost(place, server)
    restored(place)
    place.database.query("UPDATE items SET created_at = '2000-01-01T00:00:00Z'")
    archive.let_visited(place, place.clock() + timedelta(days=1))
    assert archive.cleaned(place, now=place.clock() + timedelta(days=1)).total.items == 0
