"""C1 characters that were meant as Windows-1252: in texts for people, and in no identity or address."""

import hashlib
from html import escape

import pytest

from rss_pipeline.collector.models.item import Item, ParsedFeed
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline_tests.collector.parse.documents import (
    NOW,
    URL,
    atom,
    json_feed,
    only,
    parsed,
    rss,
    rss_item,
)

TITLE = "It&#146;s \u0093one\u0094 \u0096 &#x80;5"
READ = "It’s “one” – €5"


@pytest.mark.parametrize(
    "item",
    [
        rss_item(f"<title>{TITLE}</title>"),
        only(atom(f"<entry><title>{TITLE}</title></entry>")),
        only(atom(f'<entry><title type="html">&lt;b&gt;{TITLE}&lt;/b&gt;</title></entry>')),
        only(json_feed({"title": "It\u0092s \u0093one\u0094 \u0096 \u00805"})),
        only(rss(f"<item><guid>1</guid><title>{TITLE}</title></item></b>")),
    ],
    ids=["rss", "atom", "atom html", "json", "loose"],
)
def test_a_title_has_the_characters_of_windows_1252(item: Item) -> None:
    assert item.title == READ


def test_authors_categories_and_the_title_of_the_feed_have_them_too() -> None:
    feed = parsed(
        rss(
            "<item><guid>1</guid><dc:creator>O&#146;Hara</dc:creator>"
            "<category>Rock &#39;n&#146; Roll</category></item>"
            "<item><guid>2</guid><dc:creator>Ada</dc:creator><author>D&#146;Arcy</author></item>",
            channel="<title>Tom\u0092s notes</title>",
        )
    )
    item, other = feed.items
    assert (item.authors, other.authors) == (("O’Hara",), ("Ada", "D’Arcy"))
    assert (feed.header.title, item.author, item.categories) == ("Tom’s notes", "O’Hara", ("Rock 'n’ Roll",))


def test_bytes_of_windows_1252_that_were_converted_as_latin_1() -> None:
    body = rss("<item><title>L’été…</title></item>").encode("cp1252").decode("latin-1").encode("utf-8")
    (item,) = parse_feed(body, url=URL, now=NOW).items
    assert item.title == "L’été…"


def test_guid_and_link_stay_as_published() -> None:
    fields = "<guid>a\u0092b</guid><link>https://e.example/\u0092</link><description>It&#146;s</description>"
    item = rss_item(f"<title>{TITLE}</title>{fields}")
    assert (item.guid, item.link, item.content_html) == ("a\u0092b", "https://e.example/\u0092", "It’s")
    assert item.title == READ


HTML = "\n<p class='a'>It\u0092s \u0093one\u0094 \u0096 five\u0085</p>\n\u0085<p>two</p>\u0085\n "
HTML_READ = "\n<p class='a'>It’s “one” – five…</p>\n<p>two</p>\n "


@pytest.mark.parametrize(
    "item",
    [
        rss_item(f"<description><![CDATA[{HTML}]]></description>"),
        rss_item(f"<description>{escape(HTML)}</description>"),
        rss_item(f"<content:encoded><![CDATA[{HTML}]]></content:encoded>"),
        only(atom(f'<entry><id>1</id><content type="html"><![CDATA[{HTML}]]></content></entry>')),
        only(json_feed({"id": "1", "content_html": HTML})),
        only(rss(f"<item><guid>1</guid><description><![CDATA[{HTML}]]></description></item></b>")),
    ],
    ids=["rss", "rss escaped", "content:encoded", "atom", "json", "loose"],
)
def test_content_has_them_too_and_is_else_as_published(item: Item) -> None:
    assert item.content_html == HTML_READ


def test_a_summary_and_plain_text_have_them_too() -> None:
    both = rss_item("<description>It&#146;s</description><content:encoded>It&#146;s one</content:encoded>")
    assert (both.content_html, both.summary) == ("It’s one", "It’s")
    plain = only(json_feed({"id": "1", "content_text": "It\u0092s\none\u0085"}))
    assert plain.content_html == "It’s<br>\none…"


def test_titles_and_contents_are_judged_apart() -> None:
    title, content = "It\u0092s one", "FranÃ\u0089ois et lâ\u0080\u0099autre"
    item = rss_item(f"<title>{title}</title><description>{content}</description>")
    assert (item.title, item.content_html) == ("It’s one", content)
    other = rss_item(f"<title>{content}</title><description>{title}</description>")
    assert (other.title, other.content_html) == (content, "It’s one")


def test_an_item_of_content_alone_keeps_its_identity() -> None:
    item = rss_item("<description>It&#146;s one</description>")
    assert item.content_html == "It’s one"
    assert item.guid == hashlib.md5("It\u0092s one".encode()).hexdigest()


def test_the_identity_of_an_item_without_guid_and_link_stays() -> None:
    """MD5 of the title as published, in which nothing was read as Windows-1252."""
    assert rss_item("<title>It\u0092s one</title>").guid == hashlib.md5("It\u0092s one".encode()).hexdigest()


def test_an_item_without_guid_is_recognized_by_its_title_before_and_after() -> None:
    item = rss_item("<title>It\u0092s one</title><link>https://e.example/</link>")
    assert item.identities is not None
    assert item.identities.titles == ("It’s one", "It\u0092s one")


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ("Read on\u0085", "Read on…"),
        ("one \u0085 two", "one … two"),
        ("one\u0085\ntwo", "one\ntwo"),
        ("one\r\n\u0085two", "one\ntwo"),
    ],
)
def test_nel_is_an_ellipsis_unless_it_is_beside_a_line_break(title: str, read: str) -> None:
    assert rss_item(f"<title>{title}</title>").title == read


def insane(title: str, text: str = "") -> ParsedFeed:
    return parsed(rss(f"<item><title>{title}</title><description>{text}</description></item>"))


@pytest.mark.parametrize(
    ("feed", "title"),
    [
        (insane("It\u0092s one", "a\ufffdb"), "It\u0092s one"),
        (insane("FranÃ\u0089ois et lâ\u0080\u0099autre"), "FranÃ\u0089ois et lâ\u0080\u0099autre"),
        (insane("\u0083Q\u0081[\u0083\u0080 three"), "\u0083Q\u0081[\u0083\u0080 three"),
        (insane("\u0083Q\u0083Q \u0083"), "\u0083Q\u0083Q \u0083"),
        (insane("Read on â\u0080\u0099\u0085"), "Read on â\u0080\u0099"),
    ],
    ids=["undecodable", "utf-8 as latin-1", "undefined", "many", "nel"],
)
def test_a_document_that_is_not_sane_otherwise_keeps_them(feed: ParsedFeed, title: str) -> None:
    assert feed.items[0].title == title


def test_a_document_with_undecodable_bytes_keeps_them() -> None:
    body = (
        rss("<item><title>It\u0092s one, é</title><guid>ééééééééééé</guid></item>")
        .encode()
        .replace(b"\xc3\xa9", b"\xc3(", 1)
    )
    (item,) = parse_feed(body, url=URL, content_type="text/xml; charset=utf-8", now=NOW).items
    assert item.title is not None
    assert "It\u0092s" in item.title


def test_one_accent_before_a_quotation_mark_is_no_utf_8() -> None:
    """Most of the characters decide: `É` and `\u0094` together would be one character of UTF-8."""
    assert insane("\u0093L\u0092\u00c9T\u00c9\u0094 \u0096 in one").items[0].title == "“L’ÉTÉ” – in one"
