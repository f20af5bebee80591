"""The tolerant parser: what it reads of damaged documents, and that it reads sound ones as the strict one."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rss_pipeline.collector.models.feed import ItemKey
from rss_pipeline.collector.parse.item_identity import guid_of
from rss_pipeline.collector.parse.raw_feed import RawItem
from rss_pipeline.collector.parse.rss_atom import read_feed
from rss_pipeline.collector.parse.xml.tree import read_tree
from rss_pipeline_tests.collector.parse.documents import parsed, tolerant_tree
from rss_pipeline_tests.support.cost import costs_less_than

URL = "http://e.example/feed.xml"
NOW = datetime(2026, 3, 2, tzinfo=UTC)
KEYS: tuple[ItemKey, ...] = ("guid", "link", "title+date")
NAMESPACES = (
    'xmlns:atom="http://www.w3.org/2005/Atom" xmlns:x="http://www.w3.org/2005/Atom"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/"'
    ' xmlns:feedburner="http://rssnamespace.org/feedburner/ext/1.0"'
)
LINK = "<link>http://e.example/1</link>"
RSS_ITEMS = {
    "a link before an Atom link": f"{LINK}<atom:link href='http://e.example/atom'/>",
    "a link after an Atom link": f"<atom:link href='http://e.example/atom'/>{LINK}",
    "a link before an Atom link by another prefix": f"{LINK}<x:link href='http://e.example/atom'/>",
    "a link before an alternate": f"{LINK}<atom:link rel='alternate' href='http://e.example/atom'/>",
    "a link and one to itself": f"{LINK}<atom:link rel='self' href='http://e.example/self'/>",
    "a link and an enclosure": f"{LINK}<atom:link rel='enclosure' href='http://e.example/a.mp3'/>",
    "two links": f"{LINK}<link>http://e.example/2</link>",
    "an empty link and one": "<link></link><link>http://e.example/2</link>",
    "a link in CDATA": "<link><![CDATA[http://e.example/1]]></link><atom:link href='http://e.example/a'/>",
    "a blank link in CDATA": "<link><![CDATA[  ]]></link><atom:link href='http://e.example/a'/>",
    "a link with text and href": "<link rel='alternate' href='http://e.example/a'>http://e.example/b</link>",
    "a link with href": "<link href='http://e.example/a'/><title>t</title>",
    "two Atom links": "<atom:link href='http://e.example/1'/><atom:link href='http://e.example/2'/>",
    "an Atom link with a long relation": (
        "<atom:link rel='http://www.iana.org/assignments/relation/alternate' href='http://e.example/r'/>"
    ),
    "a link of the item's image": f"<title>t</title><image><title>i</title><link>http://e.example/i</link></image>{LINK}",
    "a link of the item's source": (
        f"<atom:source><atom:id>s</atom:id><atom:link href='http://s.example/'/></atom:source>{LINK}"
    ),
    "a guid that is no address": "<guid>abc</guid><title>t</title>",
    "a guid that is a path": "<guid>/abc</guid><title>t</title>",
    "a guid that is said to be a path": "<guid isPermaLink='true'>a/b.html</guid><title>t</title>",
    "a guid that is said to be a link and is none": "<guid isPermaLink='true'>17</guid><title>t</title>",
    "a guid that is a path and no link": "<guid isPermaLink='false'>/abc</guid><title>t</title>",
    "two guids": "<guid>abc</guid><guid>def</guid>",
    "an empty guid and a link": f"<guid></guid>{LINK}",
    "a guid in CDATA": "<guid><![CDATA[a&b]]></guid>",
    "a guid before Atom's id": f"<guid>g</guid><atom:id>tag:x</atom:id>{LINK}",
    "a guid after Atom's id": f"<atom:id>tag:x</atom:id><guid>g</guid>{LINK}",
    "Atom's id alone": f"<atom:id>tag:x</atom:id>{LINK}",
    "an original link of FeedBurner": f"{LINK}<feedburner:origLink>http://o.example/1</feedburner:origLink>",
    "two titles": "<title>t</title><title>u</title>",
    "a title after Dublin Core's": "<dc:title>d</dc:title><title>t</title>",
    "a title before Dublin Core's": "<title>t</title><dc:title>d</dc:title>",
    "Dublin Core's title alone": "<dc:title>d</dc:title><pubDate>x</pubDate>",
    "a media title alone": "<media:title>m</media:title><pubDate>x</pubDate>",
    "two dates": "<title>t</title><pubDate>A</pubDate><pubDate>B</pubDate>",
    "nothing but a description": "<description>abc</description>",
}
ATOM_ENTRIES = {
    "two links": "<link href='http://e.example/1'/><link href='http://e.example/2'/><title>t</title>",
    "a link to itself first": "<link rel='self' href='http://e.example/1'/><link href='http://e.example/2'/>",
    "alternates of two types": (
        "<id>i</id><link type='application/json' href='http://e.example/1'/>"
        "<link type='text/html' href='http://e.example/2'/>"
    ),
    "an id that is a path": "<id>/abc</id><title>t</title>",
    "two ids": "<id>1</id><id>2</id>",
    "an id that is an address": "<id>http://e.example/id</id><title>t</title>",
    "an empty id": "<id></id><link href='http://e.example/1'/>",
    "a source before": "<source><id>s</id><title>s</title><link href='http://s.example'/></source><id>i</id>",
    "a source after": "<id>i</id><source><id>s</id><title>s</title><link href='http://s.example'/></source>",
}
DOCUMENTS = {
    **{
        f"RSS: {name}": f'<rss version="2.0" {NAMESPACES}><channel><title>T</title>'
        f"<link>http://e.example/</link><item>{item}</item><item><guid>z</guid></item></channel></rss>"
        for name, item in RSS_ITEMS.items()
    },
    **{
        f"Atom: {name}": '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>f</id>'
        f'<link href="http://e.example/"/><entry>{entry}</entry><entry><id>z</id></entry></feed>'
        for name, entry in ATOM_ENTRIES.items()
    },
}


def identities(items: tuple[RawItem, ...]) -> list[tuple[object, ...]]:
    return [(item.url, *(guid_of(item, key) for key in KEYS)) for item in items]


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_an_item_is_the_same_one_on_both_ways(text: str) -> None:
    strict = read_feed(read_tree(text), URL, now=NOW)
    tolerant = read_feed(tolerant_tree(text), URL, now=NOW)
    assert strict is not None
    assert tolerant is not None
    assert identities(tolerant.items) == identities(strict.items)


DAMAGED = {
    "an end tag is missing": ("</title>", ""),
    "an end tag has another name": ("</title>", "</titel>"),
    "an end tag of an item is missing": ("</guid></item>", "</guid>"),
    "a start tag is missing": ("<title>One", "One"),
    "a start tag of an item is missing": ("<item><title>Two", "<title>Two"),
    "two end tags change places": ("</description></item>", "</item></description>"),
    "an end tag of the channel before its items end": ("<item><title>Two", "</channel><item><title>Two"),
    "an attribute without quotes": ('url="http://e.example/a.mp3"', "url=http://e.example/a.mp3"),
    "an attribute twice": ('length="9"', 'length="9" length="8"'),
    "an attribute without its last quote": ('type="audio/mpeg"', 'type="audio/mpeg'),
    "a quote more": ('length="9"', 'length="9""'),
    "a section without an end": ("One &amp; more", "<![CDATA[One &amp; more"),
    "a tag more": ("<guid>2", "<b><guid>2"),
    "a title more": ("<guid>2", "<guid>2</guid><title><guid>2"),
}
SOUND = (
    f"<rss version='2.0' {NAMESPACES}><channel><title>T</title><link>http://e.example/</link>"
    "<item><title>One &amp; more</title><link>http://e.example/1</link>"
    '<enclosure url="http://e.example/a.mp3" length="9" type="audio/mpeg"/><dc:creator>Ann</dc:creator>'
    "<guid>1</guid><description><![CDATA[<p>Text<br>]]></description></item>"
    "<item><title>Two</title><link>http://e.example/2</link><guid>2</guid></item>"
    "<item><title>Three</title><link>http://e.example/3</link><guid>3</guid></item></channel></rss>"
)


@pytest.mark.parametrize(("sound", "damaged"), DAMAGED.values(), ids=DAMAGED.keys())
def test_items_of_a_damaged_document_are_those_of_the_sound_one(sound: str, damaged: str) -> None:
    assert sound in SOUND
    text = SOUND.replace(sound, damaged, 1)
    feed = parsed(text)
    assert any("tolerant" in repair for repair in feed.header.repairs)
    assert tuple(replace(item, former_guids=()) for item in feed.items) == parsed(SOUND).items
    assert not feed.cut_off


def test_an_item_in_which_a_damaged_document_ends_is_left_out() -> None:
    cut = SOUND[: SOUND.index("Three")].replace("</title>", "", 1)
    feed = parsed(cut)
    assert (feed.cut_off, [item.guid for item in feed.items]) == (True, ["1", "2"])


def test_a_second_document_behind_a_damaged_one_is_cut() -> None:
    feed = parsed(SOUND.replace("</title>", "", 1) + SOUND.replace("Two", "Other"))
    assert [item.title for item in feed.items] == ["One & more", "Two", "Three"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        *("<source>", "<link>", "<link rel='x", "<item><source>", "</source>", "</title>", " </title>x"),
        *(
            "<author>",
            "<x:author><name ",
            "<author>a</x:author>",
            "<title>",
            "<![CDATA[",
            "<!--",
            "<!",
            "]]>",
        ),
        *(
            "<channel>",
            "</channel>",
            "<item>",
            "</item>",
            "<b a='\"",
            '<b a="">',
            "&#1",
            "<rss>x",
            "<x y=''z",
        ),
    ],
)
def test_tags_that_never_end_take_no_more_time_than_others(part: str) -> None:
    """20 s of processor time are a document's limit, which may have many times as many."""
    for text in (part * 50_000, f"<b>{part * 50_000}", "<b>" * 20_000 + part * 30_000 + "</b>" * 20_000):
        with costs_less_than(5):
            read_feed(
                tolerant_tree(f"<rss><channel><item>{text}<guid>1</guid></item></channel></rss>"),
                URL,
                now=NOW,
            )
