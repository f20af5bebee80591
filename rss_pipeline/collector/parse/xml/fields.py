"""Access to the child elements of a feed's XML: by short name, with their texts and the bases of their links.

The meaning of the elements is in `rss_atom.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.links import absolute, web_base
from rss_pipeline.collector.parse.xml.namespaces import XML, short_name
from rss_pipeline.collector.parse.xml.tree import text_of

XML_BASE = f"{{{XML}}}base"

Fields = Mapping[str, list[Element]]
"""Child elements by short name, in document order."""


@dataclass(frozen=True, slots=True)
class LinkBases:
    """The bases of an element's links: the xml:base in force, then further ones."""

    base: str | None
    further: tuple[str | None, ...] = ()

    def within(self, element: Element) -> "LinkBases":
        own = element.get(XML_BASE)
        if own is None or (base := web_base(absolute(own, self.bases))) is None:
            # An empty one is that around it (RFC 3986, 5.2.2), and one that is no page is a mistake.
            return self
        return LinkBases(base, self.further)

    @property
    def bases(self) -> tuple[str | None, ...]:
        return (self.base, *self.further)

    def resolve(self, reference: str | None) -> str | None:
        return absolute(reference, self.bases)


@dataclass(slots=True)
class Vocabulary:
    """The short names of a document's tags, each looked up once."""

    own: str
    names: dict[str, str] = field(default_factory=dict)

    def name(self, element: Element) -> str:
        tag = element.tag
        if (name := self.names.get(tag)) is None:
            name = self.names[tag] = short_name(tag, self.own)
        return name

    def fields(self, element: Element) -> Fields:
        found: dict[str, list[Element]] = {}
        for child in element:
            found.setdefault(self.name(child), []).append(child)
        return found


def texts(fields: Fields, *names: str) -> tuple[str, ...]:
    return tuple(text for name in names for each in fields.get(name, ()) if (text := text_of(each).strip()))


def first_text(fields: Fields, *names: str) -> str | None:
    return next(iter(texts(fields, *names)), None)


def inner_texts(fields: Fields, outer: str, inner: str, vocabulary: Vocabulary) -> tuple[str, ...]:
    return tuple(text for each in fields.get(outer, ()) for text in texts(vocabulary.fields(each), inner))
