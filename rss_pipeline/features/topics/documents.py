"""The two documents of a topic, from its definition and rows of items.

Pure: no database, no clock, no published document. Equal values give equal bytes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from lxml import etree

from rss_pipeline.collector.models.clock import rfc3339
from rss_pipeline.features.topics.choice import TopicItem, choose
from rss_pipeline.features.topics.document_entry import (
    GENERATOR,
    Copy,
    DocumentEntry,
    FeedHead,
    PublishedHtml,
    entry_of,
    feed_head,
    published_html,
)
from rss_pipeline.features.topics.model import Candidate, PublicImage, PublicUrls, TopicContent, TopicSpec

# A topic as Atom (RFC 4287).

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


def atom_entry(entry: DocumentEntry) -> bytes:
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


# A topic as JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/).

JSON_FEED_TYPE = "application/feed+json"
VERSION = "https://jsonfeed.org/version/1.1"
_UNKNOWN_TYPE = "application/octet-stream"
"""An attachment must have a type."""
OWN_KEY = "_rss_pipeline"
"""Our extension: an entry's source, and where else the item is."""


def json_document(head: FeedHead, items: Sequence[bytes]) -> bytes:
    """The document of items as `json_item` writes them, each with a comma but the last."""
    keys: dict[str, Any] = {"version": VERSION, "title": head.title}
    if head.link is not None:
        keys["home_page_url"] = head.link
    if head.urls is not None:
        keys["feed_url"] = head.urls.json
    if head.hubs:
        keys["hubs"] = [{"type": "WebSub", "url": hub} for hub in head.hubs]
    if head.expired:
        keys["expired"] = True
    keys[OWN_KEY] = {"id": head.id}
    start = _bytes(keys).removesuffix(b"}") + b',"items":[\n'
    return b"".join((start, b",\n".join(items), b"\n]}\n"))


def json_item(entry: DocumentEntry) -> bytes:
    """One item on one line."""
    keys: dict[str, Any] = {"id": entry.id}
    if entry.link is not None:
        keys["url"] = entry.link
    if entry.has_title:
        keys["title"] = entry.title
    # One of the two contents is required.
    if entry.html is not None:
        keys["content_html"] = entry.html
        if entry.summary is not None:
            keys["summary"] = entry.summary
    else:
        keys["content_text"] = entry.summary or entry.title
    if entry.image is not None:
        keys["image"] = entry.image
    if entry.published is not None:
        keys["date_published"] = rfc3339(entry.published)
    if entry.published != entry.updated:
        keys["date_modified"] = rfc3339(entry.updated)
    if entry.authors:
        keys["authors"] = [{"name": name} for name in entry.authors]
    if entry.categories:
        keys["tags"] = list(entry.categories)
    if entry.enclosures:
        keys["attachments"] = [
            {"url": each.url, "mime_type": each.type or _UNKNOWN_TYPE}
            | ({} if each.length is None else {"size_in_bytes": each.length})
            for each in entry.enclosures
        ]
    source = {"id": entry.source.id, "member": entry.source.member, "title": entry.source.title}
    if entry.source.link is not None:
        source["home_page_url"] = entry.source.link
    keys[OWN_KEY] = {"source": source}
    if entry.also_in:
        keys[OWN_KEY]["also_in"] = [_copy(each) for each in entry.also_in]
    return _bytes(keys)


def _copy(copy: Copy) -> dict[str, str]:
    keys = {"member": copy.member, "title": copy.title}
    return keys if copy.url is None else {**keys, "url": copy.url}


def _bytes(keys: dict[str, Any]) -> bytes:
    return json.dumps(keys, ensure_ascii=False, separators=(",", ":")).encode()


FULL_CONTENT_BYTES = 250_000
"""The size of a document up to which items are in it with their content."""
MOST_BYTES = 1_000_000
"""The size of a document up to which there are items in it at all."""
NEVER = datetime(2000, 1, 1, tzinfo=UTC)
"""The date of a topic without items: Atom requires one, and the present would be another one each time."""
_SHORTENED: Mapping[TopicContent, tuple[TopicContent, ...]] = {
    "full": ("full", "summary", "none"),
    "summary": ("summary", "none"),
    "none": ("none",),
}
"""The forms of an item that are tried until one has room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """The bytes of both documents, which show the same entries."""

    atom: bytes
    json: bytes
    entries: int
    feeds: int
    """Feeds that the entries come from."""


def build(
    topic: TopicSpec,
    candidates: Iterable[Candidate],
    *,
    installation: UUID,
    image: PublicImage = lambda *_: None,
    html: PublishedHtml = published_html,
    urls: PublicUrls | None = None,
    expired: bool = False,
) -> Documents:
    """The documents of a topic. `candidates` are as `choose` needs them, in any order; `html` cleans HTML."""
    return build_chosen(
        topic,
        choose(topic, candidates),
        installation=installation,
        image=image,
        html=html,
        urls=urls,
        expired=expired,
    )


def build_chosen(
    topic: TopicSpec,
    chosen: Iterable[TopicItem],
    *,
    installation: UUID,
    image: PublicImage,
    html: PublishedHtml,
    urls: PublicUrls | None,
    expired: bool,
) -> Documents:
    """The same of items that `choose` has chosen."""
    head = feed_head(topic, installation=installation, urls=urls, expired=expired)
    atom_size = len(atom_document(head, NEVER, ()))
    json_size = len(json_document(head, ()))
    entries: list[DocumentEntry] = []
    written: list[bytes] = []
    items: list[bytes] = []
    for each in chosen:
        for content in _SHORTENED[topic.content]:
            limit = FULL_CONTENT_BYTES if content == "full" else MOST_BYTES
            if max(atom_size, json_size) >= limit:
                continue
            entry = entry_of(topic, each, content=content, image=image, html=html)
            element, item = atom_entry(entry), json_item(entry)
            sizes = atom_size + len(element), json_size + len(item) + len(",\n")
            if max(sizes) <= limit:
                entries.append(entry)
                written.append(element)
                items.append(item)
                atom_size, json_size = sizes
                break
    newest = _newest(entries)
    updated = max(newest.values(), default=NEVER)
    dated = [
        with_source_date(element, newest[entry.source.id])
        for element, entry in zip(written, entries, strict=True)
    ]
    return Documents(
        atom=atom_document(head, updated, dated),
        json=json_document(head, items),
        entries=len(entries),
        feeds=len(newest),
    )


def _newest(entries: Sequence[DocumentEntry]) -> dict[str, datetime]:
    """The date of the newest entry of each source."""
    newest: dict[str, datetime] = {}
    for entry in entries:
        newest[entry.source.id] = max(newest.get(entry.source.id, entry.updated), entry.updated)
    return newest
