"""Further texts and images of an item: Media RSS, iTunes, Dublin Core and XHTML elements.

They are used where the format's own elements (`rss_atom.py`) say nothing: every item of YouTube has its text
in media:description and its image in media:thumbnail.
"""

import html
import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.raw_feed import trimmed
from rss_pipeline.collector.parse.xml_fields import Fields, Vocabulary
from rss_pipeline.collector.parse.xml_tree import inner_html, text_of

IMAGE = "image/*"
"""The type of an image whose publisher named none."""
IMAGE_TAG = re.compile(r"<(?:img|picture|amp-img)\b", re.IGNORECASE)
FURTHER_TEXTS = ("media:description", "itunes:summary", "dc:description", "xhtml:body")
PLAIN_TEXTS = frozenset({"media:description", "itunes:summary"})
"""Those of FURTHER_TEXTS that are plain text by their specifications."""
_LOOKS_LIKE_HTML = re.compile(r"</[a-z]|<(?:br|p|img|hr)\b|&(?:#[0-9]+|#x[0-9a-f]+|[a-z]+);", re.IGNORECASE)


def markup(element: Element) -> str:
    """The HTML of an RSS element: its character data, or markup that was not escaped."""
    return element.text or "" if len(element) == 0 else inner_html(element)


def further_text(fields: Fields, vocabulary: Vocabulary) -> str | None:
    """The HTML of the first text of media:description, itunes:summary, dc:description and xhtml:body."""
    groups = list(_with_groups(fields, vocabulary))
    for name in FURTHER_TEXTS:
        for place in groups:
            for element in place.get(name, ()):
                if text := _html_of(name, element).strip():
                    return text
    return None


def html_of_plain(text: str) -> str:
    """HTML for a text that should be plain, with its line breaks; one that has tags is taken as HTML."""
    if _LOOKS_LIKE_HTML.search(text):
        return text
    return "<br>\n".join(html.escape(line, quote=False) for line in text.strip().splitlines())


def media_contents(fields: Fields, vocabulary: Vocabulary) -> Iterator[Element]:
    """The media:content elements of an item and of its groups."""
    for place in _with_groups(fields, vocabulary):
        yield from place.get("media:content", ())


def thumbnail_references(fields: Fields, vocabulary: Vocabulary) -> list[str]:
    """References to an item's thumbnails, the widest first, then to its iTunes image."""
    places = list(_with_groups(fields, vocabulary))
    places += [vocabulary.fields(each) for each in media_contents(fields, vocabulary) if len(each)]
    thumbnails = [each for place in places for each in place.get("media:thumbnail", ())]
    thumbnails.sort(key=_width, reverse=True)
    named = [
        *(each.get("url") or text_of(each) for each in thumbnails),
        *(each.get("href") for each in fields.get("itunes:image", ())),
    ]
    return [reference for each in named if (reference := trimmed(each))]


def _html_of(name: str, element: Element) -> str:
    if name == "xhtml:body" or len(element):
        return inner_html(element)
    text = element.text or ""
    plain = name in PLAIN_TEXTS and (element.get("type") or "plain").strip().lower() != "html"
    return html_of_plain(text) if plain else text


def _with_groups(fields: Fields, vocabulary: Vocabulary) -> Iterator[Fields]:
    yield fields
    for group in fields.get("media:group", ()):
        yield vocabulary.fields(group)


def _width(element: Element) -> int:
    return pixels(element.get("width"))


def pixels(text: str | None) -> int:
    """The number in a width attribute; 0 for none."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else 0
