"""A topic as JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/)."""

import json
from collections.abc import Sequence
from typing import Any

from rss_pipeline.collector.models.clock import rfc3339
from rss_pipeline.features.topics.entry import Copy, Entry
from rss_pipeline.features.topics.feed_head import FeedHead

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


def json_item(entry: Entry) -> bytes:
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
