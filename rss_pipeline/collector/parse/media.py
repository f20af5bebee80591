"""Further texts and images of an item: Media RSS, iTunes, Dublin Core and XHTML elements.

They are used where the format's own elements (`rss_atom.py`) say nothing: every item of YouTube has its text
in media:description and its image in media:thumbnail.
"""

import html
import re
from collections.abc import Iterator
from functools import partial
from xml.etree.ElementTree import Element

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.atom_text import atom_html, inner_place
from rss_pipeline.collector.parse.links import is_web
from rss_pipeline.collector.parse.pictures import (
    IMAGE,
    has_picture_name,
    picture_type,
    pictures_beside,
    width_of,
)
from rss_pipeline.collector.parse.raw_feed import (
    EscapedText,
    byte_count,
    distinct,
    trimmed,
    with_line_breaks,
)
from rss_pipeline.collector.parse.xml.fields import Fields, LinkBases, Vocabulary, first_text, put_bases
from rss_pipeline.collector.parse.xml.tree import attribute, inner_html, text_of

_IMAGE_ATTRIBUTES = ("href", "url", "src", "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource")
FURTHER_TITLES = ("media:title", "itunes:title")
"""Titles of an item or feed without one; they are no part of an identity."""
FURTHER_TEXTS = ("media:description", "itunes:summary", "dc:description", "xhtml:body")
"""Elements that are an item's text where it has no other; the first counts."""
TEXTS_OF_ATOM = ("atom:content", "atom:summary", "content")
"""Texts of an RSS item without any other, written as in Atom."""
_HOLDERS = ("media:group", "media:content", "link", "atom:link")
"""Elements with Media RSS within: some publishers have it in an Atom link."""
PLAIN_TEXTS = frozenset({"media:description", "itunes:summary"})
"""The elements of FURTHER_TEXTS that are plain text by their specifications."""
_LOOKS_LIKE_HTML = re.compile(r"</[a-z]|<(?:br|p|img|hr)\b|&(?:#[0-9]+|#x[0-9a-f]+|[a-z]+);", re.IGNORECASE)


def markup(element: Element, place: LinkBases) -> str:
    """The HTML of an RSS element: its character data, or markup that was not escaped. `place` are the bases
    in force within it."""
    if len(element) == 0:
        return element.text or ""
    put_bases(element, inside=place, known=place)
    return inner_html(element)


def further_text(
    fields: Fields, vocabulary: Vocabulary, place: LinkBases, *, atom: bool = False
) -> str | None:
    """The HTML of the first text of FURTHER_TEXTS; then of Atom's elements, unless the item is of Atom.

    `place` are the bases of the item's HTML; other ones are put into the references."""
    places = _places(fields, vocabulary)
    for name in FURTHER_TEXTS:
        for each in places:
            for element in each.get(name, ()):
                if text := _html_of(name, element, place).strip():
                    return text
    for element in () if atom else (each for name in TEXTS_OF_ATOM for each in fields.get(name, ())):
        is_construct = attribute(element, "type") is not None
        inside = inner_place(element, place) if is_construct else place.within(element)
        html = atom_html(element, inside) if is_construct else markup(element, inside)
        if text := (with_line_breaks(html) or "").strip():
            return text
    return None


def further_title(fields: Fields, vocabulary: Vocabulary) -> str | None:
    """The first title of Media RSS and iTunes of an item or feed without one."""
    places = _places(fields, vocabulary)
    titles = (first_text(place, name) for name in FURTHER_TITLES for place in places)
    return next(filter(None, titles), None)


def further_categories(fields: Fields, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The Media RSS and iTunes categories and keywords of an item; keywords are between commas."""
    places = _places(fields, vocabulary)
    categories = [text_of(each) for place in places for each in place.get("media:category", ())]
    categories += [attribute(each, "text") or "" for each in fields.get("itunes:category", ())]
    for name in ("media:keywords", "itunes:keywords"):
        for element in (each for place in places for each in place.get(name, ())):
            categories += text_of(element).split(",")
    return distinct(categories)


def html_of_plain(text: str) -> str:
    """HTML for a text that should be plain, with its line breaks; one that has tags is taken as HTML."""
    if _LOOKS_LIKE_HTML.search(text):
        return text
    return with_line_breaks(EscapedText(html.escape(text.strip(), quote=False))) or ""


def enclosures_and_pictures(
    named: list[tuple[str | None, Element]],
    fields: Fields,
    vocabulary: Vocabulary,
    place: LinkBases,
    content: str | None,
) -> tuple[tuple[Enclosure, ...], tuple[Enclosure, ...]]:
    """The `named` enclosures, else those of media:content; and the pictures beside (`pictures_beside`)."""
    places = _places(fields, vocabulary)
    contents = [each for found in places for each in found.get("media:content", ())]
    files = tuple(
        Enclosure(
            url=url,
            type=trimmed(attribute(each, "type"))
            or (IMAGE if attribute(each, "medium") == "image" else None),
            length=_length(each),
        )
        for reference, each in named
        if (url := place.within(each).resolve(reference))
    )
    media = [
        (
            width_of(partial(attribute, each)),
            Enclosure(url=url, type=picture_type(partial(attribute, each)), length=_length(each)),
        )
        for each in contents
        if (url := place.within(each).resolve(attribute(each, "url")))
    ]
    images = (
        place.within(each).resolve(reference) for reference, each in _images(places, fields, vocabulary)
    )
    return files or tuple(each for _, each in media), pictures_beside(content, files, media, images)


def further_files(fields: Fields, vocabulary: Vocabulary, place: LinkBases) -> tuple[Enclosure, ...]:
    """The files of an item without enclosures: those of podcast:alternateEnclosure, the default first, and of
    the BBC's ppg:enclosureSecure.

    Of the sources of one file, which are copies, it is the first that is on the web.
    """
    found = []
    alternates = sorted(
        fields.get("podcast:alternateEnclosure", ()), key=lambda each: attribute(each, "default") != "true"
    )
    for each in alternates:
        sources = vocabulary.fields(each).get("podcast:source", [])
        urls = [url for source in sources if (url := place.within(source).resolve(attribute(source, "uri")))]
        if urls:
            found.append((next(filter(is_web, urls), urls[0]), each))
    for each in fields.get("ppg:enclosureSecure", ()):
        if url := place.within(each).resolve(attribute(each, "url")):
            found.append((url, each))
    return tuple(
        Enclosure(url=url, type=trimmed(attribute(each, "type")), length=_length(each)) for url, each in found
    )


def _length(element: Element) -> int | None:
    return byte_count(attribute(element, "length") or attribute(element, "fileSize"))


def _images(
    places: list[Fields], fields: Fields, vocabulary: Vocabulary
) -> Iterator[tuple[str | None, Element]]:
    """References to an item's thumbnails, the widest first, then to its iTunes image and its RSS image."""
    thumbnails = [each for place in places for each in place.get("media:thumbnail", ())]
    thumbnails.sort(key=lambda each: width_of(partial(attribute, each)), reverse=True)
    for each in thumbnails:
        yield attribute(each, "url") or text_of(each), each
    for each in fields.get("itunes:image", ()):
        yield attribute(each, "href") or attribute(each, "url") or text_of(each), each
    for each in fields.get("image", ()):
        named = [
            first_text(vocabulary.fields(each), "url"),
            *(attribute(each, name) for name in _IMAGE_ATTRIBUTES),
        ]
        text = (each.text or "").strip()
        # It may be a caption as well.
        if text and " " not in text and (is_web(text) or has_picture_name(text)):
            named.append(text)
        yield next(filter(None, named), None), each


def _html_of(name: str, element: Element, place: LinkBases) -> str:
    if name == "xhtml:body" or len(element):
        put_bases(element, inside=place.within(element), known=place)
        return inner_html(element)
    text = element.text or ""
    plain = name in PLAIN_TEXTS and (attribute(element, "type") or "plain").strip().lower() != "html"
    return html_of_plain(text) if plain else text


def _places(fields: Fields, vocabulary: Vocabulary) -> list[Fields]:
    """The elements of an item, then those of its groups, media:content and links, and of what is in these:
    the outer ones come first."""
    places = [fields]
    for place in places:
        places += [vocabulary.fields(each) for name in _HOLDERS for each in place.get(name, ()) if len(each)]
    return places
