"""The next visit of a feed, through whole polls: what only the database and the claim make true.

The rules as such are tests of collector.schedule; all of them at once are politeness/test_fortnight.py's.
"""

from collections import Counter
from datetime import timedelta

import pytest

from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

HOST = "127.0.0.2"
ETAG = {"ETag": '"1"'}


def asked_at(pipeline: Pipeline, server: FeedServer, *minutes: float) -> list[float]:
    """Poll at each of these minutes after noon; those at which the feed was requested."""
    asked = []
    for minute in minutes:
        pipeline.clock.now = NOON + timedelta(minutes=minute, seconds=-1)
        server.forget()
        pipeline.poll()
        asked += [minute] * len(server.requests)
    return asked


def test_a_max_age_that_came_with_the_document_holds_after_a_304_that_says_nothing_of_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    first = Answer(body=rss("a"), headers={**ETAG, "Cache-Control": "max-age=7200"})
    url = server.route(HOST, "/feed", first, Answer(status=304))
    pipeline.register(url, "feed", interval="30m")
    assert asked_at(pipeline, server, 0, 125, 185) == [0, 125]


@pytest.mark.parametrize("header", ["Cache-Control: max-age=7200", "Retry-After: 7200"])
def test_a_shorter_interval_in_feeds_yaml_brings_no_visit_that_the_publisher_does_not_want(
    pipeline: Pipeline, server: FeedServer, header: str
) -> None:
    name, value = header.split(": ")
    url = server.route(HOST, "/feed", Answer(body=rss("a"), headers={name: value}))
    pipeline.register(url, "feed", interval="3h")
    assert asked_at(pipeline, server, 0) == [0]
    pipeline.feeds[0]["interval"] = "15m"
    pipeline.write_registry()
    assert asked_at(pipeline, server, 10, 30, 119, 121) == [121]


def test_what_comes_in_place_of_a_feed_is_left_alone_for_as_long_as_it_says(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """With the same bytes again or with others, whole or cut off, also where a redirect led to it."""
    asked: Counter[str] = Counter()

    def page(request: Request) -> Answer:
        asked[request.host] += 1
        body = f"<html><body>Back soon {asked[request.host]}".encode()
        wait = {"Retry-After": "21600"}
        match request.host.rpartition(".")[2]:
            case "2":
                return Answer(body=b"<html><body>Back soon", headers={"Cache-Control": "max-age=21600"})
            case "3":
                return Answer(body=body, headers=wait)
            case "4":
                return Answer(body=body, headers=wait, cut_after=10)
            case "5":
                return Answer(status=304, headers=wait)
            case _:
                return Answer(status=302, headers={"Location": server.url("127.0.0.9", "/f"), **wait})

    server.route("127.0.0.9", "/f", lambda _: Answer(body=b"<html><body>Where it led"))
    for last in range(2, 7):
        pipeline.register(server.route(f"127.0.0.{last}", "/feed", page), f"feed{last}", interval="1h")
    for minute in (0, 31, 62, 300, 359, 362, 600, 719, 723):
        pipeline.clock.now = NOON + timedelta(minutes=minute, seconds=-1)
        pipeline.poll()
    # Between two requests of a redirect with a wait there is the one where it led.
    assert asked == {f"127.0.0.{last}": 3 if last < 6 else 2 for last in range(2, 7)}


def test_a_poll_that_is_late_requests_no_feed_in_an_hour_that_it_wants_skipped(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """It was due at 12:30 and at 12:58; the poll comes at one o'clock, with another feed due."""
    skip = rss("a").replace(b"<channel>", b"<channel><skipHours><hour>13</hour><hour>14</hour></skipHours>")
    url = server.route(HOST, "/feed", Answer(body=skip, headers=ETAG))
    pipeline.register(url, "feed", interval="30m")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("a"))), "other", interval="30m")
    assert asked_at(pipeline, server, 0) == [0, 0]
    assert asked_at(pipeline, server, 61) == [61]
    assert [request.host for request in server.requests] == ["127.0.0.3"]
    feed = pipeline.feed("feed")
    assert feed["next_fetch_at"].startswith("2026-03-02T15:0")
    assert feed["schedule_reason"] == "skipHours/skipDays of the feed"
    assert (feed["lease_token"], feed["unclosed_claims"]) == (None, 0)
    assert asked_at(pipeline, server, 189) == [189, 189]


def test_by_hand_it_is_requested_in_such_an_hour_all_the_same(pipeline: Pipeline, server: FeedServer) -> None:
    skip = rss("a").replace(b"<channel>", b"<channel><skipHours><hour>12</hour></skipHours>")
    pipeline.register(server.route(HOST, "/feed", Answer(body=skip)), "feed", interval="30m")
    pipeline.poll()
    pipeline.poll("feed")
    assert len(server.requests) == 2


def test_an_error_page_and_the_feed_again_cost_one_document(pipeline: Pipeline, server: FeedServer) -> None:
    """The 304 answers the stored document's validators: nothing is requested again."""
    url = server.route(
        HOST,
        "/feed",
        Answer(body=rss("a"), headers=ETAG),
        Answer(body=b"<!doctype html><html><body>Back soon</body></html>"),
        Answer(status=304),
    )
    pipeline.register(url, "feed", interval="30m")
    asked_at(pipeline, server, 0, 40)
    assert pipeline.feed("feed")["last_error_kind"] == "html"
    assert asked_at(pipeline, server, 80) == [80]
    assert server.requests[0].headers["if-none-match"] == '"1"'
    feed = pipeline.feed("feed")
    assert (feed["consecutive_failures"], feed["last_error"]) == (0, None)
