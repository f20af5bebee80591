"""Which failures are reported: the first one, another kind, one a week; of a feed that flaps, one a day."""

from collections.abc import Sequence

import pytest

from rss_pipeline.storage.feeds import feed_changes
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

OK = Answer(body=rss("a"))
MISSING = Answer(status=404)
GONE = Answer(status=410)
PAGE = Answer(body=b"<!DOCTYPE html><html><body>Hello", headers={"Content-Type": "text/html"})


@pytest.fixture
def feed(pipeline: Pipeline, server: FeedServer) -> str:
    return pipeline.register(server.route("127.0.0.2", "/feed", OK), "feed")


def visit(pipeline: Pipeline, server: FeedServer, answers: Sequence[Answer], *, hours: float = 1) -> None:
    for answer in answers:
        server.route("127.0.0.2", "/feed", answer)
        pipeline.clock.turn(hours=hours)
        pipeline.poll("feed")


@pytest.mark.slow
def test_a_failure_is_reported_at_once_and_then_once_a_week(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [MISSING] * 30, hours=6)
    assert pipeline.failure_reports(feed) == [("http_status", 1), ("http_status", 29)]


def test_a_new_kind_is_reported_at_once_and_one_after_the_other_once_a_day(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [MISSING, MISSING, PAGE, GONE, PAGE, MISSING, PAGE, GONE])
    visit(pipeline, server, [GONE], hours=24)
    assert pipeline.failure_reports(feed) == [("http_status", 1), ("html", 3), ("gone", 9)]


@pytest.mark.slow
def test_a_feed_that_fails_at_every_other_visit_is_reported_once_a_day(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [OK, MISSING] * 13)
    assert pipeline.failure_reports(feed) == [("http_status", 1)] * 2


def test_a_failure_that_a_success_has_hidden_is_reported_again_at_the_third_in_a_row(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [MISSING, OK, MISSING, MISSING, MISSING, MISSING])
    assert pipeline.failure_reports(feed) == [("http_status", 1), ("http_status", 3)]


def test_a_feed_that_is_visited_once_a_week_is_reported_each_time(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [GONE])
    visit(pipeline, server, [GONE] * 3, hours=7 * 24)
    assert pipeline.failure_reports(feed) == [("gone", n) for n in (1, 2, 3, 4)]


def test_a_clock_that_was_put_back_silences_no_failure(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [MISSING], hours=1000)
    visit(pipeline, server, [MISSING], hours=-1000)
    assert len(pipeline.failure_reports(feed)) == 2


def test_an_instance_without_the_feeds_events_gets_its_failure_again(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [MISSING])
    feed_changes.report_again(pipeline.database, [feed])
    visit(pipeline, server, [MISSING])
    assert pipeline.failure_reports(feed) == [("http_status", 1), ("http_status", 2)]


def test_a_round_in_which_no_feed_fails_marks_nothing(
    pipeline: Pipeline, server: FeedServer, feed: str
) -> None:
    visit(pipeline, server, [OK, OK])
    assert pipeline.feed(feed)["failure_reported_at"] is None
    assert pipeline.feed(feed)["failing_since"] is None
    assert pipeline.failure_reports(feed) == []
