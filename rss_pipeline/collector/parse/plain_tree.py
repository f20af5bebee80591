"""The tree of a document that was read without one: JSON Feed, and what only feedparser reads.

Its items have the elements of RSS, or those of Atom if the document is Atom, with the values that were read;
so the XPath of a stream selects the same items on a day on which its document is ill-formed. Those of a JSON
Feed have an element for each key of their own, too.
"""

import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.models.item_tree import ItemTree
from rss_pipeline.collector.parse.pictures import with_pictures
from rss_pipeline.collector.parse.raw_feed import RawFeed, RawItem
from rss_pipeline.collector.parse.xml.namespaces import NAMESPACES

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_NOT_COPIED = frozenset(("title", "author", "content_html", "content_text"))
"""Keys of JSON Feed with the name of an element that RSS has, and those of the largest texts."""
_CONTENT = f"{{{NAMESPACES['content']}}}encoded"
_CREATOR = f"{{{NAMESPACES['dc']}}}creator"
_UPDATED = f"{{{NAMESPACES['atom']}}}updated"


def plain_tree(feed: RawFeed) -> ItemTree:
    """The tree of a feed's items: `feed` with entries for Atom, else `rss` with a channel."""
    atom = feed.format.startswith("atom")
    root = Element("feed" if atom else "rss")
    channel = root if atom else SubElement(root, "channel")
    _add(channel, "title", feed.title)
    if atom:
        _add(channel, "link", None, rel="alternate", href=feed.link)
    else:
        _add(channel, "link", feed.link)
        _add(channel, "language", feed.language)
    return ItemTree(root=root, items=tuple((_entry if atom else _item)(channel, item) for item in feed.items))


def _item(channel: Element, item: RawItem) -> Element:
    element = SubElement(channel, "item")
    for name, text in (("guid", item.guid), ("title", item.title), ("link", item.url)):
        _add(element, name, text)
    _add_people(element, item)
    for name in item.authors:
        _add(element, _CREATOR, name)
    for term in item.categories:
        _add(element, "category", term)
    _add(element, "comments", item.comments_url)
    _add(element, "pubDate", next(iter(item.dates), None))
    _add(element, _UPDATED, next(iter(item.updates), None))
    _add(element, "description", item.summary or item.content_html)
    _add(element, _CONTENT, item.content_html)
    for each in with_pictures(item.enclosures, item.pictures):
        _add(element, "enclosure", None, url=each.url, **_kind(each))
    _add_json(element, {key: value for key, value in item.json.items() if key not in _NOT_COPIED})
    return element


def _entry(feed: Element, item: RawItem) -> Element:
    element = SubElement(feed, "entry")
    for name, text in (("id", item.guid), ("title", item.title)):
        _add(element, name, text)
    _add(element, "link", None, rel="alternate", href=item.url)
    _add(element, "link", None, rel="replies", href=item.comments_url)
    _add_people(element, item)
    for term in item.categories:
        _add(element, "category", None, term=term)
    _add(element, "published", next(iter(item.dates), None))
    _add(element, "updated", next(iter(item.updates), None))
    _add(element, "summary", item.summary)
    _add(element, "content", item.content_html)
    for each in with_pictures(item.enclosures, item.pictures):
        _add(element, "link", None, rel="enclosure", href=each.url, **_kind(each))
    return element


def _add_people(element: Element, item: RawItem) -> None:
    for name in item.authors:
        _add(SubElement(element, "author"), "name", name)


def _add_json(element: Element, values: Mapping[str, Any]) -> None:
    """Add an element for each key, and for each value of a list. Not recursive: JSON may be nested deep."""
    to_add: list[tuple[Element, str, Any]] = [(element, *each) for each in reversed(list(values.items()))]
    while to_add:
        parent, key, value = to_add.pop()
        match value:
            case list():
                to_add += [(parent, key, each) for each in reversed(value)]
            case _ if value is None or not _NAME.fullmatch(key):
                continue
            case dict():
                child = SubElement(parent, key)
                to_add += [(child, *each) for each in reversed(value.items())]
            case bool():
                _add(parent, key, str(value).lower())
            case _:
                _add(parent, key, str(value))


def _kind(enclosure: Enclosure) -> dict[str, str | None]:
    length = enclosure.length
    return {"type": enclosure.type, "length": None if length is None else str(length)}


def _add(parent: Element, name: str, text: str | None, **attributes: str | None) -> None:
    """Add an element with this text or these attributes, unless there is nothing in it."""
    known = {key: _NO_XML.sub("", value) for key, value in attributes.items() if value is not None}
    if text is None and not known.keys() - {"rel"}:
        return
    SubElement(parent, name, known).text = text and _NO_XML.sub("", text)
