"""Topics from feeds on loopback servers to published bytes: polls, and a publication after each."""

import json
from typing import Any

import pytest

from rss_pipeline.errors import RegistryError
from rss_pipeline.features.topics.publish import Publication, PublicationStores, publish
from rss_pipeline_tests.features.topics.candidates import assert_valid_bytes
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer


def entry(guid: str, day: int, *, link: str | None = None, author: str = "Ann") -> str:
    """An item, published at this day of February, or without a date for 0."""
    date = f"<pubDate>{day:02} Feb 2026 08:00:00 GMT</pubDate>" if day else ""
    return (
        f"<item><guid isPermaLink='false'>{guid}</guid><title>{guid}</title>{date}"
        f"<dc:creator>{author}</dc:creator><link>{link or f'https://blog.example/{guid}'}</link>"
        f"<description>&lt;p&gt;{guid}&lt;/p&gt;</description></item>"
    )


class Feeds:
    """Feeds that a pipeline polls; `say` gives one another document."""

    def __init__(self, pipeline: Pipeline, server: FeedServer) -> None:
        self._server = server
        self._pipeline = pipeline

    def register(self, id: str, *entries: str, **options: Any) -> None:
        self._pipeline.register(self.say(id, *entries), id, **options)

    def say(self, id: str, *entries: str) -> str:
        body = (
            '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
            f"<title>Feed {id}</title><link>https://{id}.example/</link>{''.join(entries)}</channel></rss>"
        ).encode()
        return self.answer(id, Answer(body=body, etag=f'"{hash(body)}"'))

    def answer(self, id: str, answer: Answer) -> str:
        return self._server.route(f"127.0.1.{ord(id)}", "/feed", answer)


@pytest.fixture
def feeds(pipeline: Pipeline, server: FeedServer) -> Feeds:
    return Feeds(pipeline, server)


def polled(pipeline: Pipeline) -> list[Publication]:
    """All feeds visited, and the topics published that are due then."""
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)
    stores = PublicationStores.of(pipeline.settings, pipeline.database, pipeline.objects)
    done = publish(stores, clock=pipeline.clock)
    for each in done:
        assert each.error is None
        atom, json_feed = (_object(pipeline, f"{each.topic_id}.{name}")[0] for name in ("atom", "json"))
        assert_valid_bytes(atom, json_feed)
    return done


def _object(pipeline: Pipeline, name: str) -> Any:
    return pipeline.objects.get(f"topics/{name}")


def shown(pipeline: Pipeline, topic: str = "t") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(_object(pipeline, f"{topic}.json")[0])["items"]
    return items


def titles(pipeline: Pipeline, topic: str = "t") -> list[str]:
    return [item["title"] for item in shown(pipeline, topic)]


def set_topics(pipeline: Pipeline, **topics: dict[str, Any]) -> None:
    pipeline.topics = {id: {"public": True, **keys} for id, keys in topics.items()}
    pipeline.write_registry()


@EVERYWHERE
def test_news_are_published_in_their_place_and_a_poll_without_news_writes_nothing(
    place: Pipeline, server: FeedServer
) -> None:
    pipeline = place
    feeds = Feeds(pipeline, server)
    shared = "https://shared.example/post"
    feeds.register("a", entry("a1", 1), entry("a2", 4, link=f"{shared}?utm_source=a"))
    feeds.register("b", entry("b1", 2), entry("b2", 5, link=shared))
    feeds.register("c", entry("c1", 3), entry("c2", 6, link=f"{shared}#top"))
    set_topics(pipeline, t={"of": ["b", "a", "c"]}, u={"of": ["c"]})
    assert [each.topic_id for each in polled(pipeline)] == ["t", "u"]
    assert titles(pipeline) == ["b2", "c1", "b1", "a1"]
    copies = shown(pipeline)[0]["_rss_pipeline"]["also_in"]
    assert [copy["member"] for copy in copies] == ["a", "c"], "one item of three feeds is shown once"
    before = {info.key: info.modified for info in pipeline.objects.list("topics/")}
    assert polled(pipeline) == []
    feeds.say("a", entry("a3", 3), entry("a2", 4, link=shared))
    feeds.answer("c", Answer(status=500))
    [changed] = polled(pipeline)
    assert (changed.topic_id, changed.changed) == ("t", ("topics/t.json", "topics/t.atom"))
    assert sorted(titles(pipeline)[1:3]) == ["a3", "c1"], "a feed that fails keeps what it had"
    after = {info.key: info.modified for info in pipeline.objects.list("topics/")}
    assert {key for key in after if after[key] != before[key]} <= {"topics/t.json", "topics/t.atom"}


def test_of_a_first_document_five_items_come_dated_ones_first(pipeline: Pipeline, feeds: Feeds) -> None:
    old = [entry(f"old-{day}", day) for day in range(1, 20)]
    undated = [entry(f"undated-{n}", 0) for n in range(10)]
    feeds.register("a", *undated, *old)
    feeds.register("b", entry("b", 3), *undated)
    set_topics(pipeline, t={"of": ["a"]}, both={"of": ["b", "a"]})
    polled(pipeline)
    assert titles(pipeline) == [f"old-{day}" for day in (19, 18, 17, 16, 15)]
    assert len(titles(pipeline, "both")) == 5 + 5
    assert titles(pipeline, "both")[5] == "b", "undated ones are last"
    feeds.say("a", entry("new-1", 21), entry("new-2", 0), *old)
    polled(pipeline)
    assert titles(pipeline)[:3] == ["new-2", "new-1", "old-19"], "what comes later is news"
    assert len(titles(pipeline)) == 7


def test_each_shows_the_latest_of_each_stream_of_one_feed(pipeline: Pipeline, feeds: Feeds) -> None:
    written = [entry(f"{author}-{day}", day, author=author) for day in (1, 2, 3) for author in ("Ann", "Bob")]
    streams = {
        "ann": {"author": "ann"},
        "bob": {"author": "BOB"},
        "third": {"xpath": "//item[title='Bob-3']"},
    }
    feeds.register("a", *written, entry("Cid-1", 1, author="Cid"), streams=streams)
    set_topics(
        pipeline, t={"of": ["a/ann", "a/bob"], "each": 1}, all={"of": ["a/bob"]}, x={"of": ["a/third"]}
    )
    polled(pipeline)
    assert sorted(titles(pipeline)) == ["Ann-3", "Bob-3"]
    assert titles(pipeline, "all") == ["Bob-3", "Bob-2", "Bob-1"]
    assert titles(pipeline, "x") == ["Bob-3"]
    assert shown(pipeline)[0]["_rss_pipeline"]["source"]["member"] in ("a/ann", "a/bob")
    feeds.say("a", entry("Ann-4", 4), *written)
    polled(pipeline)
    assert sorted(titles(pipeline)) == ["Ann-4", "Bob-3"]


@pytest.mark.slow
def test_a_private_feed_is_published_only_in_a_topic_that_says_so(pipeline: Pipeline, feeds: Feeds) -> None:
    feeds.register("a", entry("a1", 1))
    set_topics(pipeline, t={"of": ["a"], "public": False})
    with pytest.raises(RegistryError, match="public: true"):
        pipeline.sync()
    assert polled(pipeline) == []
    set_topics(pipeline, t={"of": ["a"]})
    polled(pipeline)
    assert titles(pipeline) == ["a1"]
    set_topics(pipeline, t={"of": ["a"], "public": False})
    assert polled(pipeline) == []
    assert titles(pipeline) == ["a1"], "a file with mistakes changes nothing"
