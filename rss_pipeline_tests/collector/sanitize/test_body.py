"""A body before its archived images: JSON that is cut at images, and what it depends on."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.sanitize.item_body import (
    BodySource,
    safe_body,
    usual_places,
    with_places,
    without_marks,
)

SOURCE = BodySource(
    text="",
    enclosures=(),
    title="A title",
    base_url=None,
    link=None,
    feed_link="https://news.example/",
    feed_url="https://news.example/feed",
)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>text",
        '<img src="https://a.example/1.png">',
        '<p>"\\u0002" \\ é 設想 <img src="https://a.example/?a=1&amp;b=2#top"> and <img alt=x> end',
        '<img src="https://a.example/1.png"><img src="https://a.example/1.png">\\u0002',
        "<" * 2_000,
    ],
)
def test_html_without_other_images_is_itself(html: str) -> None:
    marked = safe_body(replace(SOURCE, text=html)).marked
    assert json.loads(b"".join(with_places(marked, lambda _: None, {}))) == without_marks(marked)
    assert b"\x02" not in b"".join(with_places(marked, lambda _: None, {}))


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"text": "<p>Some <b>text</b></p>"}, "Some text"),
        ({"enclosures": (Enclosure(url="https://a.example/b/My%20talk.mp3?c=d"),)}, "My talk.mp3"),
        ({"enclosures": (Enclosure(url="https://a.example/"),)}, "https://news.example/1"),
        ({"text": "<!-- -->"}, "https://news.example/1"),
        ({"link": None}, ""),
    ],
)
def test_an_item_without_title_is_named_by_its_text_file_or_address(
    changes: dict[str, Any], title: str
) -> None:
    source = replace(SOURCE, title=None, link="https://news.example/1")
    assert safe_body(replace(source, **changes)).title_of_text == title


def test_html_too_large_to_be_read_keeps_all_of_its_text_in_paragraphs() -> None:
    """The text of a book. Its images and links are left out."""
    html = (
        "<h1>Title</h1><style>p { color: red }</style><script>run()</script><!-- a note -->"
        + "<p>A <b>word</b> &amp;\n another{}</p>".format(" word" * 10) * 15_000
        + "<div>x &lt;script&gt;<br>The end</div>"
    )
    shown = without_marks(safe_body(replace(SOURCE, text=html)).marked)
    paragraph = f"<p>A word &amp; another{' word' * 10}</p>"
    assert shown.count(paragraph) == 15_000
    others = shown.replace(paragraph, "")
    assert others == "<p>Title</p><p>x &lt;script&gt;</p><p>The end</p>"


def test_a_text_that_is_too_long_to_be_shown_says_that_it_goes_on() -> None:
    shown = without_marks(safe_body(replace(SOURCE, text="<p>word</p>" + "words " * 700_000)).marked)
    assert 3_900_000 < len(shown) < 4_100_000
    assert shown.endswith("words…</p><p>The text goes on; it is too long to be shown whole.</p>")


TEXTS = st.text(alphabet='ab <>&"\\u02é\n', max_size=20)


@given(st.lists(st.tuples(TEXTS, st.sampled_from(["1.png", "2.png?a&b", 'é"\\', "3.png#x"])), max_size=4))
def test_each_image_has_its_place_once_and_nothing_else_changes(parts: list[tuple[str, str]]) -> None:
    text = "".join(f"<p>{json.dumps(words)}</p><img src='https://a.example/{name}'>" for words, name in parts)
    marked = safe_body(replace(SOURCE, text=text)).marked
    seen: list[str] = []

    def place(url: str) -> str:
        seen.append(url)
        return f'https://b.example/"<&>/{len(seen)}'

    html = json.loads(b"".join(with_places(marked, place, {})))
    assert len(seen) == html.count("<img src=") == without_marks(marked).count("<img src=")
    assert all("#" not in url for url in seen)
    assert html.count("https://b.example/&quot;&lt;&amp;&gt;/") == len(seen)


@pytest.mark.parametrize(
    ("text", "fields", "of_feed"),
    [
        ('<a href="https://a.example/x">x</a>', {}, False),
        ('<a href="/x">x</a>', {}, True),
        ('<img src="x.png">', {}, True),
        ("text", {}, False),
        ('<a href="/x">x</a>', {"link": "https://a.example/1"}, False),
        ('<a href="/x">x</a>', {"base_url": "https://a.example/1"}, False),
        ('<a href="/x">x</a>', {"link": "mailto:x@a.example"}, True),
    ],
)
def test_it_is_known_what_depends_on_the_feeds_addresses(
    text: str, fields: dict[str, Any], of_feed: bool
) -> None:
    source = replace(SOURCE, text=text, **fields)
    assert safe_body(source).of_feed is of_feed
    moved = replace(source, feed_link="https://moved.example/")
    assert (safe_body(moved).marked != safe_body(source).marked) is of_feed


def test_a_title_is_made_for_an_item_without_one() -> None:
    assert safe_body(replace(SOURCE, text="<p>Text")).title_of_text is None
    assert safe_body(replace(SOURCE, text="<p>Text", title=" \n")).title_of_text == "Text"


URLS = ["1.png", "2.png?a=1&b=2", "3.png#x", "4é.png", "5'.png", '6".png', "7.png?a=1&amp;b", "8,9+@!$;.png"]


@pytest.mark.parametrize("name", URLS)
def test_a_usual_url_is_put_in_as_any_other(name: str) -> None:
    source = replace(SOURCE, text=f"<img src='https://a.example/{name.replace(chr(39), '&#39;')}'>")
    marked = safe_body(source).marked
    seen: list[str] = []
    with_places(marked, lambda url: seen.append(url), {})
    images = {url: f"https://b.example/{n}.png" for n, url in enumerate(seen)}
    usual = usual_places(images.items())
    assert with_places(marked, images.get, usual) == with_places(marked, images.get, {})
    placed = b"".join(with_places(marked, images.get, {}))
    assert b'"https://b.example/0.png' in placed.replace(b"\\", b"")
    assert (b"0.png#x" in placed) == ("#" in name)
