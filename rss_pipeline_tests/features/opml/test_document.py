"""OPML of other programs: what is a feed, what a folder, and each mistake with its line."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rss_pipeline.collector.registry.yaml_nodes import MAX_FILE_BYTES
from rss_pipeline.errors import RegistryError
from rss_pipeline.features.opml.outlines import OWN_FILE, OpmlFeed, read_opml, read_outlines, write_opml


def read(*outlines: str, head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> list[OpmlFeed]:
    body = "\n".join(outlines)
    document = f'{head}<opml version="2.0"><body>\n{body}\n</body></opml>'
    return read_opml(document.encode(), path=Path("feeds.opml")).feeds


def mistakes(body: bytes | str) -> list[str]:
    with pytest.raises(RegistryError) as refused:
        read_opml(body.encode() if isinstance(body, str) else body, path=Path("feeds.opml"))
    return refused.value.mistakes


@pytest.mark.parametrize(
    ("outline", "url", "title"),
    [
        (
            '<outline text="T" title="Title" type="rss" xmlUrl="https://a.example/"/>',
            "https://a.example/",
            "Title",
        ),
        ('<outline text="Text" type="atom" xmlUrl="https://a.example/"/>', "https://a.example/", "Text"),
        ('<outline TEXT="Text" xmlURL=" https://a.example/ "/>', "https://a.example/", "Text"),
        ('<outline type="" xmlurl="http://a.example/f?a=1&amp;b=2"/>', "http://a.example/f?a=1&b=2", None),
        ('<outline title="R&D" xmlUrl="http://a.example/f?a=1&b=2"/>', "http://a.example/f?a=1&b=2", "R&D"),
        ('<outline text="A&nbsp;B" xmlUrl="feed://a.example/f"/>', "https://a.example/f", "A B"),
        ('<outline text="https://a.example/" xmlUrl="https://a.example/"/>', "https://a.example/", None),
        ('<outline text=" a&#10; b\u200b " xmlUrl="https://a.example/"/>', "https://a.example/", "a b"),
        (
            '<outline text="می\u200cخواهم\u200f 👩\u200d🚀" xmlUrl="https://a.example/"/>',
            "https://a.example/",
            "می\u200cخواهم 👩\u200d🚀",
        ),
        (
            '<outline xmlUrl="https://a.example/s?q=&quot;a  b&quot;&amp;r=&lt;1"/>',
            "https://a.example/s?q=%22a%20%20b%22&r=%3C1",
            None,
        ),
    ],
)
def test_a_feed_s_url_and_title(outline: str, url: str, title: str | None) -> None:
    (feed,) = read(outline)
    assert (feed.url, feed.title) == (url, title)


def test_outlines_around_a_feed_are_its_folders_else_its_category_is() -> None:
    feeds = read(
        '<outline text="News"><outline title="Europe / West" text="x">',
        '<outline xmlUrl="https://a.example/" category="/No"/>',
        '</outline><outline xmlUrl="https://b.example/"/></outline>',
        '<outline text="empty folder"/><outline text="page" type="link" url="https://p.example/"/>',
        '<outline xmlUrl="https://c.example/" category="/Boston/Weather,/Harvard"/>',
        '<outline xmlUrl="https://d.example/"/>',
    )
    assert [(feed.url[8], feed.folder, feed.line) for feed in feeds] == [
        ("a", "News/Europe \u2215 West", 4),
        ("b", "News", 5),
        ("c", "Boston/Weather", 7),
        ("d", None, 8),
    ]


def test_a_slash_in_a_folder_s_name_makes_no_folder_in_a_folder() -> None:
    def within(feed: str, *names: str) -> str:
        outline = f'<outline xmlUrl="https://{feed}.example/"/>'
        for name in reversed(names):
            outline = f'<outline text="{name}">{outline}</outline>'
        return outline

    feeds = read(within("a", "Art", "AC/DC"), within("b", "/TCP/IP/"), within("c", "AC", "DC"))
    assert [feed.folder for feed in feeds] == ["Art/AC\u2215DC", "TCP\u2215IP", "AC/DC"]
    written = write_opml(feeds, title="x", created=datetime(2026, 2, 18, tzinfo=UTC))
    assert b'<outline text="AC/DC" title="AC/DC">' in written
    again = read_opml(written, path=Path("feeds.opml")).feeds
    assert [feed.folder for feed in again] == [feed.folder for feed in feeds]


def test_folders_without_feeds_are_known_and_notes_are_no_folders() -> None:
    outlines = (
        '<outline text="Empty"/><outline title="Art" isOpen="true"><outline text="zone"/></outline>'
        '<outline text="prefs" schema="1"><outline name="X" value="1"/></outline>'
        '<outline text="News"><outline xmlUrl="https://a.example/"/></outline><outline text="Empty"/>'
        '<outline text="A page" type="link" url="https://p.example/"/><outline text=""/>'
    )
    found = read_outlines(f"<opml><body>{outlines}</body></opml>".encode(), OWN_FILE)
    assert found.empty_folders == ["Empty", "Art/zone"]
    written = write_opml(
        found.feeds, title="x", created=datetime(2026, 2, 18, tzinfo=UTC), empty_folders=found.empty_folders
    )
    assert read_outlines(written, OWN_FILE).empty_folders == ["Empty", "Art/zone"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_file_in_another_encoding(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n<opml><body>' + (
        '<outline text="Café ä" xmlUrl="https://a.example/"/></body></opml>'
    )
    (feed,) = read_opml(text.encode(encoding), path=Path("feeds.opml")).feeds
    assert feed.title == "Café ä"


def test_each_mistake_has_its_line() -> None:
    found = mistakes(
        '\n<opml><body>\n<outline text="A" type="rss" xmlUrl=""/>\n'
        '<outline xmlUrl="https://ok.example/"/>\n<outline xmlUrl="ftp://b.example/"/>\n'
        '<outline text="C" htmlUrl="ftp://c.example/"/>\n<outline xmlUrl="https://d .example/"/>\n'
        '<outline text="E" type="JSON+DotNotation" xmlUrl="https://e.example/"/></body></opml>'
    )
    assert [mistake.partition(": ")[0] for mistake in found] == [f"line {n}" for n in (3, 5, 6, 7, 8)]
    assert "this outline has no xmlUrl" in found[0]
    assert "not an http or https URL" in found[1]
    assert "another reader" in found[4]


def test_a_page_is_no_feed_and_no_mistake_and_keeps_its_folder() -> None:
    outlines = (
        '<outline text="News"><outline text="A" type="rss" htmlUrl="a.example/blog"/>'
        '<outline text="B" type="HTML+XPath" xmlUrl="https://b.example/" xPathItem="//li"/></outline>'
        '<outline text="C" type="link" htmlUrl="https://c.example/"/>'
    )
    found = read_outlines(f"<opml><body>{outlines}</body></opml>".encode(), OWN_FILE)
    assert (found.feeds, found.mistakes) == ([], [])
    assert [(each.url, each.title, each.folder) for each in found.pages] == [
        ("https://a.example/blog", "A", "News"),
        ("https://b.example/", "B", "News"),
    ]


def test_a_page_that_is_not_watched_is_written_without_a_feed_and_stays_so() -> None:
    page = OpmlFeed(url="https://a.example/?a=1&b=2", title="A", folder="News", is_watched=False)
    written = write_opml([page], title="x", created=datetime(2026, 2, 18, tzinfo=UTC))
    assert b"xmlUrl" not in written
    assert b'htmlUrl="https://a.example/?a=1&amp;b=2"' in written
    [again] = read_outlines(written, OWN_FILE).pages
    assert (again.url, again.title, again.folder, again.is_watched) == (page.url, "A", "News", False)


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (f'<!DOCTYPE opml [<!ENTITY e0 "x">{BOMB}]><opml><head>&e11;</head></opml>', "declares entities"),
        ('<!DOCTYPE opml [<!ENTITY f SYSTEM "file:///etc/passwd">]><opml>&f;</opml>', "declares entities"),
        ('<rss version="2.0"><channel/></rss>', "line 1: this is <rss>, not OPML; if it is a feed"),
        ("<opml><body></opml>", "not XML here"),
        ("feeds: [https://a.example/]", "not XML here"),
        ("", "not XML here"),
        ("<opml><body/></opml>", "lists no feed"),
        ("<opml>" + "<outline text='x'>" * 100_000, "nested deeper"),
        (b"x" * (MAX_FILE_BYTES + 1), "larger than 32 MB"),
    ],
)
def test_a_file_that_is_no_list_of_feeds_is_refused(body: bytes | str, sentence: str) -> None:
    (found,) = mistakes(body)
    assert sentence in found


def test_an_external_document_type_is_not_loaded_and_does_no_harm() -> None:
    (feed,) = read(
        '<outline xmlUrl="https://a.example/"/>', head='<!DOCTYPE opml SYSTEM "http://127.0.0.1:9/x.dtd">'
    )
    assert feed.url == "https://a.example/"
