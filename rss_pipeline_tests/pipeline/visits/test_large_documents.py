"""Large documents and large items: read where the feed may be so large, and as much of a text as has room."""

import random
from typing import Any

import pytest

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.item import item_id
from rss_pipeline_tests.support.pipeline import Pipeline, ends
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
WORDS = "<p>Notes of an episode, longer than anybody reads.</p>"


def episodes(*sizes: int) -> bytes:
    """A feed with an item of each size in bytes."""
    items = "".join(
        f"<item><guid>{n}</guid><title>{n}</title><description><![CDATA["
        f"{WORDS * (size // len(WORDS))}]]></description></item>"
        for n, size in enumerate(sizes)
    )
    return f"<rss version='2.0'><channel><title>Podcast</title>{items}</channel></rss>".encode()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["max_size", "setting"])
def test_a_podcast_of_more_than_the_usual_size_is_read_where_its_size_is_allowed(
    how: str, pipeline: Pipeline, server: FeedServer
) -> None:
    body = episodes(*[600_000] * 35)
    url = server.route(HOST, "/feed", Answer(body=body, gzip=True, etag='"1"'))
    id = pipeline.register(url, "podcast")
    pipeline.poll()
    feed = pipeline.feed(id)
    assert feed["last_error_kind"] == "too_large"
    assert f"decompresses to {len(body):,} bytes; at most 20,000,000 are read" in feed["last_error"]
    assert pipeline.backups(id) == []
    if how == "setting":
        pipeline.set(max_feed_mb=25)
        pipeline.clock.turn(hours=1)
    else:
        pipeline.feeds[0]["max_size"] = "25MB"
        pipeline.write_registry()
    pipeline.poll()
    assert pipeline.feed(id)["last_error_kind"] is None, "a new max_size makes it due at once"
    assert len(pipeline.guids(id)) == 35
    assert all(len(item["content_html"]) > 599_000 for item in pipeline.items(id))
    found = pipeline.objects.get(pipeline.backups(id)[0])
    assert found is not None
    assert found[0] == body
    pipeline.clock.turn(hours=25)
    pipeline.poll()
    assert server.requests[-1].headers["if-none-match"] == '"1"'


def test_a_feed_above_its_own_size_fails_with_both_numbers_and_harms_no_neighbour(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route(HOST, "/a", Answer(body=episodes(9_000)))
    large = pipeline.register(url, "large", max_size="5KB")
    other = pipeline.register(server.route(HOST, "/b", Answer(body=episodes(9_000))), "other")
    rounds = pipeline.poll()
    [failed] = [each for each in ends(rounds, lambda visit: visit.outcome) if isinstance(each, Failure)]
    assert failed.kind == "too_large"
    assert failed.message.startswith(f"The body has {len(episodes(9_000)):,} bytes; at most 5,000 are read.")
    assert (pipeline.guids(large), pipeline.guids(other)) == ([], ["0"])


def test_an_item_that_was_stored_by_its_long_guid_does_not_come_again(
    pipeline: Pipeline, server: FeedServer
) -> None:
    long = noise(3_000)
    url = server.route(HOST, "/feed", Answer(body=of_guids("a", long)))
    id = pipeline.register(url, "feed")
    pipeline.poll()
    [short] = set(pipeline.guids(id)) - {"a"}
    update = "UPDATE items SET guid = ?, id = ? WHERE guid = ?"
    pipeline.database.query(update, [long, item_id(id, long), short])
    for body in (of_guids("a", "b", long), of_guids("b", "c", long)):
        server.route(HOST, "/feed", Answer(body=body))
        pipeline.clock.turn(hours=3)
        pipeline.poll(all_feeds=True)
    assert sorted(pipeline.guids(id)) == sorted(["a", "b", "c", long])


def noise(length: int) -> str:
    """Text that no database makes shorter."""
    return random.Random(1).randbytes(length // 2).hex()


def of_guids(*guids: str) -> bytes:
    items = "".join(f"<item><guid isPermaLink='false'>{guid}</guid><title>T</title></item>" for guid in guids)
    return f"<rss version='2.0'><channel><title>T</title>{items}</channel></rss>".encode()


def _guid(row: dict[str, Any]) -> str:
    return str(row["guid"])
