"""The message for a web page that came instead of a feed, with the feeds that the page names.

`document.py` decides whether a document is a feed.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rss_pipeline.collector.parse.links import absolute, web_base

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_LOOKED_AT = 500_000
_MOST_NAMED = 5
_LONGEST = 500
# One comment, which may have others in it: of several in a row, each division would be tried.
_START = re.compile(
    r"\A\s*+(?:<!--.*?-->\s*+)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")
_WIDER_TYPES = ("application/xml", "text/xml", "application/json")
"""Types of feeds by old templates, and of much else."""
_ENTRY_TYPE = re.compile(r";\s*+type\s*+=\s*+[\"']?entry\b", re.IGNORECASE)
"""The parameter of an Atom entry that is a document of its own (RFC 5023, 12.1): no feed."""
_FEED_NAME = re.compile("feed|(?<![a-z])(?:rss|atom|rdf)", re.IGNORECASE)
_FEED_SCHEME = re.compile(r"\Afeed:(?://)?(?:(https?):)?(?://)?", re.IGNORECASE)
"""As in feed://host/ and feed:https://host/."""
_OF_A_PART = re.compile(
    "comment|kommenta|komentar|komentá|komentā|commento|commenti|comentari|comentário|komento|коммента|комента"
    "|σχόλι|yorum|reacties|opmerking|ohlasy|hozzászól|athugasemd|iruzkin|bình luận|répons|respuesta|resposta"
    "|replies|responses|discussion|trackback|תגוב|تعليق|دیدگاه|ความคิดเห็น|टिप्पणि|评论|評論|留言|迴響|コメント|댓글"
    "|(?<![a-z])(?:category|tag|author|search)/",
    re.IGNORECASE,
)
"""Words in the title or the address of a feed with what readers of a page wrote, or a part of the site."""


def is_web_page(text: str, content_type: str | None) -> bool:
    """True if a document that is no feed is HTML, by its beginning or by its Content-Type."""
    return _START.match(text) is not None or "html" in (content_type or "").split(";")[0].lower()


def web_page_sentence(text: str, url: str | None) -> str:
    """A message with the page's title and the feeds that it names."""
    page = _head(text)
    title = page.find("title")
    named = " ".join(title.get_text().split())[:80] if title else ""
    start = f'The server sent a web page ("{named}")' if named else "The server sent a web page"
    feeds = feed_links(page, url)
    if feeds:
        return f"{start}, not a feed. The page names these feeds; register one of them: {', '.join(feeds)}"
    return f"{start}, not a feed, and the page names no feed. Open its address in a browser to see why."


def named_feeds(text: str, url: str | None) -> list[str]:
    """The absolute URLs of the feeds that a web page names, as `feed_links`."""
    return feed_links(_head(text), url)


def _head(text: str) -> "BeautifulSoup":
    # Imported by the first web page: each parser process holds what is imported, and most see none.
    from bs4 import BeautifulSoup, SoupStrainer

    with warnings.catch_warnings():
        # The text may be XML that its server calls HTML, or resemble a file's name.
        warnings.simplefilter("ignore", UserWarning)
        return BeautifulSoup(text[:_LOOKED_AT], "lxml", parse_only=SoupStrainer(["title", "base", "link"]))


def feed_links(page: "BeautifulSoup", url: str | None) -> list[str]:
    """The absolute URLs of the feeds in a page's `<link rel="alternate">`, as `of_alternates`."""
    base = next((_value(tag, "href") for tag in page.find_all("base") if _value(tag, "href")), None)
    links = [
        {name: _value(tag, name) for name in ("rel", "type", "href", "title")}
        for tag in page.find_all("link")
    ]
    return of_alternates(links, (absolute(base, (url,)), url), url)


def of_alternates(
    links: Iterable[Mapping[str, str]], bases: Sequence[str | None], url: str | None
) -> list[str]:
    """The absolute URLs of the feeds among `<link>` elements, by their attributes, at most five: those of the
    site first, in the order of the page, and RSS and Atom before other types; then those of comments, of
    which the site's own name may speak, too.

    Without userinfo: the message is stored and logged.
    """
    found: dict[str, tuple[int, bool]] = {}
    for link in links:
        kind = link["type"].split(";")[0].strip().lower()
        if _ENTRY_TYPE.search(link["type"]):
            continue
        named = f"{link['title']} {link['href']}"
        is_wide = kind in _WIDER_TYPES and _FEED_NAME.search(named) is not None
        if "alternate" not in link["rel"].lower().split() or not (kind in _FEED_TYPES or is_wide):
            continue
        target = web_base(absolute(_FEED_SCHEME.sub(_in_web, link["href"]), bases))
        # The requested URL itself does not help; no one copies a URL of a kilobyte.
        if target and target != url and len(target) <= _LONGEST:
            words = len(_OF_A_PART.findall(f"{link['title']} {target.removeprefix(url or '')}"))
            found.setdefault(target, (words, kind not in _FEED_TYPES[:2]))
    return sorted(found, key=lambda url: found[url])[:_MOST_NAMED]


def _in_web(scheme: re.Match[str]) -> str:
    return f"{scheme[1] or 'https'}://"


def _value(tag: "Tag", name: str) -> str:
    value = tag.get(name)
    return (value if isinstance(value, str) else " ".join(value or ())).strip()
