"""HTML whose images are seen without a parser: what is plain, and that a parser has the same result."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.images.archived import render, render_by_tree
from rss_pipeline.collector.images.find import find_images, images_by_tree
from rss_pipeline.collector.images.plain import with_places
from rss_pipeline.collector.images.urls import resolver
from rss_pipeline_tests.support.examples import examples

BASES = ["https://example.com/posts/1"]


class Archive(Mapping[str, str]):
    """Every image but the GIFs, under its own URL."""

    def __getitem__(self, url: str) -> str:
        if url.endswith(".gif"):
            raise KeyError(url)
        return f'https://img.example/"&{url}'

    def __iter__(self) -> Iterator[str]:
        raise TypeError

    def __len__(self) -> int:
        return 1


def by_tree(html: str) -> str:
    return render_by_tree(html, Archive(), resolver(BASES))


def is_plain(html: str) -> bool:
    return with_places(html, lambda _: None) is not None


PLAIN = [
    '<p>1 > 0 &amp; "a" <b>b</b><img src="a.jpg"></p>',
    "<IMG ALT='a' SRC='/a.jpg?x=1&amp;y=2&#038;z=3' width='1' height='1'>",
    '<table><tr><td><img src="https://b.example/a.jpg?a=1&b=2#c" alt="x" /></td></table>',
    '<img alt="a"><img src><img src="">',
    '<img src="a.gif"><img src="a.jpg" src="b.jpg" data-id="file">',
    '<img src="data:image/png;base64,R0lG+/=="><img class="lazy"\n\tsrc="a.jpg"/>',
    '<img src="a.jpg" src="b.jpg"><img src alt="" src="b.jpg">',
    '<p title="a b"><img src="a.jpg">',
    '<div><ul><li><img src="../../..//x/./y.jpg"></ul></p></div><br></br><hr/>',
    '中\xa0<span class="é">é</span><img src="a.jpg" alt="中">',
]


@pytest.mark.parametrize("html", PLAIN)
def test_plain_html_is_as_a_parser_reads_it(html: str) -> None:
    assert is_plain(html)
    assert render(html, archived=Archive(), bases=BASES) == by_tree(html)


@pytest.mark.parametrize(
    "html",
    [
        '<!-- <img src="b.jpg"> --><img src="a.jpg">',
        '<script>"<img src=b.jpg>"</script><img src="a.jpg">',
        '<iframe><img src="b.jpg"></iframe>',
        '<img src="a.jpg" data-src="b.jpg">',
        '<img src="a.jpg" SRCSET="b.jpg 2x">',
        '<img src="a.jpg" file>',
        '<picture><source srcset="b.jpg"><img src="a.jpg"></picture>',
        '<noscript><img src="a.jpg"></noscript>',
        "<img src=a.jpg>",
        '<img src = "a.jpg">',
        '<img src="a.jpg"alt="b">',
        '<img src=" a.jpg">',
        '<img src="é.jpg">',
        '<img src="a.jpg?x=1&copy;=2">',
        '<img src="a.jpg?x=1&copy_x=2">',
        '<img src="a.jpg&copy">',
        '<img alt="<p>" src="a.jpg">',
        '<img alt=">" src="a.jpg">',
        '1 < 2 <img src="a.jpg">',
        '<img src="a.jpg"',
        '\0<img src="a.jpg">',
        '<o:p><img src="a.jpg">',
        '<img src="a.jpg"' + " a" * 100 + ">",
        "<p>" * 1_001,
    ],
)
def test_html_that_a_parser_may_read_in_another_way_is_left_to_the_tree(html: str) -> None:
    assert not is_plain(html)
    assert render(html, archived=Archive(), bases=BASES) == by_tree(html)


VALUES = """a.jpg /a.jpg?x=1&amp;y=2 b.gif #x a.jpg#x //b.example/c?d&e=f 1 &quot; é &#38; http://[ data:,
blank.gif mailto:x ?a=1&amp;amp;b=2 ../.. https://b.example > width:1px;height:1px 0 &#49;"""
values = st.sampled_from(["", "a b", *VALUES.split()])
names = st.sampled_from(
    ["src", "src", "src", "SRC", "alt", "width", "height", "style", "data-id", "class", "srcset", "file"]
)
attributes = st.builds(
    lambda form, name, value: form.format(name, value),
    st.sampled_from([' {}="{}"', " {}='{}'", '\n{}="{}"', " {}", '  {}="{}" ']),
    names,
    values,
)
elements = ["p", "b", "a", "div", "table", "tr", "td", "li", "ul", "br", "h1", "figure", "em", "font", "hr"]
parts = st.one_of(
    st.builds(
        lambda name, found, end: f"<{name}{''.join(found)}{end}",
        st.sampled_from(["img", "img", "img", "IMG", *elements]),
        st.lists(attributes, max_size=4),
        st.sampled_from([">", ">", "/>", " />", "\n>"]),
    ),
    st.sampled_from([f"</{name}>" for name in ["img", *elements]]),
    st.sampled_from(
        ["text", "中", "&nbsp;", "&", ">", '"', "'", "=", "\r\n", "\x01", "\ud800", "]]>", " src="]
    ),
)


@given(st.lists(parts, max_size=15).map("".join))
@settings(max_examples=examples(200))
def test_all_plain_html_is_as_a_parser_reads_it(html: str) -> None:
    assert render(html, archived=Archive(), bases=BASES) == (by_tree(html) if "img" in html.lower() else html)
    if is_plain(html) and "img" in html.lower():
        assert find_images(html, bases=BASES) == tuple(
            dict.fromkeys(images_by_tree(html, resolver(BASES))[0])
        )
