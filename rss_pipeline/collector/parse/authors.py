"""The authors of an item: all that its document names, in the order of preference of each format.

Names stay as published, also in a text such as `mail (Name)` (collector.models.author).
"""

import re
from collections.abc import Iterable
from itertools import chain
from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.raw_feed import distinct, trimmed
from rss_pipeline.collector.parse.xml.fields import Fields, Vocabulary, first_text, texts
from rss_pipeline.collector.parse.xml.tree import text_of

MAX_AUTHORS = 100
"""Authors kept of an item: a paper on an experiment of physics names thousands."""
RSS_AUTHORS = ("dc:creator", "author", "itunes:author", "atom:author", "dc:author")
"""The elements that name authors of an RSS item, the preferred first."""
ATOM_AUTHORS = ("author", "dc:creator", "itunes:author")
"""The elements that name authors of an Atom entry, the preferred first."""
_TEXTS = frozenset({"dc:creator", "author", "itunes:author"})
"""The elements that may be a text with markup inside."""
_WHITE_SPACE = re.compile("[ \t\r\n]+")


def author_names(published: Iterable[str | None]) -> tuple[str, ...]:
    """The names that are not blank, each once, in order, at most MAX_AUTHORS.

    White space is collapsed, for publishers break lines inside names; it is XML's (space, tab, line break).
    Others, such as U+3000 in a Japanese name, are part of the name.
    """
    return distinct(_WHITE_SPACE.sub(" ", text) for text in published if text)[:MAX_AUTHORS]


def rss_authors(fields: Fields, vocabulary: Vocabulary) -> tuple[str | None, tuple[str, ...]]:
    """The first author of an RSS item as published, and all of them."""
    published = [
        name
        for field in RSS_AUTHORS
        for each in fields.get(field, ())
        if (name := _person(each, vocabulary) or (trimmed(text_of(each)) if field in _TEXTS else None))
    ]
    return next(iter(published), None), author_names(published)


def atom_authors(
    fields: Fields, vocabulary: Vocabulary, inherited: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...]]:
    """The first author that an Atom entry itself names, as published, and all that it has.

    An entry that names none has those of the feed it was copied from, else those of the feed that lists it
    (RFC 4287, 4.2.1): these are `inherited`.
    """
    own = [*atom_persons(fields, vocabulary), *texts(fields, "dc:creator")]
    named = author_names([*own, *texts(fields, "itunes:author")])
    if not named:
        sources = (vocabulary.fields(each) for each in fields.get("source", ()))
        copied = chain.from_iterable(atom_persons(source, vocabulary) for source in sources)
        named = author_names(copied) or inherited
    return next(iter(own), None), named


def atom_persons(fields: Fields, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The names of the `author` elements of an Atom feed, entry or source."""
    return tuple(name for each in fields.get("author", ()) if (name := _person(each, vocabulary)))


def _person(element: Element, vocabulary: Vocabulary) -> str | None:
    """The name, or else the address, in a person construct; the text of an element without any inside."""
    if len(element) == 0:
        return trimmed(element.text)
    return first_text(vocabulary.fields(element), "name", "atom:name", "email", "atom:email")
