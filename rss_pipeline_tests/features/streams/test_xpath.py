"""The items that an XPath expression selects, on every format, compared with a plain reading of the bytes."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from lxml import etree

from rss_pipeline.collector.models.item import ParsedFeed
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.features.streams.xpath import SelectableItems, XPathRefused
from rss_pipeline_tests.collector.parse.documents import NOW, URL, atom, json_feed, rss

DC = "http://purl.org/dc/elements/1.1/"
NAMESPACES = {
    "r": "http://purl.org/rss/1.0/",
    "n": "http://my.netscape.com/rdf/simple/0.9/",
    "a": "http://www.w3.org/2005/Atom",
    "dc": DC,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
AUTHORS = ("小嶋 陽菜", "高橋 みなみ", "小嶋 陽菜", "峯岸 みなみ", "", "高橋 みなみ")


def read(document: bytes | str, content_type: str | None = None) -> ParsedFeed:
    body = document.encode() if isinstance(document, str) else document
    return parse_feed(body, content_type=content_type, url=URL, now=NOW, keep_tree=True)


def selected(feed: ParsedFeed, expression: str) -> list[str]:
    assert feed.tree is not None
    return [feed.items[place].guid for place in SelectableItems(feed.tree).select(expression)]


def items_of(text: str, item: str) -> str:
    return "".join(
        item.format(n=n, author=text.format(author) if author else "") for n, author in enumerate(AUTHORS)
    )


RSS = items_of("<dc:creator>{}</dc:creator>", "<item>\n  <guid>{n}</guid><title>T{n}</title>{author}</item>")
PLAIN = items_of(
    "<category>{}</category>",
    "<item><title>T{n}</title><link>http://e.example/{n}</link>{author}</item>",
)
ATOM = items_of(
    "<author>\n<name>\n  {}\n</name></author>", "<entry><id>urn:x:{n}</id><title>T{n}</title>{author}</entry>"
)
RDF = items_of(
    "<dc:subject>{}</dc:subject>",
    '<item rdf:about="http://e.example/{n}"><title>T{n}</title><link>http://e.example/{n}</link>{author}</item>',
)


def rdf(own: str) -> str:
    return (
        f'<rdf:RDF xmlns="{own}" xmlns:rdf="{NAMESPACES["rdf"]}" xmlns:dc="{DC}">'
        f"<channel rdf:about='http://e.example/'><title>T</title></channel>{RDF}</rdf:RDF>"
    )


@dataclass(frozen=True, kw_only=True)
class Format:
    """A document, the expression for an author in it, and the same one for a plain reader of its bytes."""

    body: bytes
    xpath: str
    plain: str
    guid: str
    content_type: str | None = None
    repairing: bool = False


FORMATS = {
    "RSS 0.91": Format(
        body=f'<rss version="0.91"><channel><title>T</title>{PLAIN}</channel></rss>'.encode(),
        xpath="//item[category='{}']",
        plain="//item[category='{}']",
        guid="link",
    ),
    "RSS 0.90": Format(
        body=rdf(NAMESPACES["n"]).encode(),
        xpath="//item[dc:subject='{}']",
        plain="//n:item[dc:subject='{}']",
        guid="@rdf:about",
    ),
    "RSS 1.0": Format(
        body=rdf(NAMESPACES["r"]).encode(),
        xpath="//rss1:item[dc:subject='{}']/*",
        plain="//r:item[dc:subject='{}']",
        guid="@rdf:about",
    ),
    "RSS 2.0": Format(
        body=rss(RSS).encode(),
        xpath="//item[dc:creator='{}']/title/text()",
        plain="//item[dc:creator='{}']",
        guid="guid",
    ),
    "RSS 2.0, dc misspelled": Format(
        body=rss(RSS).replace(DC, "HTTPS://purl.org/DC/elements/1.1").encode(),
        xpath="//item[dc:creator='{}']",
        plain="//item[*[local-name()='creator']='{}']",
        guid="guid",
    ),
    "Atom": Format(
        body=atom(ATOM).encode(),
        xpath="//entry[author/name='{}']",
        plain="//a:entry[normalize-space(a:author/a:name)='{}']",
        guid="a:id",
    ),
    "Atom with a prefix": Format(
        body=atom(ATOM).encode(),
        xpath="/atom:feed/atom:entry[atom:author/atom:name='{}']/atom:id",
        plain="//a:entry[normalize-space(a:author/a:name)='{}']",
        guid="a:id",
    ),
    "Shift_JIS": Format(
        body=('<?xml version="1.0" encoding="Shift_JIS"?>' + rss(RSS)).encode("shift_jis"),
        xpath="//item[dc:creator='{}']",
        plain="//item[dc:creator='{}']",
        guid="guid",
    ),
    "text/html": Format(
        body=rss(RSS).encode(),
        content_type="text/html; charset=iso-8859-1",
        xpath="//item[dc:creator='{}']",
        plain="//item[dc:creator='{}']",
        guid="guid",
    ),
    "entities and control characters": Format(
        body=rss(RSS).replace("<title>", "<title>&nbsp;\x08 & ").encode(),
        xpath="//item[dc:creator='{}']",
        plain="//item[dc:creator='{}']",
        guid="guid",
        repairing=True,
    ),
    "tags that overlap": Format(
        body=rss(RSS.replace("<title>", "<title><b>").replace("</title>", "</title></b>")).encode(),
        xpath="//item[dc:creator='{}']",
        plain="//item[dc:creator='{}']",
        guid="guid",
        repairing=True,
    ),
    "Atom with tags that overlap": Format(
        body=atom(ATOM.replace("<title>", "<title><b>").replace("</title>", "</title></b>")).encode(),
        xpath="//atom:entry[atom:author/atom:name='{}']",
        plain="//a:entry[normalize-space(a:author/a:name)='{}']",
        guid="a:id",
        repairing=True,
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_streams_by_author_are_those_of_a_plain_reading(name: str) -> None:
    form = FORMATS[name]
    feed = read(form.body, form.content_type)
    assert ("tolerant" in str(feed.header.repairs)) == ("overlap" in name), feed.header.repairs
    plain = etree.fromstring(form.body, etree.XMLParser(recover=form.repairing))
    assert len(feed.items) == len(AUTHORS)
    rest = {item.guid for item in feed.items}
    for author in filter(None, dict.fromkeys(AUTHORS)):
        elements = plain.xpath(form.plain.format(author), namespaces=NAMESPACES)
        expected = [each.xpath(f"string({form.guid})", namespaces=NAMESPACES) for each in elements]
        found = selected(feed, form.xpath.format(author))
        assert (found, bool(found)) == (expected, True), author
        rest -= set(found)
    assert [feed.items[n].guid for n in range(6) if feed.items[n].guid in rest] == [feed.items[4].guid]


def test_json_feed_has_the_elements_of_rss_and_its_own() -> None:
    items: list[dict[str, Any]] = [
        {"id": "1", "authors": [{"name": "小嶋 陽菜", "url": "u"}, {"name": "B\n C"}], "tags": ["x", "y"]},
        {"id": "2", "author": {"name": "B C"}, "url": "/2", "attachments": [{"url": "/2.mp3"}]},
        {"id": "3", "_podcast": {"season": 2, "explicit": False, "a b": 1, "no\x00ne": None}, "tags": ["y"]},
        {"id": "4", "content_html": "<p>long</p>", "date_published": "2026-01-02T00:00:00Z"},
    ]
    feed = read(json_feed(*items))
    expected = {
        "//item[author/name='小嶋 陽菜']": {
            each["id"] for each in items if "小嶋" in json.dumps(each, ensure_ascii=False)
        },
        "//item[author='B C']": {"1", "2"},
        "//rss1:item[dc:creator='B C']/link": {"2"},
        "//item[category='y']": {"1", "3"},
        "//item[tags='x']": {"1"},
        "//item[enclosure/@url='https://example.com/2.mp3']": {"2"},
        "//item[_podcast/season > 1]": {"3"},
        "//item[_podcast/explicit='false']/guid": {"3"},
        "//item[contains(content:encoded, 'long')][pubDate]": {"4"},
        "//channel/item[id=2]/following-sibling::item": {"3", "4"},
    }
    assert {xpath: set(selected(feed, xpath)) for xpath in expected} == expected


def test_the_first_item_of_each_parent_is_selected_as_xpath_counts() -> None:
    """`[1]` of `//item[...][1]` is the first among its siblings, not the first of the document."""
    feed = read(rdf(NAMESPACES["r"]))
    assert selected(feed, "//rss1:item[dc:subject='小嶋 陽菜'][1]/*") == ["http://e.example/0"]
    assert selected(feed, "(//item[dc:subject='小嶋 陽菜'])[last()]/@rdf:about") == ["http://e.example/2"]
    assert selected(feed, "//item[@rdf:about='http://e.example/5']") == ["http://e.example/5"]


@pytest.mark.parametrize(
    "uri",
    [
        "http://www.georss.org/georss",
        "http://www.georss.org/georss/",
        "https://www.GeoRSS.org/georss#",
        None,
    ],
)
def test_a_namespace_has_one_prefix_however_it_is_spelled_or_not_declared(uri: str | None) -> None:
    declared = f' xmlns:georss="{uri}"' if uri else ""
    feed = read(
        f'<rss version="2.0"{declared}><channel><item><guid>1</guid><georss:point>1 2</georss:point></item>'
        "<item><guid>2</guid></item></channel></rss>"
    )
    assert selected(feed, "//item[georss:point]") == ["1"]
    assert selected(feed, "//georss:*") == ["1"]


def test_own_names_have_no_prefix_and_atom_inside_rss_has_one() -> None:
    link = '<atom:link rel="self" href="u"/>'
    feed = read(rss(f"<item><guid>1</guid>{link}</item><item><guid>2</guid><link>u</link></item>"))
    assert selected(feed, "//item[atom:link/@rel='self']") == ["1"]
    assert selected(feed, "//item[link]") == ["2"]
    assert selected(feed, "//item[guid='rss1:atom:x' or rss1:guid=2]") == ["2"]


def test_white_space_in_short_leaf_texts_is_collapsed_and_indentation_is_none() -> None:
    author = "<author>\n  <name>Haruna\r\n   Kojima </name>\n</author>"
    long = "x" * 1_000 + "  y"
    content = (
        '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><b>a</b>\n<i>b</i></div></content>'
    )
    feed = read(atom(f"<entry><id>1</id>{author}<summary>{long}</summary>{content}</entry>"))
    for condition in (
        "author/name='Haruna Kojima'",
        "author='Haruna Kojima'",
        f"summary='{long}'",
        "normalize-space(content)='a b'",
    ):
        assert selected(feed, f"//entry[{condition}]") == ["1"], condition
    # U+3000 is no white space in XML: the name is another one.
    assert (
        selected(read(atom("<entry><id>1</id><title>a\u3000b</title></entry>")), "//entry[title='a b']") == []
    )


def test_what_is_selected_outside_of_items_selects_none() -> None:
    feed = read(rss("<item><guid>1</guid></item>\n  text\n<item><guid>2</guid></item>"))
    for xpath in (
        "/",
        "/rss",
        "//channel",
        "//channel/title",
        "//channel/title/text()",
        "//channel/text()",
        "//@version",
    ):
        assert selected(feed, xpath) == [], xpath
    for xpath in ("//*", "//node()", "//text()", "//item | //@version"):
        assert selected(feed, xpath) == ["1", "2"], xpath


@pytest.mark.slow
def test_items_that_are_dropped_or_come_again_belong_to_no_stream() -> None:
    """The first of two items with one guid is stored: the second one's author belongs to the other."""
    feed = read(
        rss(
            "<item><guid>1</guid><dc:creator>A</dc:creator></item><item><guid>1</guid><dc:creator>B</dc:creator></item>"
            "<item><guid>2</guid><dc:creator>B</dc:creator></item>"
        )
    )
    assert feed.duplicate_guids == ("1",)
    assert selected(feed, "//item[dc:creator='B']") == ["2"]
    assert selected(feed, "//item") == ["1", "2"]
    dated = "".join(
        f"<item><guid>{n}</guid><pubDate>{n % 28 + 1} Jan {1990 + n // 400} 00:00 GMT</pubDate></item>"
        for n in range(5_003)
    )
    feed = read(rss(dated))
    assert feed.dropped_items == 3
    assert selected(feed, "//item") == [item.guid for item in feed.items]
    assert selected(feed, "//item[guid >= 4999]") == ["4999", "5000", "5001", "5002"]


def test_an_item_that_is_cut_off_is_not_there() -> None:
    whole = rss("<item><guid>1</guid></item><item><guid>2</guid><enclosure url='u'/></item>")
    feed = read(whole[: whole.index("</item></channel>")])
    assert feed.cut_off
    assert selected(feed, "//item") == ["1"]
    assert selected(feed, "//item[last()]") == ["1"]
    assert selected(feed, "//item[not(following-sibling::item)]") == ["1"]


def test_a_namespace_that_is_no_uri_harms_nothing() -> None:
    """expat accepts any text as a namespace, lxml refuses those that are no URI."""
    feed = read('<rss xmlns:x="no uri"><channel><item><guid>1</guid><x:y x:z="1"/></item></channel></rss>')
    assert selected(feed, "//item[*[local-name()='y']]") == ["1"]


@pytest.mark.slow
def test_a_document_nested_deeper_than_the_stack_is_copied() -> None:
    deep = "<b>" * 10_000 + "x" + "</b>" * 10_000
    feed = read(rss(f"<item><guid>1</guid><description>{deep}</description></item>"))
    assert selected(feed, "//item[description]") == ["1"]


@pytest.mark.parametrize(
    ("xpath", "sentence"),
    [
        ("count(//item)", "gives a number and no elements"),
        ("//item = 1", "gives a truth value and no elements"),
        ("string(//item)", "gives a text and no elements"),
        ("//item[", "Invalid"),
        ("//item[nothing:here]", "Undefined namespace prefix"),
        ("//item[re:test(guid, '(a+)+$')]", "cannot be evaluated"),
        ("//item[matches(guid, 'x')]", "Unregistered function"),
        ("//item[$x]", "Undefined variable"),
    ],
)
def test_an_expression_that_gives_no_elements_is_refused_in_a_sentence(xpath: str, sentence: str) -> None:
    with pytest.raises(XPathRefused, match=sentence):
        selected(read(rss("<item><guid>1</guid></item>")), xpath)


def test_the_tree_is_kept_only_on_request() -> None:
    assert parse_feed(rss("<item><guid>1</guid></item>").encode(), url=URL, now=NOW).tree is None
