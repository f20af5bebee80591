"""The HTML of items as it is shown, with public copies of images."""

import re
from typing import Any
from urllib.parse import urljoin

import pytest

from rss_pipeline.collector.sanitize.html import safe_html, text_of, with_images
from rss_pipeline.collector.sanitize.shown import shown_html
from rss_pipeline_tests.support.cost import costs_less_than


def published(
    html: str,
    *,
    images: dict[str, str] | None = None,
    base_url: str | None = None,
    link: str | None = "https://a.example/1",
    feed: tuple[str | None, str] = ("https://a.example/", "https://a.example/feed.xml"),
) -> str | None:
    """The HTML of an item, by its own addresses and by link and URL of its feed."""
    shown = shown_html(html, (), bases=(base_url, link, *feed))
    return with_images(shown, lambda url: (images or {}).get(url)) if shown else None


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<script>alert(1)</script>b</p>", "<p>ab</p>"),
        ("<style>p{}</style><p onclick='x()' style='color:red' class=a id=b>a</p>", "<p>a</p>"),
        ("<a href='javascript:alert(1)'>a</a>", "<a>a</a>"),
        ("<a href='data:text/html,x'>a</a><a href='tel:1'>b</a>", "<a>a</a><a>b</a>"),
        ("<a href='magnet:?xt=1'>a</a>", '<a href="magnet:?xt=1">a</a>'),
        ("<a href='mailto:a@b.example'>a</a>", '<a href="mailto:a@b.example">a</a>'),
        ("<iframe src='javascript:x'></iframe><form action='/x'><input>a</form>", "a"),
        ("<svg onload=alert(1)><text>a</text></svg>b", "<svg><text>a</text></svg>b"),
        ("<p>a\x00\x0b\x1b\ufffe\ud800b\r\nc</p>", "<p>ab\nc</p>"),
        ("1 < 2 & 3", "1 &lt; 2 &amp; 3"),
        ("<p dir=rtl lang=he>\u202eא</p>", '<p dir="rtl" lang="he">\u202eא</p>'),
        ("<table><tr><td colspan=2>a</table>",
         '<table><tbody><tr><td colspan="2">a</td></tr></tbody></table>'),
        ("<video src=/v.mp4 poster=/p.jpg autoplay></video>",
         '<video src="https://a.example/v.mp4" poster="https://a.example/p.jpg" controls=""></video>'),
        ("<q cite='/b'>c</q>", "<q>c</q>"),
        ("<script>1</script>", None),
    ],
)  # fmt: skip
def test_what_runs_or_loads_a_page_is_dropped_and_the_rest_stays(html: str, expected: str | None) -> None:
    assert published(html) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"base_url": "https://b.example/x/"}, "https://b.example/x/c?d=1&amp;e#f"),
        ({"link": "https://l.example/y/z"}, "https://l.example/y/c?d=1&amp;e#f"),
        ({"link": None}, "https://a.example/c?d=1&amp;e#f"),
        (
            {"link": "http://[", "feed": (None, "https://a.example/feed.xml")},
            "https://a.example/c?d=1&amp;e#f",
        ),
    ],
)
def test_links_are_absolute(fields: dict[str, Any], expected: str) -> None:
    assert published('<a href="c?d=1&amp;e#f">x</a>', **fields) == f'<a href="{expected}">x</a>'


def test_a_link_without_a_base_is_no_link() -> None:
    html = '<a href="c">x</a><a href="//y.example/z">y</a>'
    assert published(html, feed=(None, "file:///feed.xml"), link=None) == "<a>x</a><a>y</a>"


def test_archived_images_are_shown_where_they_are_public_and_the_others_where_they_are() -> None:
    html = (
        '<img src="/a.png" srcset="/a.png 1x, /a2.png 2x" alt="A" width=3 onerror=x()>'
        '<img src="b.png"><img src="data:image/gif;base64,R0" data-src="/c.jpg">'
        '<noscript><img src="/c.jpg"></noscript>'
    )
    assert published(html, images={"https://a.example/a.png": "https://img.example/1.png?a=1&b"}) == (
        '<img src="https://img.example/1.png?a=1&amp;b" alt="A" width="3"><img src="https://a.example/b.png">'
        '<img src="https://a.example/c.jpg">'
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "x",
        "".join(f"<p><font a={number}>" for number in range(5_000)),
        "</x><span>" * 50_000,
        "<div><!--</div>-->" * 20_000,
        "<div title='</div>'>" * 20_000,
        "".join(f"<p><font a={number} title='</font>'>" for number in range(5_000)),
        "<p " + " ".join(f"a{number}" for number in range(100_000)) + ">",
        "<b><p>" * 50_000,
        "x" * 1_000_001,
        "<!--" * 250_000,
        "<!-->" + "<div>" * 100_000,
        "<!--->" + "<div>" * 100_000,
        "<!-- --!>" + "<div>" * 100_000,
    ],
)
def test_html_that_would_take_minutes_is_not_published(html: str) -> None:
    with costs_less_than(5):
        assert published(html) is None
        text_of(html, limit=100)


def test_long_html_of_many_elements_is_published() -> None:
    html = "<p>a<br>b <a href=/>c</a><li><b>d</b>" * 900
    assert (published(html) or "").count("<b>") == 900


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (None, ""),
        ("plain & simple &amp; &lt;b&gt;", "plain & simple & <b>"),
        ("<p>a</p><p>b</p>c<br>d <b>e</b>f<script>x</script>", "a b c d ef"),
        ("<ul><li>a<li>b</ul><table><tr><td>1<td>2", "a b 1 2"),
        ("words " * 9, "words words words w…"),
    ],
)
def test_the_text_of_html(html: str | None, expected: str) -> None:
    assert text_of(html, limit=20) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<a href='/b'>b</a><a href=\"https://c.example/\">c</a>",
        '<a HREF="/b">b</a>',
        '<a href = "b">b</a>',
        "<a href=b>b</a>",
        '<a href="&#47;b">b</a>',
        '<img src="b.png">',
        '<video poster="b.png"></video>',
    ],
)
def test_a_reference_is_absolute_however_it_is_written(html: str) -> None:
    cleaned = published(html) or ""
    found = re.findall(r'(?:href|src|cite|poster)="([^"]*)"', cleaned)
    assert found
    assert all(re.match("https?://[ac].example/", reference) for reference in found), cleaned


@pytest.mark.parametrize(
    "other",
    [
        '<a href="/r">r</a>',
        "<a href='/r' hreflang='en'>r</a>",
        '<a href="//b.example/r">r</a>',
        '<p data-src="/r" data-href="/r">r</p>',
        '<img srcset="/r 2x" src="/r">',
        '<a href="https://b.example/r">r</a>',
        "src",
    ],
)
@pytest.mark.parametrize("reference", ["?q", "q", "#q", "../q"])
def test_a_reference_is_resolved_against_the_page_whatever_is_beside_it(other: str, reference: str) -> None:
    link = "https://l.example/x/y/z"
    for name, html in (("href", '<a href="{}">q</a>'), ("src", '<video src="{}"></video>')):
        cleaned = published(other + html.format(reference), link=link) or ""
        assert cleaned.count(f'{name}="{urljoin(link, reference)}"') == 1, cleaned
    rooted = published(f"{other}<a href='/s'>s</a>", link=link) or ""
    assert rooted.endswith('<a href="https://l.example/s">s</a>')


def test_html_with_absolute_references_only_is_cleaned_as_any_other() -> None:
    absolute = (
        '<p onclick="x()">a <a href="https://b.example/?a=1&amp;b=2" title="t">b</a><script>1</script>'
        '<img src="http://c.example/d.png" alt="e"><a href="javascript:x()">c</a></p>'
    )
    own = absolute.replace('<a href="javascript:x()">', '<a href="https://d.example/">')
    assert published(own) == (published(own + "<a href='/f'>f</a>") or "").removesuffix(
        '<a href="https://a.example/f">f</a>'
    )
    assert "onclick" not in (published(own) or "")
    assert "javascript" not in (published(absolute) or "")


_PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("html", "safe"),
    [
        (f"<p>a</p><img src='{_PNG}' alt=b>", f'<p>a</p><img src="{_PNG}" alt="b">'),
        (f"<math><mi>x</mi></math><img src={_PNG}>", f'<math><mi>x</mi></math><img src="{_PNG}">'),
        (f"<img src={_PNG} data-src=https://a.example/b.jpg>", '<img src="https://a.example/b.jpg">'),
        (f"<a href={_PNG}>a</a>", "<a>a</a>"),
        (f"<a href='\x01 d\ta\nta:text/html,b'>a</a><img src={_PNG}>", f'<a>a</a><img src="{_PNG}">'),
        (f"<iframe src=data:text/html,a></iframe><img src={_PNG}>", f'<img src="{_PNG}">'),
        (f"<blockquote cite={_PNG}>a</blockquote>", "<blockquote>a</blockquote>"),
        ("<img src=data:image/svg+xml;base64,AAAA alt=a>", '<img alt="a">'),
        ("<img src='data:image/png,<script>' alt=a>", '<img alt="a">'),
        ("<img src='data:text/html;base64,AAAA' alt=data:image/>", '<img alt="data:image/">'),
    ],
)
def test_an_image_in_its_own_address_stays_and_nothing_else_has_such_an_address(html: str, safe: str) -> None:
    assert safe_html(html, bases=()) == safe
