"""HTML that is shown as it is written: the same as if it were sanitized."""

# ruff: noqa: E501

import random

import pytest

from rss_pipeline.collector.sanitize.html import sanitized
from rss_pipeline.collector.sanitize.simple import simple_html

_BASES: tuple[str, ...] = ()
_PIECES = [
    "<p>",
    "</p>",
    "<p>",
    "</p>",
    '<a·href="https://a.example/b?c=1&amp;d#e">',
    "</a>",
    "<em>",
    "</em>",
    "<strong>",
    "</strong>",
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<code>",
    "</code>",
    "<h2>",
    "</h2>",
    "<ul>",
    "<li>",
    "</li>",
    "</ul>",
    "<ol>",
    "</ol>",
    "<blockquote>",
    "</blockquote>",
    "<br>",
    "<br/>",
    "<br·/>",
    "<hr>",
    "<hr/>",
    '<img·src="https://a.example/b/c.jpg?w=1&amp;h=2"·alt="x·y"·width="1"·height="2"/>',
    '<img·src="https://a.example/b.jpg">',
    '<img·src="https://a.example/../b.jpg">',
    '<img·src="b.jpg">',
    '<a·href="b">',
    '<a·href="javascript:x">',
    '<a·href="https://xn--a.example/">',
    '<a·href="https://1.2.3.999/">',
    '<img·src="https://a.example/b.jpg"·alt="data-src·srcset·&quot;">',
    '<p·id="e">',
    "<svg>",
    "<script>",
    "</pre>",
    "<pre>",
    "a",
    "b&amp;c",
    "&lt;",
    "&gt;",
    "&nbsp;",
    "&#8217;",
    "&",
    "<",
    ">",
    '"',
    "'",
    "=",
    "é",
    "文",
    "·",
    "·",
    "fb-post",
    "FB-Video",
    "id=e",
    "#e",
    "data-src",
]
_FURTHER = [
    "\n",
    "\t",
    "\r",
    "\0",
    "\x0b",
    "\x0c",
    "\x1b",
    "\x85",
    "\xa0",
    "\ud800",
    "\ufdd0",
    "\ufffe",
    "\u3000",
    "\U0001f600",
]
_WHOLE = (
    "<p>{}</p>", "<h2>{}</h2>\n", "<ul>\n<li>{}</li>\n<li>{}</li></ul>", "<em>{}</em>", "<blockquote><p>{}</p></blockquote>",
    '<a href="https://a.example/b#c">{}</a>', '<p>{} <a href="http://b-c.example?d">{}</a>, <strong>{}</strong><br />{}</p>',
    '<img src="https://a.example/b/{}.jpg" alt="{}"/>',
)  # fmt: skip


def _random_html(seed: int) -> str:
    made = random.Random(seed)
    pieces = [each.replace("·", " ") for each in _PIECES] + _FURTHER

    def some(most: int) -> str:
        return "".join(made.choice(pieces) for _ in range(made.randint(0, most)))

    def text() -> str:
        return some(2) if made.random() < 0.1 else made.choice(("a", "b c", "é", "", "文 \n"))

    def whole(depth: int) -> str:
        form = made.choice(_WHOLE)
        parts = form.split("{}")
        return (
            "".join(
                part + (whole(depth - 1) if depth and made.random() < 0.15 else text()) for part in parts[:-1]
            )
            + parts[-1]
        )

    if seed % 4 == 0:
        return some(8)
    return "".join(whole(2) + text() for _ in range(made.randint(1, 4)))


@pytest.mark.parametrize("count", [500, pytest.param(50_000, marks=pytest.mark.soak)])
def test_simple_html_is_what_the_sanitizer_makes_of_it(count: int) -> None:
    simple = 0
    for seed in range(count):
        html = _random_html(seed)
        if (found := simple_html(html)) is not None:
            simple += 1
            assert found == sanitized(html, bases=_BASES), html
    assert simple > count // 10


@pytest.mark.parametrize(
    "html",
    [
        "<p>a<p>b", "<p>a</P>", '<p onclick="x()">a</p>', '<a href="javascript:x">a</a>', "<script>x</script>",
        '<a href="https://a.example/"><a href="https://b.example/">a</a></a>', "<p>a &nbsp; b</p>", "<p>a\xa0b</p>",
        "<p><ul><li>a</li></ul></p>", "<pre>\na</pre>", '<img src="/a.jpg">', "<p>a\0b</p>", "<p>\ud800</p>", "<p>a" * 600,
        '<img src="https://a.example/b.jpg" alt="a" onerror="x()">', '<a href="https://a.example@b.example/">a</a>',
    ],
)  # fmt: skip
def test_what_a_parser_or_a_rule_may_change_is_not_simple(html: str) -> None:
    assert simple_html(html) is None


def test_the_usual_html_of_an_editor_is_simple() -> None:
    html = '<h2>A</h2>\n<p>b <a href="https://a.example/b#c">c</a>, <em>d</em>.</p>\n<ul><li>e</li></ul>'
    image = '<p><img src="https://a.example/b.jpg?w=1&amp;h=2" alt="f g" width="1" height="2"/></p>'
    assert simple_html(f"{html}\n{image}") == f"{html}\n{image.replace('/>', '>')}"
