"""URLs as bases of other references, and the absolute URLs of images."""

from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.images.urls import image_url, resolver
from rss_pipeline.collector.parse.links import absolute, web_base


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://a.example/b/c.html", "https://a.example/b/c.html"),
        ("https://a.example/b?c=d", "https://a.example/b?c=d"),
        ("https://a.example/b?", "https://a.example/b"),
        ("https://a.example/b#", "https://a.example/b"),
        ("https://ann:secret@a.example/b", "https://a.example/b"),
        ("https://a.example/@ann", "https://a.example/@ann"),
        (" https://a.example/b ", "https://a.example/b"),
        ("https://a.example", "https://a.example"),
        ("https:///b", None),
        ("https://[/b", None),
        ("mailto:ann@a.example", None),
        ("/b", None),
        ("", None),
        (None, None),
    ],
)
def test_a_base_is_an_absolute_url_without_a_password(url: str | None, base: str | None) -> None:
    assert web_base(url) == base


URLS = st.builds(
    "{}://{}/{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.text("aB.-1:@[]", max_size=6).map(lambda host: host or "a"),
    st.text('ab/.?#&=%;@:~! \\"<é', max_size=10),
)


@given(URLS)
def test_a_usual_url_is_a_base_as_its_parts_are(url: str) -> None:
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
    except ValueError:
        assert web_base(url) is None
        return
    expected = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if host else None
    assert web_base(url) == expected


@given(URLS)
def test_a_usual_link_is_resolved_as_one_that_needs_a_look_at_its_parts(url: str) -> None:
    assert absolute(url, ()) == absolute(f" {url}", ())


@given(URLS)
def test_the_url_of_an_image_is_the_same_among_many_and_alone(url: str) -> None:
    base = "https://news.example/1/"
    assert resolver([base])(url) == image_url(url, base)
