"""Documents that a visit stored in part or not at all, in a replay and after a restore."""

from rss_pipeline.pipeline.visits.visit import Stored
from rss_pipeline_tests.features.replay.replays import drop_database, replayed, restored
from rss_pipeline_tests.pipeline.visits.test_documents import HOST, condemned, cut, serve
from rss_pipeline_tests.pipeline.visits.test_limits import with_images
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def test_a_restore_gives_a_cut_document_no_validators(pipeline: Pipeline, server: FeedServer) -> None:
    id = pipeline.register(serve(server, rss("a"), '"1"'), "feed")
    pipeline.poll()
    serve(server, cut(rss("b", "a"), items=1), '"2"')
    pipeline.poll(all_feeds=True)
    before = pipeline.feed(id)
    drop_database(pipeline)
    restored(pipeline)
    feed = pipeline.feed(id)
    assert pipeline.guids(id) == ["a", "b"]
    for column in ("last_etag", "validators_url", "content_hash", "cut_hash", "warning", "warning_kinds"):
        assert feed[column] == before[column], column
    serve(server, rss("c", "b", "a"), '"2"')
    pipeline.poll(all_feeds=True)
    assert pipeline.guids(id) == ["a", "b", "c"]


def test_a_condemned_document_is_read_again_after_a_replay_could_read_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(serve(server, rss("a"), '"1"'), "feed")
    pipeline.poll()
    condemned(pipeline, id)
    replayed(pipeline, id, dry_run=True)
    assert pipeline.feed(id)["failed_hash"] is not None
    replayed(pipeline, id)
    assert pipeline.guids(id) == ["a"]
    assert pipeline.feed(id)["failed_hash"] is None
    rounds = pipeline.poll(all_feeds=True)
    assert ends(rounds, lambda visit: type(visit.outcome)) == [Stored]
    assert pipeline.feed(id)["consecutive_failures"] == 0


def test_a_replay_reads_backups_of_long_headers_and_redirects(place: Pipeline, server: FeedServer) -> None:
    headers = {"ETag": '"' + "e" * 5_000 + '"', "Content-Type": "text/xml; x=" + "y" * 6_000}
    place.register(server.route(HOST, "/feed", Answer(body=rss("a"), headers=headers)), "feed")
    target = "/long?" + "q" * 5_000
    server.route(HOST, target, Answer(body=rss("b")))
    place.register(server.route(HOST, "/moved", Answer(status=302, headers={"Location": target})), "moved")
    place.poll()
    place.database.query("DELETE FROM items")
    assert [replay.unread for replay in replayed(place)] == [[], []]
    assert (place.guids("feed"), place.guids("moved")) == (["a"], ["b"])


def test_a_replay_brings_the_items_beyond_a_day_s_most_and_no_image_beyond_an_item_s(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(images_per_item=3, items_per_day=2)
    pipeline.register(server.route(HOST, "/feed", Answer(body=with_images(5, 1, 4, server=server))), "a")
    pipeline.poll()
    assert (pipeline.guids("a"), len(pipeline.tasks())) == (["0", "1"], 4)
    replayed(pipeline, "a")
    assert (pipeline.guids("a"), len(pipeline.tasks())) == (["0", "1", "2"], 7)
