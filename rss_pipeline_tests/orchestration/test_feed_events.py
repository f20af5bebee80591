"""The event of a feed tells where it is requested, where it redirects to, and what was probably missed."""

from rss_pipeline_tests.pipeline.visits.test_gaps import undated
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def test_a_feed_that_moved_says_so_in_its_events(pipeline: DagsterPipeline, server: FeedServer) -> None:
    new = server.route("127.0.0.3", "/rss", Answer(body=rss("a"), etag='"new"'))
    pipeline.register(
        server.route("127.0.0.2", "/feed", Answer(status=301, headers={"Location": new})), "moved"
    )
    for days in (0, 6.9, 1, 1):
        pipeline.clock.turn(days=days)
        pipeline.poll()
    newest, *_, first = pipeline.events("moved")
    assert (newest["asked_at"], newest["items_new"]) == (new, 0)
    assert first["redirects_for_good_to"] == new
    assert "asked_at" not in first


def test_items_that_were_probably_missed_are_told_once(pipeline: DagsterPipeline, server: FeedServer) -> None:
    answers = [undated("a", "b", "c"), undated("b", "c", "d"), undated("e", "f", "g"), undated("g", "h", "i")]
    pipeline.register(server.route("127.0.0.2", "/feed", *answers), "fast")
    for _ in answers:
        pipeline.clock.turn(hours=1)
        pipeline.poll(all_feeds=True)
    after, event, *before = pipeline.events("fast")
    assert event["gaps"] == 1
    assert event["gap"].startswith("no item in common with the document before")
    assert not any("gap" in other for other in (after, *before))
