"""The contract of collector.images: one absolute URL an image, in document order, whatever the HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.images.find import find_images, image_bases, item_images, may_show_images
from rss_pipeline.collector.models.item import Enclosure, Item
from rss_pipeline_tests.support.cost import costs_less_than

BASE = "https://example.com/posts/1"

FOUND = {
    '<img src="x.jpg">': ["https://example.com/posts/x.jpg"],
    '<IMG SRC="/a?x=1&copy=2">': ["https://example.com/a?x=1&copy=2"],
    '<img src="/a?x=1&amp;y=2">': ["https://example.com/a?x=1&y=2"],
    '<img src="//cdn.example/y.png">': ["https://cdn.example/y.png"],
    '<img src="a.png#frag"><img src="a.png">': ["https://example.com/posts/a.png"],
    '<img src="b.png"><img src="a.png"><img src="b.png">': [
        "https://example.com/posts/b.png",
        "https://example.com/posts/a.png",
    ],
    '<img src="data:image/gif;base64,R0" data-src="lazy.jpg">': ["https://example.com/posts/lazy.jpg"],
    '<img data-original="lazy.jpg">': ["https://example.com/posts/lazy.jpg"],
    '<img src="/img/loading.gif" data-lazy-src="/real.jpg">': ["https://example.com/real.jpg"],
    '<img src="/real.jpg" data-src="/other.jpg">': ["https://example.com/real.jpg"],
    '<img src="" srcset="s.jpg 300w, l.jpg 900w, m.jpg 600w">': ["https://example.com/posts/l.jpg"],
    '<img srcset="s.jpg 1x,l.jpg 2x">': ["https://example.com/posts/l.jpg"],
    '<img srcset="w_1,h_1/s.jpg 1x, w_2,h_2/l.jpg 2x">': ["https://example.com/posts/w_2,h_2/l.jpg"],
    '<picture><source srcset="s.webp 1x, l.webp 2x"><img src="data:,"></picture>': [
        "https://example.com/posts/l.webp"
    ],
    '<picture><source srcset="l.webp"><img src="r.jpg"></picture>': ["https://example.com/posts/r.jpg"],
    '<img src="data:,"><noscript><img src="n.jpg"></noscript>': ["https://example.com/posts/n.jpg"],
    '<img src="http://[bad"><img src="ok.png">': ["https://example.com/posts/ok.png"],
    '<img src="#"><img src=" # "><img src="#top"><img src="http://a.example:99999/a.jpg">': [],
    '<img src="cid:1@x"><img src="javascript:alert(1)"><img src=""><img>': [],
    '<img src="p.gif" width="1" height="1"><img src="q.gif" style="width: 1px; height:0px">': [],
    '<img src="wide.gif" width="600" height="1">': ["https://example.com/posts/wide.gif"],
    '<img src="ftp://example.com/x.png"><img src="file:///etc/x.png">': [],
    '<object data="o.svg" type="image/svg+xml">x</object>': ["https://example.com/posts/o.svg"],
    '<object data="/o.png"></object><embed src="/e" type="image/png">': [
        "https://example.com/o.png",
        "https://example.com/e",
    ],
    '<object data="/o.swf"></object><object data="/o.jpg" type="text/html"></object><embed src="/e">': [],
    '<video poster="p.jpg" src="v.mp4"></video><img src="a.jpg">': [
        "https://example.com/posts/a.jpg",
        "https://example.com/posts/p.jpg",
    ],
    '<amp-video poster="/p.jpg"></amp-video><video data-poster="/q.jpg" poster=""></video>': [
        "https://example.com/p.jpg",
        "https://example.com/q.jpg",
    ],
    '<img src="/img/space.png" data-src="/b.png"><img src="/img/space.png">': [
        "https://example.com/b.png",
        "https://example.com/img/space.png",
    ],
    '<img src="https://stats.example/hit?p=1"><img src="/img/blank.gif">': [],
    '<a href="x.jpg">no image</a>': [],
    "<p>&lt;img src=x.jpg&gt;</p>": [],
}


@pytest.mark.parametrize(("html", "expected"), FOUND.items(), ids=FOUND.keys())
def test_the_images_of(html: str, expected: list[str]) -> None:
    assert list(find_images(html, bases=[BASE])) == expected


def test_the_first_usable_base_counts() -> None:
    bases = [None, "", "not a url", "http://[", "mailto:a@example.com", "http://second.example/", BASE]
    assert find_images('<img src="x.jpg">', bases=bases) == ("http://second.example/x.jpg",)


def test_a_password_in_the_base_is_not_inherited() -> None:
    assert find_images('<img src="x.jpg">', bases=["https://user:secret@example.com/"]) == (
        "https://example.com/x.jpg",
    )


def test_without_a_base_only_absolute_references_count() -> None:
    html = '<img src="x.jpg"><img src="https://a.example/y.jpg"><img src="//b.example/z.jpg">'
    assert find_images(html, bases=[]) == ("https://a.example/y.jpg", "https://b.example/z.jpg")


def test_the_bases_are_xml_base_item_link_feed_link_and_feed_url() -> None:
    item = Item(guid="1", guid_source="guid", link="https://l/", base_url="https://b/")
    assert image_bases(item, "https://f/", "https://u/") == [
        "https://b/",
        "https://l/",
        "https://f/",
        "https://u/",
    ]


def test_pictures_beside_the_content_come_behind_its_images_and_before_its_posters() -> None:
    item = Item(
        guid="1",
        guid_source="guid",
        link="https://example.com/1",
        content_html='<video poster="p.jpg"></video><img src="https://example.com/b.jpg">',
        enclosures=(
            Enclosure(url="https://example.com/a.mp3", type="audio/mpeg"),
            Enclosure(url="https://example.com/a.jpg", type="image/jpeg"),
            Enclosure(url="https://example.com/b.jpg", type="image/jpeg"),
            Enclosure(url="https://example.com/blank.gif", type="image/gif"),
            Enclosure(url="https://example.com/c.JPG?w=1"),
        ),
    )
    assert item_images(item, None, None) == (
        "https://example.com/b.jpg",
        "https://example.com/a.jpg",
        "https://example.com/c.JPG?w=1",
        "https://example.com/p.jpg",
    )


@pytest.mark.parametrize(
    "html",
    [
        '<img srcset="' + "a" * 100_000 + "," * 100_000 + '">',
        '<img srcset="' + "a " * 50_000 + '">',
        "<p>" * 50_000 + "<img src=x.jpg>",
        '<img src="x.jpg" ' + "a" * 200_000,
        "<" * 100_000 + "<img>",
        "<img>" + "<!--" * 100_000,
    ],
    ids=["commas", "words", "nesting", "attribute", "brackets", "comments"],
)
def test_hostile_html_takes_no_more_than_its_length(html: str) -> None:
    with costs_less_than(5):
        find_images(html, bases=[BASE])


@given(st.text(alphabet="<>img src='\"=/:.#?&;, datpicure[]1x\u4e2d", max_size=80))
def test_whatever_is_found_is_an_absolute_web_url(inner: str) -> None:
    for url in find_images(f"<img {inner}><img src='{inner}'>", bases=[BASE]):
        assert url.startswith(("http://", "https://"))
        assert "#" not in url


@given(
    st.lists(
        st.sampled_from(
            (
                *("<p>", "<IMG src=a.png>", "<picture><source srcset='a 1x'>", "text", "<noscript>"),
                *(
                    "<OBJECT data=a.png>",
                    "<embed src=a.png>",
                    "<video POSTER=a.png>",
                    "<amp-video poster='a'>",
                ),
            )
        )
    )
)
def test_an_item_said_to_show_no_image_has_none(parts: list[str]) -> None:
    item = Item(guid="g", guid_source="guid", content_html="".join(parts))
    assert may_show_images(item) or item_images(item, "http://a.example/", None) == ()


def test_of_an_items_images_the_first_ten_thousand_count() -> None:
    html = "".join(f"<img src={n}.png>" for n in range(12_000))
    found = find_images(html, bases=[BASE])
    assert len(found) == 10_000
    assert found[-1].endswith("/9999.png")
