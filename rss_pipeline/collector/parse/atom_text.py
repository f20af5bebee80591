"""Atom's text constructs (RFC 4287, 3.1 and 4.1.3; Atom 0.3) as HTML; titles of all formats as plain text."""

import base64
import html
import re
from contextlib import suppress
from xml.etree.ElementTree import Element

from lxml import etree

from rss_pipeline.collector.parse.characters.c1_characters import trimmed_around
from rss_pipeline.collector.parse.raw_feed import EscapedText
from rss_pipeline.collector.parse.xml.fields import LinkBases, put_bases
from rss_pipeline.collector.parse.xml.tree import attribute, inner_html, text_of, unwrapped

HTML_TYPES = (
    *("html", "text/html", "xhtml", "application/xhtml+xml", "application/html", "text/xhtml"),
    *("image/svg+xml", "application/mathml+xml"),
)
_BYTES = "application/octet-stream"
"""Some publishers' type for HTML in base64."""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_OF_URLS = str.maketrans("-_", "+/")
_NO_BASE64 = re.compile("[^A-Za-z0-9+/]+")
_TAG = re.compile(r"</?[a-zA-Z]")


def base64_text(text: str) -> str | None:
    """The UTF-8 text that `text` is the base64 of; None if it is not. Its padding may be missing, and its
    alphabet may be that for URLs."""
    if ("-" in text or "_" in text) and "+" not in text and "/" not in text:
        text = text.translate(_OF_URLS)
    for written in (text, _padded(text)):
        # ValueError for characters above ASCII; its other exceptions are subclasses of it.
        with suppress(ValueError):
            return base64.b64decode(written, validate=False).decode("utf-8")
    return None


def _padded(text: str) -> str:
    letters = _NO_BASE64.sub("", text)
    return letters + "=" * (-len(letters) % 4)


def inner_place(element: Element, outer: LinkBases) -> LinkBases:
    """The bases in force inside a text construct: also those of the `<div>` around XHTML."""
    place = outer.within(element)
    wrapper = unwrapped(element)
    return place if wrapper is element else place.within(wrapper)


def atom_html(element: Element, place: LinkBases) -> str | None:
    """The content of a text construct as HTML; None if it is empty, at another URL or not text.

    type="html": the character data as it is. type="xhtml": the inside of the `<div>`, serialized.
    type="text", which is also the default: escaped, so that it is HTML. Markup that was not escaped is
    read as markup with every type. `place` are the bases in force for it (`inner_place`); those of elements
    within are put into their references.
    """
    kind = (attribute(element, "type") or "text").split(";")[0].strip().lower()
    if kind.startswith("multipart/") and (part := _best_part(element)) is not None:
        return atom_html(part, inner_place(part, place))
    if len(element):
        inner = unwrapped(element)
        put_bases(inner, inside=place, known=place)
        markup = inner_html(inner)
        return markup if markup.strip() else None
    text = text_of(element)
    if not text.strip():
        return None
    if (attribute(element, "mode") or "").strip().lower() == "base64" or kind == _BYTES:
        decoded = base64_text(text)
        if decoded is None or _CONTROLS.search(decoded):
            return None
        text = decoded
        if kind == _BYTES:
            return text if _TAG.search(text) else EscapedText(html.escape(text, quote=False))
    elif "/" in kind and not kind.startswith("text/") and not kind.endswith(("xml", "json", "html")):
        # A media type that is not text is in base64 (RFC 4287, 4.1.3.3): a picture or sound, not content.
        return None
    return text if kind in HTML_TYPES else EscapedText(html.escape(text, quote=False))


def _best_part(element: Element) -> Element | None:
    """The first alternative of an Atom 0.3 content that is HTML, else the first one."""
    parts = [each for each in element if each.tag.rpartition("}")[2] == "content"]
    is_html = [each for each in parts if (attribute(each, "type") or "").strip().lower() in HTML_TYPES]
    return next(iter((*is_html, *parts)), None)


# Titles as plain text: one rule for each way in which a publisher may have escaped them.
#
# - Atom, `type="html"` or `"xhtml"`: tags go, entities become their characters.
# - Atom, any other type: as it is. Base64 (Atom 0.3) is decoded first.
# - RSS: as it is, but one with an entity left in it (`&#8217;`, `&amp;`, `&eacute;`) was escaped twice: the
#   entities become their characters, tags stay.
#
# Identities are made of titles as published (`document.py`).

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
    """The text of a piece of HTML, without tags, in one line; an image is its `alt`, as emoji often are."""
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
    for each in root.iter("br", "div", "h1", "h2", "h3", "h4", "h5", "h6", "img", "p"):
        if each.tag == "img":
            each.text = each.get("alt")
        else:
            each.tail = f" {each.tail or ''}"
    return trimmed_around(_SPACES.sub(" ", str(root.xpath("string()")))) or None
