"""Members of streams in every format: those that another reading of the same document gives, by one request.

The other reading is lxml's, or Python's JSON, over the source: nothing of collector.parse is in it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from lxml import etree

from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

DC = "http://purl.org/dc/elements/1.1/"
ATOM = "http://www.w3.org/2005/Atom"
RSS1 = "http://purl.org/rss/1.0/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NAMES = {"dc": DC, "a": ATOM, "r": RSS1, "rdf": RDF}


@dataclass(frozen=True, kw_only=True)
class Read:
    """An item as the other reading has it."""

    title: str
    authors: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()


def with_lxml(body: bytes, items: str, title: str, authors: str, categories: str) -> list[Read]:
    root = etree.fromstring(body, etree.XMLParser(recover=True))
    found = root.xpath(items, namespaces=NAMES)
    assert isinstance(found, list)
    assert found

    def texts(item: object, path: str) -> frozenset[str]:
        assert isinstance(item, etree._Element)
        nodes = item.xpath(path, namespaces=NAMES)
        assert isinstance(nodes, list)
        return frozenset(" ".join(str(getattr(node, "text", node)).split()) for node in nodes)

    return [
        Read(
            title=next(iter(texts(item, title))),
            authors=texts(item, authors),
            categories=texts(item, categories),
        )
        for item in found
    ]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A document, its other reading, and the XPath that a person would write for an author and a category."""

    body: bytes
    read: Callable[[bytes], list[Read]]
    content_type: str = "application/rss+xml"
    author: str | None = None
    category: str | None = None


def of_lxml(items: str, *paths: str) -> Callable[[bytes], list[Read]]:
    return lambda body: with_lxml(body, items, *paths)


def of_json(body: bytes) -> list[Read]:
    feed = json.loads(body)
    return [
        Read(
            title=item["title"],
            authors=frozenset(author["name"] for author in item.get("authors", feed.get("authors", []))),
            categories=frozenset(item.get("tags", [])),
        )
        for item in feed["items"]
    ]


INHERITED = "a:author/a:name|self::*[not(a:author)]/../a:author/a:name"
RSS_20 = f"""<?xml version="1.0" encoding="utf-8"?><rss version="2.0" xmlns:dc="{DC}"><channel>
<title>T</title>
<item><guid>1</guid><title>One</title><dc:creator>Jane Doe</dc:creator><category>News</category></item>
<item><guid>2</guid><title>Two</title><dc:creator>Zo&#xeb;</dc:creator><dc:creator> Jane
 Doe</dc:creator><category><![CDATA[R & D]]></category><category>News</category></item>
<item><guid>3</guid><title>Three</title><category>R &amp; D</category></item>
<item><guid>4</guid><title>Four</title><dc:creator>Jane</dc:creator></item></channel></rss>"""
RSS_10 = f"""<?xml version="1.0" encoding="{{charset}}"?>
<rdf:RDF xmlns="{RSS1}" xmlns:rdf="{RDF}" xmlns:dc="{DC}"><channel rdf:about="http://a.example/"><title>アイドル</title>
<link>http://a.example/</link></channel>
<item rdf:about="http://a.example/1"><title>一</title><link>http://a.example/1</link>
<dc:creator>小嶋 陽菜</dc:creator><dc:subject>日記</dc:subject></item>
<item rdf:about="http://a.example/2"><title>二</title><link>http://a.example/2</link>
<dc:creator>高橋 みなみ</dc:creator><dc:subject>音楽</dc:subject></item>
<item rdf:about="http://a.example/3"><title>三</title><link>http://a.example/3</link>
<dc:creator>小嶋 陽菜</dc:creator><dc:subject>音楽</dc:subject></item></rdf:RDF>"""
OF_RSS_10 = of_lxml("//r:item", "r:title", "dc:creator", "dc:subject")
OF_RSS_20 = of_lxml("//item", "title", "dc:creator", "category")

CASES: Mapping[str, Case] = {
    "RSS 0.91": Case(
        body=b"""<?xml version="1.0"?><rss version="0.91"><channel><title>T</title><link>http://a.example/</link>
<item><title>One</title><link>http://a.example/1</link></item>
<item><title>Two</title><link>http://a.example/2</link></item></channel></rss>""",
        read=of_lxml("//item", "title", "dc:creator", "category"),
    ),
    "RSS 0.92": Case(
        body=b"""<?xml version="1.0"?><rss version="0.92"><channel><title>T</title><link>http://a.example/</link>
<item><title>One</title><link>http://a.example/1</link><category>x</category></item>
<item><title>Two</title><link>http://a.example/2</link><category>y</category><category>x</category></item>
</channel></rss>""",
        read=of_lxml("//item", "title", "dc:creator", "category"),
        category="//item[category='{}']",
    ),
    "RSS 1.0": Case(
        body=RSS_10.format(charset="utf-8").encode(),
        read=OF_RSS_10,
        content_type="application/rdf+xml",
        author="//rss1:item[dc:creator='{}']",
        category="//rss1:item[dc:subject='{}']/*",
    ),
    "RSS 2.0": Case(
        body=RSS_20.encode(),
        read=OF_RSS_20,
        author="//item[dc:creator='{}']",
        category="//category[.='{}']",
    ),
    "Atom": Case(
        body=f"""<?xml version="1.0"?><feed xmlns="{ATOM}"><title>T</title><id>urn:f</id>
<updated>2026-03-01T00:00:00Z</updated><author><name>The Staff</name></author>
<entry><id>urn:1</id><title>One</title><updated>2026-03-01T00:00:00Z</updated>
<category term="a" label="A"/></entry>
<entry><id>urn:2</id><title>Two</title><updated>2026-03-01T00:00:00Z</updated><author><name>Ann</name></author>
<author><name>Bob</name></author><category term="b"/><category term="a"/></entry></feed>""".encode(),
        read=of_lxml("//a:entry", "a:title", INHERITED, "a:category/@term"),
        content_type="application/atom+xml",
        category="//entry[category/@term='{}']",
    ),
    "JSON Feed": Case(
        body=json.dumps(
            {
                "version": "https://jsonfeed.org/version/1.1",
                "title": "T",
                "authors": [{"name": "The Staff"}],
                "items": [
                    {"id": "1", "title": "One", "content_text": "x", "tags": ["a", "b"]},
                    {
                        "id": "2",
                        "title": "Two",
                        "content_text": "x",
                        "authors": [{"name": "Ann"}, {"name": "Bob"}],
                    },
                    {
                        "id": "3",
                        "title": "Three",
                        "content_text": "x",
                        "tags": ["b"],
                        "authors": [{"name": "Bob"}],
                    },
                ],
            }
        ).encode(),
        read=of_json,
        content_type="application/feed+json",
        author="//item[author/name='{}']",
        category="//item[category='{}']",
    ),
    "EUC-JP": Case(
        body=RSS_10.format(charset="EUC-JP").encode("euc_jp"),
        read=OF_RSS_10,
        content_type="text/xml; charset=EUC-JP",
        author="//rss1:item[dc:creator='{}'][1]/*|//item[dc:creator='{}']",
        category="//dc:subject[.='{}']",
    ),
    "ill-formed": Case(
        # libxml2, once it recovers, loses also the entities that are right.
        body=RSS_20.replace("R &amp; D", "<![CDATA[R & D]]>")
        .replace("</title><cat", "</title><x:y/><description>a & b&nbsp;</description><cat")
        .encode(),
        read=OF_RSS_20,
        author="//item[dc:creator='{}']",
        category="//item[category='{}']",
    ),
    "text/html": Case(
        body=RSS_20.encode(),
        read=OF_RSS_20,
        content_type="text/html; charset=utf-8",
        author="//item[dc:creator='{}']",
        category="//item[category='{}']",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_members_are_those_of_another_reading(pipeline: Pipeline, server: FeedServer, name: str) -> None:
    case = CASES[name]
    items = case.read(case.body)
    authors = sorted(frozenset().union(*(item.authors for item in items)))
    categories = sorted(frozenset().union(*(item.categories for item in items)))
    selectors: dict[str, dict[str, str]] = {}
    wanted: dict[str, list[str]] = {}

    def add(stream: str, selector: dict[str, str], belongs: Callable[[Read], bool]) -> None:
        selectors[stream] = selector
        wanted[stream] = sorted(item.title for item in items if belongs(item))

    for number, author in enumerate(authors):
        of_author = lambda item, author=author: author in item.authors  # noqa: E731
        add(f"author-{number}", {"author": author}, of_author)
        if case.author is not None:
            add(f"author-x{number}", {"xpath": case.author.replace("{}", author)}, of_author)
    for number, category in enumerate(categories):
        of_category = lambda item, category=category: category in item.categories  # noqa: E731
        add(f"category-{number}", {"category": category}, of_category)
        if case.category is not None:
            add(f"category-x{number}", {"xpath": case.category.replace("{}", category)}, of_category)
    first = items[0].title
    add("first", {"title": first}, lambda item: item.title == first)
    answer = Answer(body=case.body, etag=etag_of(case.body), headers={"Content-Type": case.content_type})
    pipeline.register(server.route("127.0.0.2", "/feed", answer), "feed", streams=selectors)

    pipeline.poll()

    found: dict[str, list[str]] = {stream: [] for stream in selectors}
    for row in pipeline.rows(
        "SELECT stream, title FROM item_streams JOIN items ON items.id = item_id ORDER BY title"
    ):
        found[row["stream"]].append(row["title"])
    assert {stream: sorted(titles) for stream, titles in found.items()} == wanted
    stored = [row["title"] for row in pipeline.items("feed")]
    rest = [
        row["title"]
        for row in pipeline.rows("SELECT title FROM items WHERE id NOT IN (SELECT item_id FROM item_streams)")
    ]
    assert sorted({*rest, *(title for titles in found.values() for title in titles)}) == sorted(stored)
    assert len(stored) == len(items)
    assert len(server.requests) == 1
