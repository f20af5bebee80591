"""Each parser's reading of a document, in the same fields: ours and feedparser here, three in Node."""

import io
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import feedparser
import webencodings

from rss_pipeline.collector.images.find import item_images
from rss_pipeline.collector.models.item import Item, ParsedFeed
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.errors import NotAFeed

FEED_FIELDS = ("title", "link", "language")
ITEM_FIELDS = ("guid", "link", "title", "author", "date", "content", "enclosures", "categories", "images")
URL = "http://feed.example/dir/feed.xml"
_NODE = Path(__file__).with_name("read.mjs")

Fields = Mapping[str, Any]
"""A feed (with "items") or an item, by the names above."""


def ours(body: bytes) -> Fields | None:
    """The fields of a document that is a feed."""
    try:
        parsed = parse_feed(body, url=URL)
    except NotAFeed:
        return None
    return {
        **{name: getattr(parsed.header, name) for name in FEED_FIELDS},
        "items": [_of_item(item, parsed) for item in parsed.items],
        "listed": len(parsed.items) + len(parsed.duplicate_guids) + parsed.dropped_items,
    }


def _of_item(item: Item, parsed: ParsedFeed) -> Fields:
    return {
        "guid": item.guid if item.guid_source == "guid" else None,
        "link": item.link,
        "title": item.title,
        "author": item.author,
        "date": item.pub_date,
        "content": [item.content_html, item.summary],
        "enclosures": [each.url for each in item.enclosures],
        "categories": item.categories,
        "images": [
            *item_images(item, feed_link=parsed.header.link, feed_url=URL),
            *(e.url for e in item.enclosures),
        ],
    }


def read_by_peers(paths: Sequence[Path]) -> Iterator[dict[str, Fields]]:
    """What each peer read of each document; a peer that failed is not there."""
    lines = "".join(
        json.dumps({"name": str(number), "text": decoded(path.read_bytes())}) + "\n"
        for number, path in enumerate(paths)
    )
    done = subprocess.run(
        ["node", _NODE],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TZ": "UTC"},
    )
    answers: dict[str, dict[str, Fields]] = {}
    for line in done.stdout.rstrip("\n").split("\n"):
        answer = json.loads(line)
        if answer["feed"] is not None:
            answers.setdefault(answer["name"], {})[answer["parser"]] = answer["feed"]
    for number, path in enumerate(paths):
        read = answers.get(str(number), {})
        if (feed := by_feedparser(path.read_bytes())) is not None:
            read["feedparser"] = feed
        yield read


def decoded(body: bytes) -> str:
    """The text of a document by its byte order mark or declaration, as the web reads it; else UTF-8."""
    declared = re.search(rb"<\?xml[^>]*encoding=[\"']([\w.:-]+)", body[:1000])
    name = declared[1].decode("ascii") if declared else "utf-8"
    return webencodings.decode(body, webencodings.lookup(name) or webencodings.UTF8)[0].lstrip("\ufeff")


def by_feedparser(body: bytes) -> Fields | None:
    try:
        read: Any = feedparser.parse(io.BytesIO(body), sanitize_html=False, resolve_relative_uris=False)
    except Exception:  # noqa: BLE001 - this is what it did of the document
        return None
    if not read.version:
        return None
    return {
        "title": read.feed.get("title"),
        "link": read.feed.get("link"),
        "language": read.feed.get("language"),
        "items": [
            {
                "guid": entry.get("id"),
                "link": entry.get("link"),
                "title": entry.get("title"),
                "author": entry.get("author"),
                "date": _seconds(entry.get("published_parsed") or entry.get("updated_parsed")),
                "content": next(
                    (each.get("value") for each in entry.get("content", ())), entry.get("summary")
                ),
                "enclosures": [each.get("href") for each in entry.get("enclosures", ())],
                "categories": [each.get("term") for each in entry.get("tags", ())],
                "images": [each.get("url") for each in entry.get("media_thumbnail", ())],
            }
            for entry in read.entries
        ],
    }


def _seconds(moment: time.struct_time | None) -> str | None:
    return None if moment is None else datetime(*moment[:6], tzinfo=UTC).isoformat()
