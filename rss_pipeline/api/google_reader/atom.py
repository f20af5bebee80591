"""A page of a stream as Atom, in Google Reader's dialect: newsboat before 2.24 reads nothing else.

The states of an item are categories of a scheme of its own, with the state's name as label.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from lxml import etree

from rss_pipeline.api.google_reader.entries import Entry, web_url
from rss_pipeline.api.google_reader.ids import LONG_ID, long_id
from rss_pipeline.api.google_reader.streams import FeedStream, Stream
from rss_pipeline.collector.sanitize.text import legal
from rss_pipeline.pipeline.topics.entry import rfc3339

ATOM_TYPE = "application/atom+xml"

_ATOM = "http://www.w3.org/2005/Atom"
_READER = "http://www.google.com/schemas/reader/atom/"
_SCHEME = "http://www.google.com/reader/"
_PREFIXES: Any = {None: _ATOM, "gr": _READER}
_LONG_PREFIX = LONG_ID.removesuffix("item/")
_EMPTY = datetime.fromtimestamp(0, UTC)


def atom_document(
    stream: Stream, entries: Sequence[Entry], *, title: str, site: str | None, continuation: str | None
) -> bytes:
    """The document of these entries. Its date is that of the newest: equal entries give equal bytes."""
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap=_PREFIXES)
    _add(feed, "id", f"{_LONG_PREFIX}{stream}")
    _add(feed, "title", title)
    _add(feed, "updated", rfc3339(max((entry.updated for entry in entries), default=_EMPTY)))
    if page := web_url(site):
        _add(feed, "link", rel="alternate", href=page)
    if continuation is not None:
        _add(feed, "continuation", continuation, namespace=_READER)
    for entry in entries:
        _add_entry(feed, entry)
    document: bytes = etree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def _add_entry(feed: etree._Element, entry: Entry) -> None:
    element = _add(feed, "entry")
    element.set(f"{{{_READER}}}crawl-timestamp-msec", str(entry.number // 1_000))
    # Newsboat sends this id back to edit-tag, as it is.
    _add(element, "id", long_id(entry.number))
    for label in _states(entry):
        _add(element, "category", term=f"user/-/state/com.google/{label}", scheme=_SCHEME, label=label)
    for name in entry.categories:
        _add(element, "category", term=name)
    _add(element, "title", entry.title, type="text")
    _add(element, "published", rfc3339(entry.published))
    _add(element, "updated", rfc3339(entry.updated))
    _add(element, "link", rel="alternate", type="text/html", href=entry.page)
    for each in entry.enclosures:
        if url := web_url(each.url):
            length = None if each.length is None else str(each.length)
            _add(element, "link", rel="enclosure", type=each.type, length=length, href=url)
    for name in entry.authors or (entry.origin.title,):
        _add(_add(element, "author"), "name", name)
    _add(element, "content", entry.html, type="html")
    source = _add(element, "source")
    source.set(f"{{{_READER}}}stream-id", str(FeedStream(entry.origin.feed_id)))
    _add(source, "id", f"{_LONG_PREFIX}{FeedStream(entry.origin.feed_id)}")
    _add(source, "title", entry.origin.title)
    _add(source, "link", rel="alternate", href=entry.origin.page or None)


def _states(entry: Entry) -> Iterable[str]:
    """Newsboat takes an entry as read or unread by `read`, `fresh` and `kept-unread`, else as it was."""
    yield "reading-list"
    yield "read" if entry.is_read else "fresh"
    if not entry.is_read:
        yield "kept-unread"
    if entry.is_starred:
        yield "starred"


def _add(
    parent: etree._Element,
    name: str,
    text: str | None = None,
    *,
    namespace: str = _ATOM,
    **attributes: str | None,
) -> etree._Element:
    child = etree.SubElement(parent, f"{{{namespace}}}{name}")
    child.text = None if text is None else legal(text)
    for key, value in attributes.items():
        if value is not None:
            child.set(key, legal(value))
    return child
