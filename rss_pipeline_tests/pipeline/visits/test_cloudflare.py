"""Polls with their state in Cloudflare: the Worker and D1 in real workerd, R2 by its S3 API.

Those that compare with the same polls at home do so with Postgres, too.
Faults between us and them are in test_cloudflare_faults.py, the stores' own contracts in storage/.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline_tests.support.pipeline import Pipeline, ends, on_cloudflare, rss
from rss_pipeline_tests.support.places import ELSEWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.faults import FaultProxy

ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/blog/">
<title>An Atom feed \N{SNOWMAN}</title><link href="http://example.org/"/><id>urn:feed</id>
<updated>2026-03-01T00:00:00Z</updated>
<entry><id>urn:1</id><title type="html">&lt;b&gt;Bold&lt;/b&gt;</title><link href="one"/>
<updated>2026-02-28T10:00:00+09:00</updated><author><name>Zo\u00eb</name></author><category term="a"/>
<content type="html">&lt;p&gt;\N{PILE OF POO}
&lt;img src="pic.png"&gt;&lt;img src="pic.png"&gt;&lt;/p&gt;</content>
</entry>
<entry><id>urn:2</id><title>Enclosed</title><updated>sometime</updated>
<link rel="enclosure" href="sound.mp3" type="audio/mpeg" length="123456789"/><summary>Short</summary></entry>
</feed>""".encode()
JSON_FEED = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "A JSON Feed",
        "home_page_url": "https://example.com/",
        "items": [
            {
                "id": 1,
                "url": "https://example.com/1",
                "content_text": "One",
                "image": "https://example.com/1.png",
            },
            {"id": "2", "content_html": "<img src='/2.png'>", "date_published": "2026-02-27T01:02:03Z"},
        ],
    }
).encode()
GBK = (
    '<?xml version="1.0" encoding="gbk"?><rss version="2.0"><channel><title>新闻</title>'
    "<item><guid>中</guid><title>头条</title><description>正文 &lt;img src='http://images.example/图.png'&gt;"
    "</description></item></channel></rss>"
).encode("gbk")
DOUBLED = rss("a", "b", "a", "A", " a", "b", image="http://images.example/doubled")
LARGE = rss(*(f"{n:04}-{'大' * 300}" for n in range(300)), "x" * 20_000, image="http://images.example/large")
"""Its items take more than a megabyte: several batches."""


def _item(guid: str, text: str) -> bytes:
    return rss(guid).replace(b"Text of", f"{text} of".encode())


DOCUMENTS: dict[str, Answer] = {
    "rss": Answer(body=rss("a", "b", image="http://images.example/r"), etag='"r"', last_modified="Yesterday"),
    "atom": Answer(body=ATOM, last_modified="Sun, 01 Mar 2026 00:00:00 GMT"),
    "json": Answer(body=JSON_FEED, etag='W/"\u00e9"', headers={"Content-Type": "application/feed+json"}),
    "gbk": Answer(body=GBK, headers={"Content-Type": "text/xml"}),
    "doubled": Answer(body=DOUBLED, etag=etag_of(DOUBLED), gzip=True),
    "large": Answer(body=LARGE, etag=etag_of(LARGE), headers={"Cache-Control": "max-age=60"}),
    "row": Answer(body=_item("long", "é" * 700_000), etag='"row"'),
    "empty": Answer(body=rss(), etag='"e"'),
    "page": Answer(
        body=b"<!doctype html><title>No feed</title><p>Hello", headers={"Content-Type": "text/html"}
    ),
    "gone": Answer(status=410),
    "busy": Answer(status=429, headers={"Retry-After": "7200"}),
}
HOSTS = {id: f"127.0.0.{number}" for number, id in enumerate(DOCUMENTS, start=2)}


def serve(server: FeedServer, documents: Mapping[str, Answer] = DOCUMENTS) -> None:
    for id, answer in documents.items():
        server.route(HOSTS[id], "/feed", answer)


def register(pipeline: Pipeline, server: FeedServer) -> None:
    for id, host in HOSTS.items():
        pipeline.register(server.url(host, "/feed"), id)


@contextmanager
def machine(home: Path, **settings: Any) -> Iterator[Pipeline]:
    """A pipeline in a home of its own."""
    home.mkdir()
    pipeline = Pipeline(home, **settings)
    yield pipeline
    pipeline.close()


def rows(pipeline: Pipeline) -> dict[str, list[dict[str, Any]]]:
    """Every column of every row, but how long a publisher took to answer and the clock's part in an order."""
    found = {
        name: pipeline.rows(f"SELECT * FROM {name} ORDER BY id") for name in ("items", "image_tasks", "feeds")
    }
    for feed in found["feeds"]:
        if feed["last_change"] is not None:
            feed["last_change"] = {**json.loads(feed["last_change"]), "fetch_ms": None}
    for item in found["items"]:
        assert item.pop("arrived") is not None
    found["hosts"] = pipeline.rows("SELECT * FROM hosts ORDER BY host")
    return found


def objects(pipeline: Pipeline) -> dict[str, Any]:
    found = {}
    for listed in pipeline.objects.list(""):
        got = pipeline.objects.get(listed.key)
        assert got is not None
        body, info = got
        found[listed.key] = (body, info.content_type, dict(info.metadata))
    return found


@ELSEWHERE
def test_documents_polled_into_another_place_give_the_same_rows_and_objects_as_at_home(
    tmp_path: Path, place: Pipeline, server: FeedServer
) -> None:
    away = place
    serve(server)
    more = {
        "rss": Answer(body=rss("c", "b", image="http://images.example/r"), etag='"r2"'),
        "large": Answer(body=LARGE.replace(b"0007-", b"new7-"), etag='"l2"'),
        "empty": Answer(body=rss("first"), etag='"e2"'),
        "page": Answer(body=rss("now a feed")),
        "gone": Answer(body=rss("back", title="🙂")),
        "json": Answer(status=500),
    }
    with machine(tmp_path / "home") as home:
        both = (home, away)
        for pipeline in both:
            register(pipeline, server)
            pipeline.poll()
        assert rows(away) == rows(home)
        assert objects(away) == objects(home)
        assert len(away.items("large")) == 301
        assert [item["content_omitted"] is None for item in away.items("row")] == [True]
        assert len(home.tasks()) > 300

        serve(server, more)
        for pipeline in both:
            pipeline.clock.turn(hours=26)
            pipeline.poll()
        assert rows(away) == rows(home)
        assert objects(away) == objects(home)
        assert len(away.items("large")) == 302
        assert not (away.settings.home / "rss.sqlite").exists()
        assert (away.settings.home / "objects").exists() == (away.settings.objects_server is None)


def test_a_second_machine_goes_on_where_the_first_stopped(
    tmp_path: Path, away: Pipeline, cloudflare: Cloudflare, server: FeedServer
) -> None:
    serve(server)
    register(away, server)
    away.poll()
    before, kept = rows(away), objects(away)
    server.forget()
    with machine(tmp_path / "second", **on_cloudflare(cloudflare)) as second:
        register(second, server)
        second.clock.now = away.clock.now
        second.clock.turn(minutes=10)
        second.poll()
        assert server.requests == [], "nothing is due yet"

        second.clock.turn(hours=3)
        second.poll()
        for id in ("rss", "json", "doubled", "large", "row", "empty"):
            [request] = server.asked(HOSTS[id])
            assert request.headers["if-none-match"].encode("latin-1").decode("latin-1") == DOCUMENTS[id].etag
        for id in ("rss", "atom"):
            [request] = server.asked(HOSTS[id])
            assert request.headers["if-modified-since"] == DOCUMENTS[id].last_modified
        assert rows(second)["items"] == before["items"]
        assert rows(second)["image_tasks"] == before["image_tasks"]
        assert objects(second) == kept

        serve(server, {"rss": Answer(body=rss("new", "a"), etag='"new"')})
        second.clock.turn(hours=3)
        second.poll("rss")
        assert second.guids("rss") == ["a", "b", "new"]
        assert len(second.backups("rss")) == 2


def test_an_unmigrated_d1_fails_the_run_with_a_sentence_that_says_what_to_run(
    away: Pipeline, cloudflare: Cloudflare, server: FeedServer
) -> None:
    serve(server)
    register(away, server)
    cloudflare.wipe()
    [round_] = away.try_poll()
    assert round_.error is not None
    assert "rss-pipeline migrate" in round_.error
    assert server.requests == []


def not_cut(found: dict[str, list[dict[str, Any]]], away: Pipeline) -> dict[str, list[dict[str, Any]]]:
    """The rows without the text that is larger than a row of D1, where `away` is D1."""
    if away.settings.pays_by_row:
        for row in found["items"]:
            if row["feed_id"] == "item":
                row |= {"content_html": None, "content_omitted": None}
    return found


BAD: dict[str, Answer] = {
    "etag": Answer(body=rss("a"), etag=f'"{"é" * 10_240}"'),
    "item": Answer(body=_item("huge", "z" * 3_000_000), etag='"item"'),
    "guid": Answer(body=rss("g" * 102_400), etag='"guid"'),
    "guids": Answer(body=rss(*(f"{n}{'漢' * 34_000}" for n in range(8))), etag='"guids"'),
    "odd": Answer(body=rss("odd", title="\ufffe\x85\u2028 '; DROP TABLE feeds; --"), etag='"\x80\xff"'),
}


@ELSEWHERE
def test_one_feed_s_bad_data_harms_no_feed_at_any_poll(
    tmp_path: Path, place: Pipeline, server: FeedServer
) -> None:
    away = place
    with machine(tmp_path / "home") as home:
        for pipeline in (home, away):
            for number, (id, answer) in enumerate(BAD.items(), start=2):
                pipeline.register(server.route(f"127.0.0.{number}", "/feed", answer), id)
            for number in range(3):
                url = server.route(
                    f"127.0.1.{number + 1}", "/feed", Answer(body=rss(f"n{number}"), etag='"n"')
                )
                pipeline.register(url, f"neighbour-{number}")
        for _ in range(3):
            for pipeline in (home, away):
                rounds = pipeline.poll(all_feeds=True)
                assert len(ends(rounds, lambda visit: visit)) == len(BAD) + 3
            assert not_cut(rows(away), away) == not_cut(rows(home), away)
            failed = "SELECT id FROM feeds WHERE consecutive_failures > 0 OR last_error IS NOT NULL"
            assert away.rows(failed) == []
            assert away.rows("SELECT token FROM leases") == []
        assert objects(away) == objects(home)
        assert away.guids("etag") == ["a"]
        assert away.feed("etag")["last_etag"] is None, "too long to be kept"
        [huge], [whole] = away.items("item"), home.items("item")
        assert "zzz" in whole["content_html"]
        assert whole["content_omitted"] is None
        if not away.settings.pays_by_row:
            assert huge["content_html"] == whole["content_html"]
        else:
            assert whole["content_html"].startswith(huge["content_html"])
            assert 1_990_000 < len(huge["content_html"]) < 2_000_000
            assert "its text ends after" in huge["content_omitted"]
        assert [guid.partition(":")[0] for guid in away.guids("guid")] == ["sha256"]
        assert len(away.items("guids")) == 8
        assert [away.guids(f"neighbour-{number}") for number in range(3)] == [["n0"], ["n1"], ["n2"]]


@pytest.fixture
def counted(away: Pipeline, cloudflare: Cloudflare, server: FeedServer) -> Iterator[FaultProxy]:
    """A proxy that counts what polls of a hundred feeds cost; all were polled once before."""
    for number in range(100):
        answer = Answer(body=rss(f"g{number}"), etag=f'"{number}"')
        away.register(server.route(f"127.0.2.{number + 1}", "/feed", answer), f"feed-{number}")
    away.set(fetch_concurrency=20)
    away.poll()
    with FaultProxy(cloudflare.url) as proxy:
        proxy.keep_answers = True
        away.set(database_server=D1Backend(url=proxy.url, token=cloudflare.token))
        away.clock.turn(hours=3)
        yield proxy


def cost(away: Pipeline, proxy: FaultProxy) -> tuple[int, int]:
    """Proxy requests and rows written of a poll of all feeds."""
    proxy.heal()
    proxy.answers.clear()
    rounds = away.poll(all_feeds=True)
    assert len(ends(rounds, lambda visit: visit)) == 100
    return proxy.count("d1"), proxy.rows_written()


def test_a_poll_of_a_hundred_unchanged_feeds_costs_11_calls_and_4_rows_a_feed(
    away: Pipeline, counted: FaultProxy
) -> None:
    calls, rows = cost(away, counted)
    # Three of them note which feeds were begun, 25 at a time: what was not is no suspect after a kill.
    assert calls <= 11
    assert rows <= 4 * 100


def test_a_changed_feed_costs_at_most_2_calls_more_for_each_started_megabyte(
    away: Pipeline, counted: FaultProxy, server: FeedServer
) -> None:
    listed = ["g0", *(f"known-{n}" for n in range(10))]
    server.route("127.0.2.1", "/feed", Answer(body=rss(*listed), etag='"known"'))
    away.poll(all_feeds=True)
    for started, items in ((1, 10), (3, 250)):
        listed += [f"{started}-{n}" for n in range(items)]
        body = rss(*listed).replace(b"Text of", b"x" * 10_000)
        assert (started - 1) * 1_000_000 < len(body) < started * 1_000_000
        server.route("127.0.2.1", "/feed", Answer(body=body, etag=f'"{started}"'))
        away.clock.turn(hours=3)
        # One call for all changed feeds shows which guids are known.
        assert cost(away, counted)[0] <= 14 + 2 * started
        assert away.guids("feed-0") == sorted(listed)


def test_a_new_item_costs_at_most_7_rows_with_its_indexes_and_its_images_are_counted_apart(
    away: Pipeline, counted: FaultProxy, server: FeedServer
) -> None:
    _, unchanged = cost(away, counted)
    listed = ["g0", *(f"new-{n}" for n in range(100))]
    server.route("127.0.2.1", "/feed", Answer(body=rss(*listed), etag='"new"'))
    away.clock.turn(hours=3)
    a_poll_with_news = 10
    assert cost(away, counted)[1] <= unchanged + 7 * 100 + a_poll_with_news
    assert len(away.items("feed-0")) == 101
    assert away.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
