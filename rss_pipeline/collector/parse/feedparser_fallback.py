"""feedparser as the last resort: documents with a root that `rss_atom.py` does not know, such as CDF.

Its values are taken as far as they are safe to take: no identity is resolved, and no HTML is changed.
"""

import io
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.atom_text import html_title, rss_title
from rss_pipeline.collector.parse.authors import author_names
from rss_pipeline.collector.parse.links import ALTERNATE, absolute, comments_url, is_web, web_base
from rss_pipeline.collector.parse.raw_feed import (
    RawFeed,
    RawItem,
    byte_count,
    content_and_summary,
    distinct,
    newest_items,
    trimmed,
)

# Not on one line with the document: feedparser would look for the end of it in time by the cube of that line.
_DECLARATION = '<?xml version="1.0" encoding="utf-8"\n?>'
_BASE = re.compile(r"\sxml:base\s*=\s*(?:\"[^\"<]*\"|'[^'<]*')")
_CDF = re.compile(r"\A<channel\s[^>]*\bhref\s*=", re.IGNORECASE)
_FIRST_TAG = re.compile(r"<\w", re.ASCII)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Values:
    """A feedparser dict, read by its own keys: its `get` returns other keys' values for missing ones."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def raw(self, key: str) -> str | None:
        value = dict.get(self._values, key) if isinstance(self._values, dict) else None
        if not isinstance(value, str):
            return None
        return _UNSTORABLE.sub(lambda found: "" if found[0] == "\x00" else "\ufffd", value)

    def text(self, key: str) -> str | None:
        return trimmed(self.raw(key))

    def denies(self, key: str) -> bool:
        """Return True if a flag is there and is not set."""
        return isinstance(self._values, dict) and not dict.get(self._values, key, True)

    def each(self, key: str) -> "list[Values]":
        values = dict.get(self._values, key) if isinstance(self._values, dict) else None
        if isinstance(values, dict):
            values = [values]
        return [Values(each) for each in values or () if isinstance(each, dict)]


def read_with_feedparser(text: str, url: str | None, *, now: datetime) -> RawFeed | None:
    """The feed that feedparser finds in a text that begins with its root; None if it finds none."""
    # Imported by the first such document: each parser process holds what is imported, and most see none.
    import feedparser

    # Before the first element is none. feedparser looks for a document type there, from each line on; and it
    # would resolve ids against bases.
    first = _FIRST_TAG.search(text)
    text = _BASE.sub("", text[first.start() :] if first else text)
    try:
        # Bytes in a stream: a str might be opened as a file or URL. Lower-case names: others are ignored
        # and change the charset to iso-8859-1. No content-location: ids would be resolved against it.
        parsed: Any = feedparser.parse(
            io.BytesIO((_DECLARATION + text).encode("utf-8", "replace")),
            response_headers={"content-type": "application/xml; charset=utf-8"},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a foreign parser on hostile input can raise anything
        return None
    if not parsed.entries and not parsed.version:
        return None
    feed = Values(parsed.feed)
    link = absolute(feed.text("link"), (url,))
    entries = [Values(entry) for entry in parsed.entries]
    chosen = newest_items(entries, _dates, now=now)
    return RawFeed(
        # feedparser reads Microsoft's CDF but gives it no name.
        format=parsed.version or ("cdf" if _CDF.match(text) else "unknown"),
        title=_plain_title(feed) or feed.text("title"),
        link=link,
        description=next(
            filter(None, (html_title(feed.text(name)) for name in ("subtitle", "summary"))), None
        ),
        language=feed.text("language"),
        items=tuple(_item(entry, (link, web_base(url))) for entry in chosen),
        dropped_items=len(entries) - len(chosen),
    )


def _item(entry: Values, bases: Sequence[str | None]) -> RawItem:
    guid = entry.text("id")
    links = entry.each("links")
    # Not its `link`, which may be the guid.
    alternates = (each.text("href") for each in links if ALTERNATE.fullmatch(each.raw("rel") or ""))
    link = next(filter(None, alternates), None)
    if link is None and guid is not None and is_web(guid) and not entry.denies("guidislink"):
        link = guid
    content, summary = content_and_summary(
        [each.raw("value") for each in entry.each("content")], entry.raw("summary")
    )
    page = absolute(link, bases)
    bases = (page, *bases)
    authors = [name for each in entry.each("authors") if (name := each.text("name"))]
    return RawItem(
        guid=guid,
        link=link,
        url=page,
        title=entry.text("title"),
        plain_title=_plain_title(entry),
        author=next(iter(authors), None),
        authors=author_names(authors),
        dates=_dates(entry),
        categories=distinct([each.raw("term") for each in entry.each("tags")]),
        enclosures=tuple(
            Enclosure(url=target, type=each.text("type"), length=byte_count(each.raw("length")))
            for each in links
            if each.raw("rel") == "enclosure" and (target := absolute(each.raw("href"), bases))
        ),
        summary=summary,
        content_html=content,
        comments_url=comments_url([entry.text("comments")], bases, page=page),
    )


def _dates(entry: Values) -> tuple[str, ...]:
    return distinct([entry.raw("published"), entry.raw("created"), entry.raw("updated")])


def _plain_title(values: Values) -> str | None:
    published = values.text("title")
    plain = None if published is None else rss_title(published)
    return None if plain == published else plain
