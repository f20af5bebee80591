"""Filters, times and pages: what a client asks of a stream."""

import pytest

from rss_pipeline.api.google_reader.answers import Refused
from rss_pipeline.api.google_reader.forms import query_fields
from rss_pipeline.api.google_reader.pages import Page, read_page
from rss_pipeline.api.google_reader.streams import FeedStream, Label, read_stream

ALL = "user/-/state/com.google/reading-list"
STATE = "user/-/state/com.google"


def page(stream: str, query: str, most: int = 1_000) -> Page:
    return read_page(read_stream(stream), query_fields(query.encode()), most=most)


@pytest.mark.parametrize(
    ("stream", "query", "expected"),
    [
        pytest.param(ALL, "", Page(), id="all"),
        pytest.param(
            ALL, f"n=1000&xt={STATE}/read", Page(count=1_000, is_read=False), id="NetNewsWire: unread"
        ),
        pytest.param(f"{STATE}/read", "n=10", Page(count=10, is_read=True), id="RSS Guard, Read You: read"),
        pytest.param(ALL, f"it={STATE}/read", Page(is_read=True), id="Read You's FreshRSS mode"),
        pytest.param(
            ALL,
            f"xt={STATE}/read&xt={STATE}/starred&n=2500",
            Page(is_read=False, is_starred=False, count=1_000),
            id="Readrops: xt twice",
        ),
        pytest.param(ALL, f"xt={STATE}/unread", Page(is_read=True), id="Readrops: xt=unread"),
        pytest.param(f"{STATE}/starred", "", Page(is_starred=True), id="starred"),
        pytest.param(
            f"{STATE}/starred", f"xt={STATE}/read", Page(is_starred=True, is_read=False), id="and unread"
        ),
        pytest.param(f"{STATE}/kept-unread", "", Page(is_read=False), id="kept-unread is unread"),
        pytest.param(f"{STATE}/fresh", "", Page(is_read=False), id="fresh is unread"),
        pytest.param(ALL, f"xt={STATE}/kept-unread", Page(is_read=True), id="not unread"),
        pytest.param(
            "feed/a-b", "n=20&r=o", Page(place=FeedStream("a-b"), oldest_first=True), id="oldest first"
        ),
        pytest.param("feed/a-b", "r=n", Page(place=FeedStream("a-b")), id="newest first"),
        pytest.param("user/-/label/X", "", Page(place=Label("X")), id="a folder"),
        pytest.param(ALL, "it=user/-/label/X", Page(place=Label("X")), id="a folder by a filter"),
        pytest.param(
            ALL, f"xt={STATE}/read&it={STATE}/read", Page(is_read=False, is_empty=True), id="contradiction"
        ),
        pytest.param(ALL, f"it={STATE}/broadcast", Page(is_empty=True), id="a state that nothing has"),
        pytest.param(ALL, f"xt={ALL}", Page(is_empty=True), id="all but all"),
        pytest.param(ALL, "c=1763822000123456", Page(behind=1_763_822_000_123_456), id="the next page"),
        pytest.param(ALL, "c=&xt=&it=&ot=&n=", Page(), id="empty fields"),
        pytest.param(ALL, "n=200000", Page(count=1_000), id="RSS Guard: n=200000"),
        pytest.param(ALL, "client=liferea&merge=true&ck=1&output=json", Page(), id="Liferea: other fields"),
        pytest.param(ALL, "ot=1763822000123456", Page(since=1_763_822_000_123_456), id="since"),
        pytest.param(ALL, "nt=1763822000", Page(until=1_763_822_000_000_000), id="until"),
    ],
)
def test_a_page_is_what_the_client_asks_for(stream: str, query: str, expected: Page) -> None:
    assert page(stream, query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "n=many",
        "n=-1",
        "n=0",
        "c=abc",
        "c=99999999999999999",
        "c=-1",
        "ot=yesterday",
        "nt=x",
        "xt=nonsense",
        "xt=feed/a",
        "xt=user/-/label/X",
        "it=feed/a&it=feed/b",
    ],
)
def test_what_is_not_understood_is_refused_and_not_left_out(query: str) -> None:
    with pytest.raises(Refused) as refused:
        page(ALL, query)
    assert refused.value.status == 400
