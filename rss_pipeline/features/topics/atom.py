"""A topic as Atom (RFC 4287)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lxml import etree

from rss_pipeline.collector.models.clock import rfc3339
from rss_pipeline.features.topics.entry import Entry
from rss_pipeline.features.topics.feed_head import GENERATOR, FeedHead

ATOM_TYPE = "application/atom+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"
_PREFIXES: Any = {None: _NAMESPACE}
_DECLARATION = f' xmlns="{_NAMESPACE}"'.encode()
_START = b'<?xml version="1.0" encoding="utf-8"?>\n'
_END = b"</feed>\n"
_TAIL = b"</updated></source></entry>\n"


def atom_document(head: FeedHead, updated: datetime, entries: Sequence[bytes]) -> bytes:
    """The document of entries as `atom_entry` writes them; as long as these and the empty document."""
    feed = _element("feed")
    _add(feed, "id", head.id)
    _add(feed, "title", head.title)
    _add(feed, "updated", rfc3339(updated))
    if head.urls is not None:
        _add(feed, "link", rel="self", type=ATOM_TYPE, href=head.urls.atom)
    if head.link is not None:
        _add(feed, "link", rel="alternate", href=head.link)
    for hub in head.hubs:
        _add(feed, "link", rel="hub", href=hub)
    _add(feed, "generator", GENERATOR)
    start = etree.tostring(feed, encoding="utf-8").removesuffix(b"</feed>")
    return b"".join((_START, start, b"\n", *entries, _END))


def atom_entry(entry: Entry) -> bytes:
    """One entry, to be put into the document. Its source has its own date until `with_source_date`."""
    element = _element("entry")
    _add(element, "id", entry.id)
    _add(element, "title", entry.title)
    if entry.published is not None:
        _add(element, "published", rfc3339(entry.published))
    _add(element, "updated", rfc3339(entry.updated))
    for name in entry.authors or (entry.source.title,):
        _add(_add(element, "author"), "name", name)
    if entry.link is not None:
        _add(element, "link", rel="alternate", href=entry.link)
    for each in entry.enclosures:
        length = None if each.length is None else str(each.length)
        _add(element, "link", rel="enclosure", type=each.type, length=length, href=each.url)
    for category in entry.categories:
        _add(element, "category", term=category)
    if entry.summary is not None:
        _add(element, "summary", entry.summary)
    if entry.html is not None:
        _add(element, "content", entry.html, type="html")
    elif entry.link is None:
        # Without a link, an entry must have content (4.1.2).
        _add(element, "content", entry.summary or entry.title)
    source = _add(element, "source")
    _add(source, "id", entry.source.id)
    _add(source, "title", entry.source.title)
    if entry.source.link is not None:
        _add(source, "link", rel="alternate", href=entry.source.link)
    _add(source, "updated", rfc3339(entry.updated))
    return etree.tostring(element, encoding="utf-8").replace(_DECLARATION, b"", 1) + b"\n"


def with_source_date(entry: bytes, updated: datetime) -> bytes:
    """The entry with the date of its source: that of the newest entry of its feed.

    It is known only when all are chosen. The length stays, since an instant is as long as any other.
    """
    date = rfc3339(updated).encode()
    return b"".join((entry[: -len(_TAIL) - len(date)], date, _TAIL))


def _element(name: str) -> etree._Element:
    return etree.Element(f"{{{_NAMESPACE}}}{name}", nsmap=_PREFIXES)


def _add(
    parent: etree._Element, name: str, text: str | None = None, **attributes: str | None
) -> etree._Element:
    child = etree.SubElement(parent, f"{{{_NAMESPACE}}}{name}")
    child.text = text
    for key, value in attributes.items():
        if value is not None:
            child.set(key, value)
    return child
