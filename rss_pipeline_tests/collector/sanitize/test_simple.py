"""HTML that is shown as it is written: the same as if it were sanitized."""

# ruff: noqa: E501, SIM905

import random
from collections.abc import Callable

import pytest

from rss_pipeline.collector.sanitize.html import sanitized
from rss_pipeline.collector.sanitize.simple import simple_html

_BASES = [
    (),
    ("https://b.example/x?z",),
    (None, "http://[bad", "https://u:p@b.example/"),
    ("http://b.example:99999/",),
]
_WORDS = (
    " |  |\n|\t|a|b c|'|\"|/| /|\\|`|%|{|!--|$x^2$|é|文|\u212a|\u0130|\ufeff|\u200b|\u2028|\u3000|\xad|\u0301|\U0001f600|\U0001fffe"
    "|\ufffd|\u202e|&amp;|&lt;|&gt;|&amp;lt;script&amp;gt;|&lt;script&gt;|&amp;#60;|&amp;nbsp;|&amp;copy|href|src|poster|hreflang"
    "|srcset|data-src| file |data-srcset x|lazy-src|javascript:|#a|fb -post|instagram-medi|MathJax_|math/tex|user-content-| id |svg"
).split("|")
_VALUES = [each for each in _WORDS if each not in '\n\t"' and "lt;" not in each and "gt;" not in each]
_IN_LINKS = [
    *"!#$%'()*+,/0:;=?@AZ_az~.-",
    *"..|/../|//|%zz|%2e|&amp;|&amp;copy=|javascript:|id=|src=|%0a".split("|"),
]
_IN_SOURCES = [
    *"0aZ_-.~%",
    *"..|pixel.gif|spacer.gif|blank.png|1x1.gif|tr|loading1.svg|/x.jpg|%2e%2e|%23".split("|"),
]
_LABELS = ["x" * 70, *"a|b1|0x1|xn|xn-a|pixel|127|1e3|localhost|doubleclick|feedburner|here".split("|")]
_WRONG = [
    *"<>=&\r\0\x0b\x0c\x1b\x85\xa0\ud800\ufdd0\ufffe",
    *"&nbsp;|&#8217;|fb-post|FB-Video|<p>|</p>|<svg>|<pre>|</a>|<b>".split("|"),
]


class _Writer:
    """Writes HTML that seems to be simple, by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.has_wrong = seed % 3 == 0

    def some(self, parts: list[str], most: int) -> str:
        return "".join(self.chance.choice(parts) for _ in range(self.chance.randint(0, most)))

    def one(self, *makers: Callable[[], str]) -> str:
        return self.chance.choice(makers)()

    def text(self) -> str:
        wrong = self.some(_WRONG, 1) if self.has_wrong and self.chance.random() < 0.1 else ""
        return wrong + self.some(_WORDS, 4 if self.chance.random() < 0.5 else 1)

    def host(self) -> str:
        labels = [self.chance.choice(_LABELS) for _ in range(self.chance.randint(1, 3))]
        return f"{self.chance.choice(('http', 'https'))}://{'.'.join(labels)}.example"

    def image(self) -> str:
        path = "".join(
            f"/{start}{self.some(_IN_SOURCES, 3)}" for start in self.some(["0", "a_", "-"], 2) + "a"
        )
        query = self.chance.choice(("", "", "?a=1&amp;copy=%&amp;src=--", "?" + "a" * 8_100))
        sizes = self.chance.choice(("", ' width="0"', ' width="1" height="1"', f' height="{"9" * 30}"'))
        return f'<img src="{self.host()}{path}{query}" alt="{self.some(_VALUES, 3)}"{sizes}{self.end()}'

    def end(self) -> str:
        return self.chance.choice((">", "/>", " />", " >"))

    def void(self) -> str:
        return self.one(self.image, lambda: f"<br{self.end()}")

    def element(self, *names: str, inside: str) -> str:
        name = self.chance.choice(names)
        crossed = self.has_wrong and self.chance.random() < 0.1
        return f"<{name}>{inside}</{self.chance.choice(names) if crossed else name}>"

    def formatted(self) -> str:
        return self.element("em", "strong", "b", "i", "code", inside=self.text())

    def link(self) -> str:
        more = self.chance.choice(("", *"/?#"))
        reference = self.host() + (more and more + self.some(_IN_LINKS, 6))
        return f'<a href="{reference}">{self.text()}{self.one(self.void, self.formatted, self.text)}</a>'

    def line(self) -> str:
        pieces = (
            self.one(self.link, self.formatted, self.void) + self.text()
            for _ in range(self.chance.randint(0, 2))
        )
        return self.text() + "".join(pieces)

    def paragraph(self) -> str:
        return self.element("p", "p", "h1", "h2", "h6", inside=self.line())

    def list(self) -> str:
        return self.element("ul", "ol", inside=f"\n<li>{self.line()}</li> <li>{self.text()}</li>")

    def quote(self) -> str:
        return f"<blockquote>\n{self.paragraph()} {self.paragraph()}</blockquote>"

    def rule(self) -> str:
        return f"<hr{self.end()}"

    def html(self) -> str:
        makers = (self.paragraph, self.paragraph, self.list, self.quote, self.rule)
        blocks = [self.one(*makers) for _ in range(self.chance.randint(0, 3))]
        return self.line() + self.text().join(blocks)


@pytest.mark.parametrize("count", [500, pytest.param(20_000, marks=pytest.mark.soak)])
def test_simple_html_is_what_the_sanitizer_makes_of_it(count: int) -> None:
    simple = 0
    for seed in range(count):
        html = _Writer(seed).html()
        if (found := simple_html(html)) is not None:
            simple += 1
            assert found == sanitized(html, bases=_BASES[seed % len(_BASES)]), html
    assert simple > count // 2


@pytest.mark.parametrize(
    "html",
    [
        "<p>a<p>b", "<p>a</P>", "<p>a</h1>", "<h1>a <b>b</b></h2>", "<b>a</i>", "<p><b>a</strong></p>", "<b>a</code>",
        "<ul><li>a</li></ol>", "<ol> </ul>", "<blockquote><h3>a</h3><h3>a</p></blockquote>", '<p onclick="x()">a</p>', '<a href="javascript:x">a</a>', "<script>x</script>",
        '<a href="https://a.example/"><a href="https://b.example/">a</a></a>', "<p>a &nbsp; b</p>", "<p>a\xa0b</p>",
        "<p><ul><li>a</li></ul></p>", "<pre>\na</pre>", '<img src="/a.jpg">', "<p>a\0b</p>", "<p>\ud800</p>", "<p>a" * 600,
        "\ufeffa", '<a href="https://xn--a.example/">a</a>', '<a href="https://1.2.3.999/">a</a>', '<img src="https://a.example/../b.jpg">',
        '<img src="https://a.example/b.jpg" alt="a" onerror="x()">', '<a href="https://a.example@b.example/">a</a>',
    ],
)  # fmt: skip
def test_what_a_parser_or_a_rule_may_change_is_not_simple(html: str) -> None:
    assert simple_html(html) is None


def test_the_usual_html_of_an_editor_is_simple() -> None:
    html = '<h2>A</h2>\n<p>b <a href="https://a.example/b#c">c</a>, <em>d</em>.</p>\n<ul><li>e</li></ul>'
    image = '<p><img src="https://a.example/b.jpg?w=1&amp;h=2" alt="f g" width="1" height="2"/></p>'
    assert simple_html(f"{html}\n{image}") == f"{html}\n{image.replace('/>', '>')}"
