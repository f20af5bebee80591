"""An image's reference is found as the HTML has it, whatever else names something alike."""

import pytest

from rss_pipeline.collector.images.find import find_images
from rss_pipeline.collector.images.written import written_references

BASE = "https://example.com/news/2026/"
NEWS = "https://example.com/news/"


@pytest.mark.parametrize(
    ("html", "written"),
    [
        ('<img src="../a.jpg">', {f"{NEWS}a.jpg": "../a.jpg"}),
        ("<IMG SRC=/a.jpg>", {"https://example.com/a.jpg": "/a.jpg"}),
        ('<img src=" a.jpg?w=1&amp;h=2 ">', {f"{BASE}a.jpg?w=1&h=2": "a.jpg?w=1&amp;h=2"}),
        ("<img src='a.jpg?w=1&#38;h=2'>", {f"{BASE}a.jpg?w=1&h=2": "a.jpg?w=1&#38;h=2"}),
        ('<img src="a.jpg?w=1&copy=2">', {f"{BASE}a.jpg?w=1&copy=2": "a.jpg?w=1&copy=2"}),
        # The start of another one.
        ('<img src="a.jpg?b"><img src="a.jpg">', {f"{BASE}a.jpg?b": "a.jpg?b", f"{BASE}a.jpg": "a.jpg"}),
        # The largest of a set, and one that is loaded later.
        ('<img srcset="s.jpg 1x,b.jpg?x=1&amp;y=2 2x">', {f"{BASE}b.jpg?x=1&y=2": "b.jpg?x=1&amp;y=2"}),
        ('<img src="data:image/gif;base64,R0lGOD" data-src="a.jpg">', {f"{BASE}a.jpg": "a.jpg"}),
        ('<picture><source srcset="a.avif"><img alt=""></picture>', {f"{BASE}a.avif": "a.avif"}),
        ('<video poster="p.jpg"></video>', {f"{BASE}p.jpg": "p.jpg"}),
        ('<object data="o.svg" type="image/svg+xml"></object>', {f"{BASE}o.svg": "o.svg"}),
        # The first of two ways.
        (f'<img src="a.jpg"><img src="{BASE}a.jpg">', {f"{BASE}a.jpg": "a.jpg"}),
        ("<p>a.jpg</p>", {}),
    ],
)
def test_a_reference_is_the_one_that_the_html_has(html: str, written: dict[str, str]) -> None:
    urls = find_images(html, bases=[BASE])
    assert set(urls) == written.keys()
    assert written_references(html, urls, bases=[BASE]) == written
    assert all(text in html for text in written.values())


def test_an_image_beside_the_html_has_none() -> None:
    assert written_references('<img src="a.jpg">', ["https://cdn.example/a.jpg"], bases=[BASE]) == {}
    assert written_references(None, ["https://cdn.example/a.jpg"], bases=[BASE]) == {}
