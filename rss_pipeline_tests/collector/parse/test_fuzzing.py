"""Whatever comes, no exception leaves the collector and nothing hangs: 900 cases in CI, 50,000 by `make
soak`.

A case is a URL, a date, a set of headers, an answer over a real connection, or a document taken through all
that the collector does with one: decode, parse, dates, images, when to come back.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import httpcore
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.fetch.feeds import fetch_feeds
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.guarded_transport import Network
from rss_pipeline.collector.http.headers import (
    DAY_SECONDS,
    Head,
    charset_of,
    content_codings,
    fresh_seconds,
    parse_retry_after,
)
from rss_pipeline.collector.http.redirects import redirect_target
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.images.find import find_images, item_images, may_show_images
from rss_pipeline.collector.images.urls import image_url, resolver
from rss_pipeline.collector.models.clock import LONGEST
from rss_pipeline.collector.models.failure import FAILURE_KINDS, Failure
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.item import ParsedFeed
from rss_pipeline.collector.models.outcome import Document, NotModified
from rss_pipeline.collector.parse.dates.read import parse_date
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.collector.parse.links import MAX_LINK_CHARACTERS, absolute
from rss_pipeline.collector.schedule.next_visit import next_after_failure, next_after_success
from rss_pipeline.errors import NotAFeed
from rss_pipeline_tests.collector.fetch.rounds import NOW, POLICY, InstantPace, feed
from rss_pipeline_tests.collector.parse import mutations
from rss_pipeline_tests.support.examples import examples
from rss_pipeline_tests.support.server import Answer, FeedServer

SECONDS = 5.0
"""Of processor time, the most a case may take: they are small, and what takes long hangs."""
TIMES = pytest.mark.parametrize(
    "times",
    [
        pytest.param(1, id="short"),
        pytest.param(60, id="long", marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)


def fuzz(cases: int, check: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Run `check` on so many cases, or on the part of them that the profile wants. Each must end in time."""

    def timed(**values: Any) -> None:
        started = time.process_time()
        check(**values)
        assert time.process_time() - started < SECONDS

    wanted = settings(
        max_examples=examples(cases),
        deadline=None,
        # What a case is made of tells enough: shrinking it is what takes the time, where one fails.
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    wanted(given(**strategies)(timed))()


PIECES = (
    "http:",
    "https://",
    "//",
    "/",
    "?",
    "#",
    "@",
    ":",
    "[",
    "]",
    "::1",
    "127.0.0.1",
    "example.com",
    "..",
    ".",
    "%",
    "%00",
    "%zz",
    "xn--",
    "xn--a",
    "ü",
    "あ",
    "\u2488",
    "\u200d",
    "\ud800",
    " ",
    "\t",
    "\n",
    "\0",
    "\\",
    "user:pw@",
    ":99999",
    ":0",
    ":٣",
    "javascript:",
    "data:,",
    "mailto:a",
    "feed:",
    "a" * 70,
    "a." * 130,
    "é",
    "=",
    "&",
    ";",
    "*",
)
urls = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)
bases = (
    st.sampled_from((None, "", "https://example.com/a/b?c", "http://[::1]/", "http://[", "mailto:x", "//x"))
    | urls
)


def _trouble_or(take_apart: Callable[[], RequestUrl]) -> RequestUrl | FetchError:
    try:
        return take_apart()
    except FetchError as trouble:
        return trouble


@TIMES
def test_urls(times: int) -> None:
    here = request_url("https://feeds.example/a/b")

    def check(url: str, base: str | None) -> None:
        for there in (_trouble_or(lambda: request_url(url)), _trouble_or(lambda: redirect_target(here, url))):
            if isinstance(there, FetchError):
                assert there.kind in {"bad_url", "redirect"}
                assert len(there.advised) < 500
            else:
                assert "@" not in there.address.netloc.decode("ascii")
                assert there.target.startswith(b"/")
                assert request_url(there.url).origin == there.origin
        for found in (absolute(url, (base,)), image_url(url, base), resolver([base])(url)):
            assert found is None or 0 < len(found) <= MAX_LINK_CHARACTERS

    fuzz(200 * times, check, url=urls, base=bases)


VALUES = (
    "",
    " ",
    "0",
    "1",
    "-1",
    "3600",
    "9" * 400,
    "1.5",
    "1e9",
    "max-age=60",
    "max-age=",
    'max-age="60',
    "no-cache",
    "no-store",
    "s-maxage=1",
    ",",
    ";",
    "=",
    '"',
    "charset=",
    "charset=utf-8",
    "gzip",
    "gzip, gzip",
    "br",
    "identity",
    "Mon, 02 Mar 2026 08:00:00 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "30 Feb",
    "Mon, 02 Mar 99999 08:00:00 GMT",
    "Mon, 02 Mar 2026 08:00:00 +9999",
    "\xff",
    "٣",
    "\t",
    "text/xml",
)
values = st.lists(st.sampled_from(VALUES) | st.text(st.characters(max_codepoint=255), max_size=5), max_size=5)
NAMES = ("retry-after", "cache-control", "expires", "date", "age", "content-type", "content-encoding", "etag")
heads = st.dictionaries(st.sampled_from(NAMES), values.map("".join), max_size=5)


@TIMES
def test_headers(times: int) -> None:
    def check(fields: dict[str, str]) -> None:
        head = Head((name.encode(), value.encode("latin-1", "replace")) for name, value in fields.items())
        wait = parse_retry_after(head.first("retry-after"), now=NOW)
        assert wait is None or 0 <= wait <= DAY_SECONDS
        fresh = fresh_seconds(head, now=NOW)
        assert fresh is None or 0 <= fresh <= 2**31
        assert charset_of(head.first("content-type")) == charset_of(head.first("content-type")).lower()
        assert all(content_codings(head.list("content-encoding")))
        asked = Failure(kind="http_status", message="", retry_after=wait)
        assert NOW < next_after_failure(feed("http://a.example/"), asked, now=NOW).at <= NOW + LONGEST

    fuzz(150 * times, check, fields=heads)


DATES = (
    "Mon, ",
    "Monday",
    "02",
    "Mar",
    "March",
    "2026",
    "26",
    " ",
    ",",
    "-",
    "/",
    "T",
    ":",
    "08:00",
    "08:00:00",
    ".123",
    "Z",
    "GMT",
    "+0800",
    "+08:00",
    "GMT+0800",
    "(CST)",
    "JST",
    "PM",
    "年",
    "月",
    "日",
    "下午",
    "星期四",
    "2004年1月1日",
    "0000",
    "9999",
    "24:00",
    "23:59:60",
    "99",
    "\u202f",
    "\xa0",
    "：",
    "٣",
    "9" * 50,
)


@TIMES
def test_dates(times: int) -> None:
    def check(raw: str) -> None:
        moment = parse_date(raw, now=NOW)
        assert moment is None or (moment.tzinfo is UTC and 1970 <= moment.year <= NOW.year + 1)

    texts = st.lists(st.sampled_from(DATES) | st.text(max_size=3), max_size=9).map("".join)
    fuzz(150 * times, check, raw=texts)


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


TAGS = (
    "<img ",
    "<IMG/",
    "src=",
    "srcset=",
    "data-src=",
    '"',
    "'",
    ">",
    "/>",
    "<picture>",
    "</picture>",
    "<source ",
    "<noscript>",
    "</noscript>",
    "<!--",
    "-->",
    "<p>",
    "</p>",
    "<svg>",
    "<base href=",
    "a.png",
    "//x/y.jpg 2x,",
    "data:,",
    "http://[",
    "width=1 height=1 ",
    "style='width:1.1.1px'",
    "&amp;",
    "&#0;",
    "\0",
    "\ud800",
    "<![CDATA[",
    "<a><table>",
)


@TIMES
def test_html(times: int) -> None:
    def check(pieces: list[str], base: str | None) -> None:
        assert all(
            image.startswith(("http://", "https://")) for image in find_images("".join(pieces), bases=[base])
        )

    pieces = st.lists(st.sampled_from(TAGS) | st.text(max_size=4), max_size=15)
    fuzz(75 * times, check, pieces=pieces, base=bases)


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
