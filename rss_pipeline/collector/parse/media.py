"""Further texts and images of an item: Media RSS, iTunes, Dublin Core and XHTML elements.

They are used where the format's own elements (`rss_atom.py`) say nothing: every item of YouTube has its text
in media:description and its image in media:thumbnail.
"""

import html
import re
from collections.abc import Iterator
from itertools import islice
from xml.etree.ElementTree import Element

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.raw_feed import byte_count, distinct, trimmed
from rss_pipeline.collector.parse.xml.fields import Fields, LinkBases, Vocabulary, first_text
from rss_pipeline.collector.parse.xml.tree import inner_html, text_of

IMAGE = "image/*"
"""The type of an image for which the publisher named none."""
_IMAGE_TAG = re.compile(r"<(?:img|picture|amp-img)\b[^>]*", re.IGNORECASE)
_ONE_PIXEL = (
    re.compile(r"\bwidth\s*[=:]\s*[\"']?\s*[01]\s*(?:px)?(?![0-9.%])", re.IGNORECASE),
    re.compile(r"\bheight\s*[=:]\s*[\"']?\s*[01]\s*(?:px)?(?![0-9.%])", re.IGNORECASE),
)
FURTHER_TITLES = ("media:title", "itunes:title")
"""Titles of an item or feed without one; they are no part of an identity."""
FURTHER_TEXTS = ("media:description", "itunes:summary", "dc:description", "xhtml:body")
PLAIN_TEXTS = frozenset({"media:description", "itunes:summary"})
"""The elements of FURTHER_TEXTS that are plain text by their specifications."""
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


def further_categories(fields: Fields) -> tuple[str, ...]:
    """The Media RSS and iTunes categories and keywords of an item; keywords are between commas."""
    categories = [text_of(each) for each in fields.get("media:category", ())]
    categories += [each.get("text") or "" for each in fields.get("itunes:category", ())]
    for name in ("media:keywords", "itunes:keywords"):
        for element in fields.get(name, ()):
            categories += text_of(element).split(",")
    return distinct(categories)


def shows_image(content: str) -> bool:
    """True if HTML has an image other than a tracker of one pixel."""
    tags = (found[0] for found in _IMAGE_TAG.finditer(content))
    return any(not all(pixel.search(tag) for pixel in _ONE_PIXEL) for tag in tags)


def html_of_plain(text: str) -> str:
    """HTML for a text that should be plain, with its line breaks; one that has tags is taken as HTML."""
    if _LOOKS_LIKE_HTML.search(text):
        return text
    return "<br>\n".join(html.escape(line, quote=False) for line in text.strip().splitlines())


def enclosures(
    named: list[tuple[str | None, Element]], fields: Fields, vocabulary: Vocabulary, place: LinkBases
) -> tuple[Enclosure, ...]:
    """The `named` references, else those of media:content."""
    named = named or [(each.get("url"), each) for each in _media_contents(fields, vocabulary)]
    return tuple(
        Enclosure(
            url=url,
            type=trimmed(each.get("type")) or (IMAGE if each.get("medium") == "image" else None),
            length=byte_count(each.get("length") or each.get("fileSize")),
        )
        for reference, each in named
        if (url := place.resolve(reference))
    )


def thumbnails(
    fields: Fields, vocabulary: Vocabulary, place: LinkBases, content: str | None
) -> tuple[Enclosure, ...]:
    """The widest thumbnail, unless the content shows an image: that is mostly the same one, and larger."""
    if content and shows_image(content):
        return ()
    resolved = (place.resolve(reference) for reference in _thumbnail_references(fields, vocabulary))
    return tuple(Enclosure(url=url, type=IMAGE) for url in islice(filter(None, resolved), 1))


def _media_contents(fields: Fields, vocabulary: Vocabulary) -> Iterator[Element]:
    """The media:content elements of an item and of its groups."""
    for place in _with_groups(fields, vocabulary):
        yield from place.get("media:content", ())


def _thumbnail_references(fields: Fields, vocabulary: Vocabulary) -> list[str]:
    """References to an item's thumbnails, the widest first, then to its iTunes image and its RSS image."""
    places = list(_with_groups(fields, vocabulary))
    places += [vocabulary.fields(each) for each in _media_contents(fields, vocabulary) if len(each)]
    thumbnails = [each for place in places for each in place.get("media:thumbnail", ())]
    thumbnails.sort(key=_width, reverse=True)
    named = [
        *(each.get("url") or text_of(each) for each in thumbnails),
        *(each.get("href") for each in fields.get("itunes:image", ())),
        *(first_text(vocabulary.fields(each), "url") for each in fields.get("image", ())),
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
