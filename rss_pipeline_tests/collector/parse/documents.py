"""Small documents for the tests of parsing, and how they are parsed.

No test is in here.
"""

import json
from datetime import UTC, datetime

from rss_pipeline.collector.models.feed import ItemKey
from rss_pipeline.collector.models.item import Item, ParsedFeed
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.collector.parse.xml.tolerant import read_tolerantly
from rss_pipeline.collector.parse.xml.tree import Tree

NOW = datetime(2026, 11, 21, tzinfo=UTC)
URL = "https://example.com/dir/feed.xml"
NAMESPACES = (
    'xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/" '
    'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" '
    'xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"'
)


def rss(items: str, channel: str = "<title>T</title><link>https://example.com/</link>") -> str:
    return f'<rss version="2.0" {NAMESPACES}><channel>{channel}{items}</channel></rss>'


def atom(entries: str, attributes: str = "") -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}><title>T</title>{entries}</feed>'


def json_feed(*items: object) -> str:
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": list(items)})


def parsed(text: str, *, key: ItemKey = "guid", url: str | None = URL) -> ParsedFeed:
    return parse_feed(text.encode(), url=url, key=key, now=NOW)


def tolerant_tree(text: str) -> Tree:
    """The tree by the tolerant parser, of a text with an end tag that matches nothing."""
    end = text.rindex("</")
    tree = read_tolerantly(text[:end] + "</b>" + text[end:])
    assert tree is not None
    return tree


def only(text: str, *, key: ItemKey = "guid", url: str | None = URL) -> Item:
    (item,) = parsed(text, key=key, url=url).items
    return item


def rss_item(fields: str, *, key: ItemKey = "guid") -> Item:
    return only(rss(f"<item>{fields}</item>"), key=key)


def entry(fields: str) -> Item:
    return only(atom(f"<entry><id>1</id>{fields}</entry>"))
