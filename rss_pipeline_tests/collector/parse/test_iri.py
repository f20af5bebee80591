"""URLs of publishers as IRIs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse import iri
from rss_pipeline.collector.parse.iri import is_absolute_iri, published_url
from rss_pipeline.collector.parse.links import absolute


@pytest.mark.parametrize(
    ("url", "published"),
    [
        ("https://example.org/a_b/c-d~e.html", "https://example.org/a_b/c-d~e.html"),
        ("https://example.org", "https://example.org"),
        ("HTTPS://Example.org/A", "HTTPS://Example.org/A"),
        ("https://example.org/a b?c=|#d#e", "https://example.org/a%20b?c=%7C#d%23e"),
        ("https://example.org/\u65e5\u672c", "https://example.org/\u65e5\u672c"),
        ("javascript:alert(1)", None),
        ("https://", None),
        ("/a", None),
        (None, None),
    ],
)
def test_a_url_is_published_as_an_iri(url: str | None, published: str | None) -> None:
    assert published_url(url) == published


@given(st.from_regex(iri._USUAL, fullmatch=True))
def test_a_usual_url_is_the_same_without_the_short_way(url: str) -> None:
    assert absolute(url, ()) == url
    assert is_absolute_iri(url)
