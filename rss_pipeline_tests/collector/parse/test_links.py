"""URLs as bases of other references, and the absolute URLs of images."""

from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.images.urls import image_url, resolver
from rss_pipeline.collector.parse.iri import published_url
from rss_pipeline.collector.parse.links import absolute, browsers_agree, is_web, web_base
from rss_pipeline.collector.sanitize.html import safe_html

BASES = ("https://site.example/a/b",)
READ_OTHERWISE = [
    "https:settings",
    "https:/settings",
    "http:/\\/\\evil.example",
    "http:\\\\evil.example\\x",
    "\x01 https:settings",
    "htt\tps:settings",
    "https:///evil.example",
    "https:////evil.example",
    "///evil.example/x",
    "https://good.example\\@evil.example/",
    "https://evil.example\\.good.example/",
    "https://site.example:99999/",
    "https://site.example:8o/",
    "https://:80/x",
    "https://?x",
    "https://evil\x01.example/",
    "https://evil .example/",
    "https://evil%00.example/",
    "https://evil.example。good.example/",
    "https://ｅvil.example/",
    "https://evil\u2028.example/",
    "ftp:x",
]
"""Browsers find another host in them, or a page of the site that shows them, or none at all."""


@pytest.mark.parametrize("reference", READ_OTHERWISE)
def test_a_link_that_browsers_read_otherwise_is_none(reference: str) -> None:
    assert absolute(reference, BASES) is None
    assert not is_web(reference)
    assert published_url(reference) is None
    shown = safe_html(
        f'<a href="{reference}">x</a> <img src="{reference}" alt="y"> href="{reference}"', bases=BASES
    )
    assert shown is not None
    assert "<a>x</a>" in shown
    assert "src=" not in shown


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("/\\evil.example/x", None),
        ("\\\\evil.example/x", None),
        ("//other.example/x", "https://other.example/x"),
        ("https://ann@other.example:8080/x", "https://ann@other.example:8080/x"),
        ("https://[2001:db8::1]:443/", "https://[2001:db8::1]:443/"),
        ("https://münchen.example/ä", "https://münchen.example/ä"),
        ("https://other.example?x=https:y", "https://other.example?x=https:y"),
        ("a\\b.jpg", "https://site.example/a/a\\b.jpg"),
        (" https://other.exam\nple/x", "https://other.example/x"),
    ],
)
def test_a_host_is_the_one_that_browsers_find(reference: str, url: str | None) -> None:
    assert absolute(reference, BASES) == url


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
    is_one = host and browsers_agree(url.strip())
    expected = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])) if is_one else None
    assert web_base(url) == expected


@given(URLS)
def test_a_usual_link_is_resolved_as_one_that_needs_a_look_at_its_parts(url: str) -> None:
    assert absolute(url, ()) == absolute(f" {url}", ())


@given(URLS)
def test_the_url_of_an_image_is_the_same_among_many_and_alone(url: str) -> None:
    base = "https://news.example/1/"
    assert resolver([base])(url) == image_url(url, base)
