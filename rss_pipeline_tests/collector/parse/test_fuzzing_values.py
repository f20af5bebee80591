"""URLs, headers, dates and HTML made at random: only a reader's own errors are raised; nothing hangs."""

from collections.abc import Callable
from datetime import UTC

from hypothesis import strategies as st

from rss_pipeline.collector.http.fetch_error import FetchError
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
from rss_pipeline.collector.images.find import find_images
from rss_pipeline.collector.images.urls import image_url, resolver
from rss_pipeline.collector.models.clock import LONGEST
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.parse.dates.read import parse_date
from rss_pipeline.collector.parse.links import MAX_LINK_CHARACTERS, absolute
from rss_pipeline.collector.schedule.next_visit import next_after_failure
from rss_pipeline_tests.collector.fetch.rounds import NOW, feed
from rss_pipeline_tests.collector.parse.fuzzing import TIMES, fuzz

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
