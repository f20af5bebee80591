"""The contract of collector.images.archived: archived images are shown, and nothing else is changed."""

import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from rss_pipeline.collector.images.archived import render
from rss_pipeline.collector.images.find import find_images, tree
from rss_pipeline.collector.images.urls import image_url, resolver
from rss_pipeline.collector.parse.image_references import LAZY_SRC, LAZY_SRCSET
from rss_pipeline_tests.support.examples import examples

BASE = "https://example.com/posts/1"
A, B, C = (f"https://example.com/posts/{name}.jpg" for name in "abc")
ARCHIVED = {
    A: "https://img.example/A",
    B: "https://img.example/B?x=1&y=2",
    "https://example.com/posts/a.jpg?w=100": "https://img.example/A100",
    "https://example.com/p?x=1&y=2": "https://img.example/P",
    "https://example.com/posts/w_2,h_2/a.jpg": "https://img.example/comma",
    "https://example.com/posts/a.svg": "https://img.example/S",
    "https://elsewhere.example/é b.jpg": "https://img.example/never",
    "https://elsewhere.example/é%20b.jpg": "https://img.example/E",
    "https://example.com/posts/a.jpg?<img/": "https://img.example/T",
}

RENDERED = {
    '<p>é&nbsp;&copy;</p><img src="a.jpg">': '<p>é&nbsp;&copy;</p><img src="https://img.example/A">',
    "<IMG SRC = a.jpg ALT=x>": '<IMG SRC="https://img.example/A" ALT=x>',
    "<img src=a.jpg/>": "<img src=a.jpg/>",
    "<img src='a.jpg'/>": '<img src="https://img.example/A"/>',
    '<img src="b.jpg">': '<img src="https://img.example/B?x=1&amp;y=2">',
    '<img src="c.jpg" alt="a.jpg">': '<img src="c.jpg" alt="a.jpg">',
    '<img src="a.jpg?w=100"><img src="a.jpg"><img src="a.jpg?w=1000"><img src=a.jpg>': (
        '<img src="https://img.example/A100"><img src="https://img.example/A"><img src="a.jpg?w=1000">'
        '<img src="https://img.example/A">'
    ),
    '<img src="/p?x=1&amp;y=2"><img src="/p?x=1&y=2"><img src="/p?x=1&amp;amp;y=2">': (
        '<img src="https://img.example/P"><img src="https://img.example/P"><img src="/p?x=1&amp;amp;y=2">'
    ),
    '<img src="a.svg#icon"><img src="a.svg#ic on&quot;">': (
        '<img src="https://img.example/S#icon"><img src="https://img.example/S#ic on&quot;">'
    ),
    '<img src="https://elsewhere.example/é b.jpg">': '<img src="https://img.example/E">',
    '<img src="blank.gif" data-src="a.jpg">': (
        '<img src="https://img.example/A" data-src="https://img.example/A">'
    ),
    '<img data-src="a.jpg" alt>': ('<img src="https://img.example/A" data-src="https://img.example/A" alt>'),
    '<img src data-original="a.svg#x">': (
        '<img src="https://img.example/S#x" data-original="https://img.example/S#x">'
    ),
    '<img src= data-src="a.jpg">': '<img src= data-src="a.jpg">',
    '<img src="data:image/gif;base64,R0" srcset="a.jpg 300w, c.jpg 200w" sizes="300px">': (
        '<img src="https://img.example/A" srcset="https://img.example/A 300w" sizes="300px">'
    ),
    '<img src="c.jpg" data-src="a.jpg">': '<img src="c.jpg" data-src="https://img.example/A">',
    '<img src="a.jpg" data-src="c.jpg" data-srcset="c.jpg 2x">': (
        '<img src="https://img.example/A" data-src="c.jpg" data-srcset="c.jpg 2x">'
    ),
    '<img src="a.jpg" srcset="c.jpg 1x, d.jpg 2x">': (
        '<img src="https://img.example/A" srcset="https://img.example/A">'
    ),
    '<img src="c.jpg" srcset="c.jpg 1x,a.jpg 2x,b.jpg 1.5x">': (
        '<img src="c.jpg" srcset="https://img.example/A 2x">'
    ),
    '<img src="blank.gif" srcset="w_1,h_1/a.jpg 1x, w_2,h_2/a.jpg 2x">': (
        '<img src="https://img.example/comma" srcset="https://img.example/comma 2x">'
    ),
    '<picture><source srcset="c.webp 2x" type="image/webp"><img src="a.jpg"></picture>': (
        '<picture><source srcset="https://img.example/A" type="image/webp">'
        '<img src="https://img.example/A"></picture>'
    ),
    '<picture><source srcset="a.jpg"><img src="data:,"></picture>': (
        '<picture><source srcset="https://img.example/A"><img src="https://img.example/A"></picture>'
    ),
    '<picture><source srcset="c.webp"><img src="c.jpg"></picture>': (
        '<picture><source srcset="c.webp"><img src="c.jpg"></picture>'
    ),
    '<picture><source srcset="c.webp"><img src="c.jpg"><picture><img src="a.jpg"><img src="b.jpg">': (
        '<picture><source srcset="c.webp"><img src="c.jpg"><picture><img src="https://img.example/A">'
        '<img src="https://img.example/B?x=1&amp;y=2">'
    ),
    '<video><source srcset="a.jpg"></video>': '<video><source srcset="a.jpg"></video>',
    '<img src="data:," data-src="a.jpg"><noscript><img src="a.jpg"></noscript>': (
        '<img src="https://img.example/A" data-src="https://img.example/A">'
        '<noscript><img src="https://img.example/A"></noscript>'
    ),
    '<amp-img src="a.jpg"></amp-img>': '<amp-img src="https://img.example/A"></amp-img>',
    '<img src="a.jpg" src="b.jpg">': '<img src="https://img.example/A" src="b.jpg">',
    '<img width="1" height="1" src="c.gif" data-src="a.jpg">': (
        '<img width="1" height="1" src="c.gif" data-src="https://img.example/A">'
    ),
    '<!-- <img src="a.jpg"> --><script>"<img src=a.jpg>"</script><img src=a.jpg>': (
        '<!-- <img src="a.jpg"> --><script>"<img src=a.jpg>"</script><img src="https://img.example/A">'
    ),
    '<!-- <img alt="--><img src=a.jpg>': '<!-- <img alt="--><img src="https://img.example/A">',
    '<img alt="<img src=a.jpg>" src=b.jpg>': (
        '<img alt="<img src=a.jpg>" src="https://img.example/B?x=1&amp;y=2">'
    ),
    "<img src=a.jpg?<img/>": '<img src="https://img.example/T">',
    '<img src="a.jpg?<img/"><!-- <source > -->': '<img src="https://img.example/T"><!-- <source > -->',
    "<img src='a.jpg'alt='>'>": "<img src=\"https://img.example/A\"alt='>'>",
    "<p>cut off<img src=a.jpg": "<p>cut off<img src=a.jpg",
    "<b><i>1</b>2</i><p><div></p>\0\x01\r\n<?php x ?><![CDATA[y]]></x><pre>\n\nz</pre><img src=a.jpg>": (
        "<b><i>1</b>2</i><p><div></p>\0\x01\r\n<?php x ?><![CDATA[y]]></x><pre>\n\nz</pre>"
        '<img src="https://img.example/A">'
    ),
    "<svg viewBox=0><path/></svg><a href='#设想 x'><iframe>a&b</iframe><template><img src=a.jpg>\ud800": (
        "<svg viewBox=0><path/></svg><a href='#设想 x'><iframe>a&b</iframe>"
        '<template><img src="https://img.example/A">\ud800'
    ),
    '<a href="a.jpg">a.jpg</a>': '<a href="a.jpg">a.jpg</a>',
}


@pytest.mark.parametrize(("html", "expected"), RENDERED.items(), ids=map(ascii, RENDERED))
def test_the_rendering_of(html: str, expected: str) -> None:
    assert render(html, archived=ARCHIVED, bases=[None, BASE]) == expected
    assert render(expected, archived=ARCHIVED, bases=[None, BASE]) == expected


@pytest.mark.parametrize("html", RENDERED, ids=map(ascii, RENDERED))
def test_nothing_archived_nothing_changed(html: str) -> None:
    assert render(html, archived={}, bases=[BASE]) is html
    assert render(html, archived={"https://example.com/x.jpg": "https://img.example/x"}, bases=[BASE]) is html


def test_an_archive_in_a_folder_or_of_odd_names_fits_into_every_attribute() -> None:
    archived = {A: 'file:///a "b"/<,c>,'}
    assert render('<img srcset="a.jpg 2x">', archived=archived, bases=[BASE]) == (
        '<img src="file:///a &quot;b&quot;/&lt;,c&gt;,"'
        ' srcset="file:///a%20&quot;b&quot;/&lt;%2Cc&gt;%2C 2x">'
    )


def test_the_bases_are_those_of_finding() -> None:
    html = '<img src="a.jpg">'
    for bases in ([BASE], [None, "not a url", BASE, "https://other.example/"]):
        [url] = find_images(html, bases=bases)
        assert render(html, archived={url: "https://img.example/A"}, bases=bases) != html
    assert render(html, archived={A: "https://img.example/A"}, bases=["https://other.example/"]) == html


NAMES = ["a.jpg", "a.jpg?w=100", "b.jpg?x=1&amp;y=2", "b.jpg?x=1&y=2", "c,d.jpg", "e.svg#icon", "é f.jpg"]
NAMES += ["data:,", "blank.gif", "", "true", "http://[bad", "//cdn.example/g.png", "../h.webp", "&lt;i&gt;"]
reference = st.sampled_from(NAMES)
srcset = st.lists(
    st.tuples(reference, st.sampled_from(["", " 1x", " 2x", " 300w"])).map("".join), min_size=1, max_size=3
).flatmap(lambda parts: st.sampled_from([", ", ","]).map(lambda comma: comma.join(parts)))
image_attribute = st.one_of(
    st.tuples(st.sampled_from(["src", "SRC", *LAZY_SRC[:4]]), reference),
    st.tuples(st.sampled_from(["srcset", *LAZY_SRCSET]), srcset),
)
other_attribute = st.tuples(
    st.sampled_from(["alt", "title", "width", "height", "style", "xlink:href", "href", "A"]),
    st.sampled_from(["1", "a.jpg", "x<img src=a.jpg>", "&amp;amp;", "é\xa0", "width:1px", ""]),
)


@st.composite
def attribute(draw: st.DrawFn, pair: st.SearchStrategy[tuple[str, str]]) -> str:
    name, value = draw(pair)
    form = draw(
        st.sampled_from([' {}="{}"', " {}='{}'", "\n{} =\t'{}'", " {}={}", " {}", '/{}="{}"', '{}="{}"'])
    )
    return form.format(name, value)


tag = st.tuples(
    st.sampled_from(["<img", "<IMG", "<source", "<amp-img", "<img", "<picture", "<a", "<p", "<img/"]),
    st.lists(st.one_of(attribute(image_attribute), attribute(other_attribute)), max_size=4).map("".join),
    st.sampled_from([">", "/>", " >", ">", "", "'>"]),
).map("".join)
junk = st.sampled_from(
    [
        "<picture>",
        "</picture>",
        "<noscript>",
        "</noscript>",
        "<!--",
        "-->",
        "<!-- x -->",
        "<script>",
        "</script>",
        "<table><tr>",
        "</table>",
        "<b><i>",
        "</b></i>",
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<pre>\n\n",
        "<textarea>",
        "</textarea>",
        "<iframe>",
        "</iframe>",
        "<![CDATA[",
        "]]>",
        "<?php ?>",
        "<svg viewBox='0'/>",
        "<math>",
        "<template>",
        "</template>",
        "&nbsp;",
        "&copy",
        "&",
        "<",
        ">",
        '"',
        "'",
        "\x00",
        "\x01",
        "\r\n",
        " ",
        "text",
        "中\xa0",
        "�",
        "<o:p>",
        "<br/>",
        "</br>",
        "<title>",
        "</title>",
        "<select><option>",
        "</select>",
        "<html lang=x>",
        "<body>",
        "<head>",
        "<xmp>",
        "</xmp>",
        "<style>",
        "</style>",
        "<plaintext>",
        "=",
        "/",
    ]
)
document = st.lists(st.one_of(tag, tag, junk), max_size=12).map("".join)
IMAGE_ATTRIBUTES = {"src", "srcset", *LAZY_SRC, *LAZY_SRCSET}


def nodes(root: etree._Element | None) -> list[object]:
    """The tree, the text and every attribute but those that name images, in document order."""
    found: list[object] = []
    for event, node in (
        etree.iterwalk(root, events=("start", "end", "comment", "pi")) if root is not None else ()
    ):
        attributes: list[object] = []
        if isinstance(node.tag, str):
            image = node.tag in {"img", "amp-img", "source"}
            attributes = [pair for pair in node.attrib.items() if not (image and pair[0] in IMAGE_ATTRIBUTES)]
            if image and event == "start":
                attributes.append(
                    [name for name in node.attrib if name in IMAGE_ATTRIBUTES and name != "src"]
                )
        found.append((event, str(node.tag), attributes, node.text, node.tail))
    return found


def mapping(urls: tuple[str, ...], chosen: int) -> Mapping[str, str]:
    return {url: f"https://img.example/{n}?a=1&b" for n, url in enumerate(urls) if chosen >> n & 1}


@pytest.mark.slow
@given(document, st.integers(min_value=0))
@settings(max_examples=examples(200))
def test_tree_text_and_all_other_attributes_are_equal_before_and_after(html: str, chosen: int) -> None:
    archived = mapping(find_images(html, bases=[BASE]), ~chosen)
    rendered = render(html, archived=archived, bases=[BASE])
    assert nodes(tree(rendered)) == nodes(tree(html))
    assert render(rendered, archived=archived, bases=[BASE]) == rendered


@pytest.mark.slow
@given(document)
@example('<img src=a.jpg<img/alt="x<img src=a.jpg>" alt="x<img src=a.jpg>">')
def test_no_image_found_and_archived_is_found_again(html: str) -> None:
    """A browser that looks where we look asks for no original of which there is a copy."""
    found = find_images(html, bases=[BASE])
    archived = mapping(found, ~0)
    rendered = render(html, archived=archived, bases=[BASE])
    left = set(find_images(rendered, bases=[BASE]))
    assert not left & set(found)
    assert left == set(archived.values())


PIECES = [
    "a",
    "b.jpg",
    "..",
    ".",
    "/",
    "//",
    "?",
    "#",
    "x=1",
    "&",
    ":",
    "http:",
    "https://",
    "h",
    "@",
    "é",
    " ",
]
PIECES += ["%20", ";", ",", "[", "data:", "\\", "\t", "-", "HTTP://h/", "\x01", "file:", "\xa0", "$"]


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(PIECES), max_size=7).map("".join),
    st.sampled_from(["https://e.com/a/b?q/r", None, "http://e.com", "http://e.com//x//y;p/../z?q"]),
)
@settings(max_examples=examples(300))
def test_many_references_resolve_as_each_alone_does(reference: str, base: str | None) -> None:
    assert resolver([base])(reference) == image_url(reference, base)


def filled(part: str, size: int = 250_000) -> str:
    """`part` with a number in place of each `%d`, again and again."""
    parts: list[str] = []
    while size > 0:
        parts.append(part.replace("%d", str(len(parts))))
        size -= len(parts[-1])
    return "".join(parts)


HOSTILE: dict[str, Callable[[], str]] = {
    "images": lambda: filled('<p>%d</p><img src="%d.jpg">'),
    "one image": lambda: filled("<img src=a.jpg>"),
    "absolute": lambda: filled('<img src="https://cdn.example/%d.jpg?w=1&amp;h=2">'),
    "lazy": lambda: filled('<img src="data:," data-src="/%d.jpg">'),
    "srcsets": lambda: filled('<img srcset="%d.jpg 1x, b%d.jpg 2x">'),
    "queries": lambda: filled("<img src=?%d>"),
    "fragments": lambda: filled("<img src=a.svg#%d>"),
    "deep images": lambda: "<picture></picture>" + "<div>" * 300 + filled('<b><img src="%d.jpg"></b>'),
    "one srcset": lambda: '<img srcset="' + filled("%d.jpg %dw, ") + '">',
    "commas": lambda: '<img srcset="' + "a" * 125_000 + "," * 125_000 + '">',
    "pictures": lambda: filled('<picture><source srcset="%d.webp"><img src="%d.jpg"></picture>'),
    "open pictures": lambda: "<picture>" * 1_500 + filled('<img src="%d.jpg" alt="">'),
    "nesting": lambda: "<p>" * 82_500 + "<img src=a.jpg>",
    "deep": lambda: "<div>" * 50_000 + "<img src=a.jpg>",
    "attribute": lambda: "<img src=a.jpg " + "a" * 250_000 + ">",
    "attributes": lambda: "<img src=a.jpg " + "a " * 125_000 + ">",
    "distinct attributes": lambda: "<img src=a.jpg " + filled("a%d=1 ") + ">",
    "distinct attributes after a quoted >": lambda: '<img src=a.jpg alt=">" ' + filled("a%d ") + ">",
    "brackets": lambda: "<" * 250_000 + "<img src=a.jpg>",
    "tags in a tag": lambda: "<img " * 50_000 + "src=a.jpg>",
    "quotes": lambda: "<img src='a.jpg" * 16_500 + ">",
    "comments": lambda: "<!--<img src=a.jpg>" * 12_500 + "--><img src=a.jpg>",
    "blanks": lambda: "<img" + " " * 125_000 + "src" + " " * 125_000 + "=a.jpg>",
    "equals signs": lambda: "<img " + "=" * 250_000 + " src=a.jpg>",
    "slashes": lambda: "<img " + "/" * 250_000 + " src=a.jpg>",
    "entities": lambda: '<img src="' + "&amp;" * 50_000 + '">',
}


@pytest.mark.slow
@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_html_takes_no_time_that_grows_with_its_square(make: Callable[[], str]) -> None:
    html = make()
    archived = dict(mapping(find_images(html, bases=[BASE])[:5_000], ~0)) or {A: "https://img.example/A"}
    spent: list[float] = []
    # A quarter of a second for a quarter of a megabyte where nothing else runs; by its square many seconds.
    while len(spent) < 4 and min(spent, default=1) >= 1:
        started = time.process_time()
        render(html, archived=archived, bases=[BASE])
        spent.append(time.process_time() - started)
    assert min(spent) < 1
