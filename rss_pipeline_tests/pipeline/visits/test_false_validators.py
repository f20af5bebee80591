"""A server that answers 304 for ever is found out, and gets unconditional requests from then on."""

import json

import pytest

from rss_pipeline.storage.backups.backups import describe_backup
from rss_pipeline.storage.reports.overview import feed_health
from rss_pipeline.storage.subscriptions.listing import feed_rows, list_feeds
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer, Request

HOST = "127.0.0.2"


class Publisher:
    """304 to each conditional request; each 200 has the validators of `headers`."""

    def __init__(self, server: FeedServer) -> None:
        self.server = server
        self.headers = {"ETag": '"1"', "Last-Modified": "Mon, 23 Feb 2026 10:00:00 GMT"}
        self.guids = ["a"]
        self.status = 200
        self.url = server.route(HOST, "/feed", self.answer)

    def answer(self, request: Request) -> Answer:
        if {"if-none-match", "if-modified-since"} & set(request.headers):
            return Answer(status=304, headers=self.headers)
        return Answer(status=self.status, body=rss(*self.guids), headers=self.headers)

    def visited(self, pipeline: Pipeline, **later: float) -> bool:
        """True if the visit was conditional."""
        pipeline.clock.turn(**later)
        pipeline.poll(all_feeds=True)
        return "if-none-match" in self.server.requests[-1].headers


def false_documents(pipeline: Pipeline) -> int:
    return int(json.loads(pipeline.feed("f")["validators_state"] or "{}").get("false", 0))


@pytest.fixture
def publisher(pipeline: Pipeline, server: FeedServer) -> Publisher:
    publisher = Publisher(server)
    pipeline.register(publisher.url, "f")
    pipeline.poll(all_feeds=True)
    return publisher


def test_another_document_under_the_same_validators_proves_them_false_until_one_changes(
    pipeline: Pipeline, publisher: Publisher
) -> None:
    publisher.guids = ["a", "b"]
    assert publisher.visited(pipeline, days=29)
    assert pipeline.guids("f") == ["a"]

    assert not publisher.visited(pipeline, days=1)
    assert sorted(pipeline.guids("f")) == ["a", "b"]
    assert false_documents(pipeline) == 1
    publisher.guids = ["a", "b", "c"]
    assert not publisher.visited(pipeline, days=1)
    assert not publisher.visited(pipeline, days=1), "the same bytes again change nothing"
    [row] = feed_health(pipeline.database, feed_id="f")
    assert row["health"] == "warning"
    assert "2 new documents came with the same ETag and Last-Modified" in row["warning"]
    subscribe(pipeline.database, "u", "f")
    [listed] = feed_rows(pipeline.database.batch([list_feeds("u")])[0])
    assert listed.validators_notice is not None

    publisher.headers = {**publisher.headers, "ETag": '"2"'}
    assert not publisher.visited(pipeline, days=1)
    [row] = feed_health(pipeline.database, feed_id="f")
    assert (row["health"], row["warning"]) == ("ok", None)
    assert publisher.visited(pipeline, days=1)


def test_a_check_that_finds_the_same_document_is_no_change_and_ends_for_as_long(
    pipeline: Pipeline, publisher: Publisher
) -> None:
    reports = pipeline.reports("f")
    version = pipeline.feed("f")["items_version"]
    assert not publisher.visited(pipeline, days=30)
    assert publisher.visited(pipeline, days=29)
    assert pipeline.feed("f")["items_version"] == version
    assert false_documents(pipeline) == 0
    assert len(pipeline.reports("f")) <= len(reports) + 2, "heartbeats alone"


def test_a_check_that_fails_is_made_again_after_a_day_and_not_at_each_second_visit(
    pipeline: Pipeline, publisher: Publisher
) -> None:
    publisher.status = 500
    assert not publisher.visited(pipeline, days=30)
    assert pipeline.feed("f")["consecutive_failures"] == 1
    assert publisher.visited(pipeline, hours=12), "it fails"
    assert publisher.visited(pipeline, hours=11.9)
    assert not publisher.visited(pipeline, hours=1)


@pytest.mark.parametrize("length", [3_000, 5_000, 8_170])
def test_a_long_etag_comes_back_and_leaves_the_backup_readable(
    length: int, pipeline: Pipeline, server: FeedServer
) -> None:
    etag = '"' + "e" * (length - 2) + '"'
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"), etag=etag)), "f")
    pipeline.poll(all_feeds=True)
    pipeline.poll(all_feeds=True)
    assert server.requests[1].headers["if-none-match"] == etag
    assert pipeline.feed("f")["last_etag"] == etag
    [key] = pipeline.backups("f")
    info = pipeline.objects.head(key)
    assert info is not None
    assert sum(map(len, (*info.metadata, *info.metadata.values()))) <= 4_096
    assert describe_backup(info).content_hash == pipeline.feed("f")["content_hash"]


def test_each_mirror_of_an_address_gets_its_own_validators_back(
    pipeline: Pipeline, server: FeedServer
) -> None:
    mirrors = [server.route(f"127.0.0.{n}", "/feed", Answer(body=rss("a"), etag=f'"{n}"')) for n in (3, 4)]
    leads = [Answer(status=302, headers={"Location": mirrors[n % 2]}) for n in range(6)]
    pipeline.register(server.route(HOST, "/feed", *leads), "f")
    for _ in leads:
        pipeline.clock.turn(hours=1)
        pipeline.poll(all_feeds=True)
    sent = [each.headers.get("if-none-match") for each in server.requests if each.host != HOST]
    assert sent == [None, None, '"3"', '"4"', '"3"', '"4"']
    assert (pipeline.feed("f")["last_etag"], pipeline.feed("f")["consecutive_failures"]) == ('"4"', 0)
