"""A web page where a feed was expected: what to tell the person who registered it.

Only the sentence is made here; whether a document is a feed is decided in `collector.parse`.
"""

import html
import re
from collections.abc import Mapping

from rss_pipeline.collector.links import absolute

_LOOKED_AT = 500_000
_MOST_NAMED = 5
_START = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(r"<(link|base)\b([^>]{1,2000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([A-Za-z-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_TITLE = re.compile(r"<title\b[^>]*>([^<]{1,500})", re.IGNORECASE)
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")


def is_web_page(text: str, content_type: str | None) -> bool:
    """Whether a document that is no feed is HTML, by its beginning or by what the server calls it."""
    return _START.match(text) is not None or "html" in (content_type or "").split(";")[0].lower()


def web_page_sentence(text: str, url: str | None) -> str:
    """What came instead of a feed, and which feeds the page names."""
    page = text[:_LOOKED_AT]
    title = _TITLE.search(page)
    named = " ".join(html.unescape(title[1]).split())[:80] if title else ""
    start = f'The server sent a web page ("{named}")' if named else "The server sent a web page"
    feeds = feed_links(page, url)
    if feeds:
        return f"{start}, not a feed. The page names these feeds, register one of them: {', '.join(feeds)}"
    return f"{start}, not a feed, and the page names no feed. Open its address in a browser to see why."


def feed_links(page: str, url: str | None) -> list[str]:
    """The absolute URLs of the feeds a page offers by `<link rel="alternate">`, at most five."""
    base: str | None = None
    found: dict[str, None] = {}
    for name, inside in _LINK.findall(page):
        attributes = _attributes(inside)
        if name.lower() == "base":
            base = base or absolute(attributes.get("href"), (url,))
        elif (
            "alternate" in attributes.get("rel", "").lower().split()
            and attributes.get("type", "").split(";")[0].strip().lower() in _FEED_TYPES
            and (target := absolute(attributes.get("href"), (base, url)))
        ):
            found.setdefault(target)
    return list(found)[:_MOST_NAMED]


def _attributes(inside: str) -> Mapping[str, str]:
    return {
        name.lower(): html.unescape(double or single or bare).strip()
        for name, double, single, bare in _ATTRIBUTE.findall(inside)
    }
