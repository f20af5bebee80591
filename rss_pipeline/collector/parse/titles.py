"""Titles as plain text: one rule for each way in which a publisher may have escaped them.

- Atom, `type="html"` or `"xhtml"`: tags go, entities become their characters.
- Atom, any other type: as it is. Base64 (Atom 0.3) is decoded first.
- RSS: as it is, but one with an entity left in it (`&#8217;`, `&amp;`, `&eacute;`) was escaped twice: the
  entities become their characters, tags stay.

Identities are made of titles as published (`document.py`).
"""

import html
import re
from xml.etree.ElementTree import Element

from lxml import etree

from rss_pipeline.collector.parse.atom_text import HTML_TYPES, base64_text
from rss_pipeline.collector.parse.characters.c1_characters import trimmed_around
from rss_pipeline.collector.parse.xml.tree import attribute, inner_html, text_of

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LONGEST_MARKUP = 100_000


def rss_title(text: str | None) -> str | None:
    """The plain text of an RSS title that was read from XML."""
    if text is None or not _ENTITY.search(text):
        return text
    return trimmed_around(html.unescape(text)) or None


def atom_title(element: Element) -> str | None:
    """The plain text of an Atom text construct."""
    kind = (attribute(element, "type") or "text").split(";")[0].strip().lower()
    if (attribute(element, "mode") or "").strip().lower() == "base64":
        text = base64_text(text_of(element))
    elif len(element):
        return html_title(inner_html(element))
    else:
        text = text_of(element)
    if kind in HTML_TYPES:
        return html_title(text)
    return (trimmed_around(text) or None) if text is not None else None


def html_title(markup: str | None) -> str | None:
    """The text of a piece of HTML, without tags, in one line."""
    if markup is None:
        return None
    if "<" not in markup:
        return rss_title(trimmed_around(_SPACES.sub(" ", markup)) or None)
    root = etree.fromstring(
        f"<p>{markup[:_LONGEST_MARKUP]}".encode("utf-8", "replace"),
        etree.HTMLParser(encoding="utf-8", no_network=True),
    )
    if root is None:
        return None
    etree.strip_elements(root, "script", "style", with_tail=False)
    return trimmed_around(_SPACES.sub(" ", str(root.xpath("string()")))) or None
