"""Documents made at random, alone or in an answer over a real connection: nothing is raised, nothing hangs.

A document is taken through all that the collector does with one: decode, parse, dates, images, when to come
back.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import httpcore
import pytest
from hypothesis import strategies as st

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.http.guarded_transport import Network
from rss_pipeline.collector.images.find import item_images, may_show_images
from rss_pipeline.collector.models.clock import LONGEST
from rss_pipeline.collector.models.failure import FAILURE_KINDS, Failure
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.item import ParsedFeed
from rss_pipeline.collector.models.outcome import Document, NotModified
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.collector.schedule.next_visit import next_after_success
from rss_pipeline.errors import NotAFeed
from rss_pipeline_tests.collector.fetch.rounds import NOW, POLICY, InstantPace, feed
from rss_pipeline_tests.collector.parse import mutations
from rss_pipeline_tests.collector.parse.fuzzing import SECONDS, TIMES, fuzz
from rss_pipeline_tests.support.server import Answer, FeedServer


def _parsed(body: bytes, content_type: str | None, url: str) -> ParsedFeed | NotAFeed:
    try:
        return parse_feed(body, content_type=content_type, url=url, hint=None, now=NOW)
    except NotAFeed as error:
        return error


def collect(body: bytes, content_type: str | None = None, url: str = "https://example.com/feed") -> None:
    """All that becomes of a document; the assertions are what the stores rely on."""
    parsed = _parsed(body, content_type, url)
    if isinstance(parsed, NotAFeed):
        assert parsed.kind in {"empty_body", "html", "not_a_feed"}
        assert str(parsed).strip()
        return
    guids = [item.guid for item in parsed.items]
    assert len(set(guids)) == len(guids)
    for item in parsed.items:
        told = (item.guid, item.link, item.title, item.author, item.summary, item.content_html, item.base_url)
        assert all("\0" not in text and text.encode() is not None for text in told if text is not None)
        assert item.guid
        assert item.pub_date is None or item.pub_date.tzinfo is UTC
        images = item_images(item, feed_link=parsed.header.link, feed_url=url)
        assert may_show_images(item) or not images
        assert all(image.startswith(("http://", "https://")) for image in images)
    later = next_after_success(feed(url), parsed.header.hints, now=NOW)
    assert NOW < later.at <= NOW + LONGEST
    assert later.reason


@pytest.mark.slow
@TIMES
def test_documents_that_were_broken(times: int) -> None:
    fuzz(150 * times, collect, body=mutations.mutated, content_type=mutations.content_types)


@pytest.mark.slow
@TIMES
def test_documents_that_a_grammar_made(times: int) -> None:
    fuzz(75 * times, collect, body=mutations.grammar_made, content_type=mutations.content_types)


@TIMES
def test_json_feeds(times: int) -> None:
    def check(items: list[Any]) -> None:
        feed = {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items}
        collect(json.dumps(feed).encode())

    fuzz(50 * times, check, items=mutations.json_made)


class Loopback(httpcore.AnyIOBackend):
    """Connections to one server and to nobody else, wherever a redirect leads."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    async def connect_tcp(self, host: str, port: int, **others: Any) -> httpcore.AsyncNetworkStream:  # type: ignore[override]
        if not host.startswith("127.") or port != self._port:
            raise httpcore.ConnectError("nobody is there")
        return await super().connect_tcp(host, port, **others)


async def nobody(host: str, port: int) -> Sequence[str]:
    return []


STATUSES = (
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 200 OK",
    b"HTTP/1.0 200",
    b"HTTP/1.1 301 M",
    b"HTTP/1.1 302 M",
    b"HTTP/1.1 304 N",
    b"HTTP/1.1 403 F",
    b"HTTP/1.1 429 T",
    b"HTTP/1.1 503 U",
    b"HTTP/1.1 599 \xff",
    b"HTTP/1.1 99 x",
    b"HTTP/1.1 103 Early",
    b"HTTP/1.1 101 Switch",
    b"HTTP/2 200",
    b"ICY 200 OK",
    b"",
)
FIELDS = (
    b"Content-Length: 5",
    b"Content-Length: 99999999999",
    b"Content-Length: -1",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Content-Encoding: gzip",
    b"Content-Encoding: br",
    b"Content-Type: text/xml",
    b"Content-Type: ;charset=\xff",
    b'ETag: "\xe9"',
    b"Last-Modified: x",
    b"Retry-After: 999999999999999999999999",
    b"Retry-After: Mon, 02 Mar 2026 08:00:00 GMT",
    b"Cache-Control: max-age=99999999999999999999",
    b"Expires: 0",
    b"cf-mitigated: challenge",
    b"Connection: upgrade",
    b"Set-Cookie: a=b",
    b"X-A: \x00",
    b" folded",
    b"no colon",
    b": no name",
    b"Location: /",
    b"Location: feed",
    b"Location: http://[",
    b"Location: //\xff/",
    b"Location: http://10.0.0.1/",
    b"Location: http://127.0.0.1/",
    b"Location: javascript:a()",
)


def _answer(status: bytes, fields: Iterable[bytes], framing: str, body: bytes, cut: float) -> Answer:
    match framing:
        case "gzip":
            body = gzip.compress(body, compresslevel=1, mtime=0)
        case "chunks":
            body = b"".join(
                b"%x;e=1\r\n%b\r\n" % (len(body[at : at + 99]), body[at : at + 99])
                for at in range(0, len(body), 99)
            ) + (b"0\r\n\r\n")
    raw = b"\r\n".join([status, *fields, b"", body])
    return Answer(raw=raw[: int(len(raw) * cut)])


answers = st.builds(
    _answer,
    st.sampled_from(STATUSES),
    st.lists(st.sampled_from(FIELDS), max_size=4),
    st.sampled_from(("plain", "plain", "gzip", "chunks")),
    st.sampled_from(mutations.SOUND) | st.binary(max_size=40),
    st.sampled_from((1.0, 1.0, 1.0, 0.99, 0.5, 0.05)),
)
A_ROUND = 10


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


@TIMES
def test_answers(times: int, server: FeedServer, tmp_path: Path) -> None:
    hosts = [f"127.0.9.{number + 1}" for number in range(A_ROUND)]
    for host in hosts:
        server.listen(host)
    impatient = replace(
        POLICY,
        deadline=SECONDS,
        concurrency=A_ROUND,
        host_delay=0.0,
        network=Network(nobody, Loopback(server.port)),
    )

    def check(some: list[Answer]) -> None:
        jobs = [
            (feed(server.route(host, "/feed", answer), id=host, etag='"1"'), Access())
            for host, answer in zip(hosts, some, strict=False)
        ]
        outcomes = fetch_feeds(jobs, policy=impatient, spool=tmp_path, clock=lambda: NOW, pace=InstantPace())
        for outcome in outcomes:
            match outcome:
                case Document(path=path, response=response):
                    collect(path.read_bytes(), response.content_type, response.url)
                    path.unlink()
                case Failure(kind=kind, message=message):
                    assert kind in FAILURE_KINDS
                    assert message.endswith(".")
                    assert len(message) < 1000
                case NotModified():
                    pass
                case _:
                    raise AssertionError(outcome)
        assert list(tmp_path.iterdir()) == []

    fuzz(4 * times, check, some=st.lists(answers, min_size=A_ROUND, max_size=A_ROUND))
