"""Access to the child elements of a feed's XML: by short name, with their texts and the bases of their links.

The meaning of the elements is in `rss_atom.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.image_references import (
    LAZY_SRC,
    LAZY_SRCSET,
    by_document_order,
    may_be_reference,
)
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


# Each xml:base within an item's markup, put into the references below it.
#
# HTML has no xml:base: what shows or searches an item's HTML knows one base for all of it.

_REFERENCES = frozenset(("href", "src", "poster", "data", "cite", "action", "longdesc", "background"))
_LAZY = frozenset(LAZY_SRC)
_SETS = frozenset(("srcset", *LAZY_SRCSET))


def put_bases(element: Element, *, inside: LinkBases, known: LinkBases) -> None:
    """Make the references within an element absolute where a base other than `known` is in force.

    `inside` are the bases in force for its children, `known` those by which the item's HTML is read. A
    reference that cannot be resolved stays as it is.
    """
    if inside.base == known.base and not any(XML_BASE in each.attrib for each in element.iter()):
        return
    waiting = [(child, inside) for child in element]
    while waiting:
        each, around = waiting.pop()
        place = around.within(each)
        each.attrib.pop(XML_BASE, None)
        if place.base != known.base:
            _resolve(each, place)
        waiting += [(child, place) for child in each]


def _resolve(element: Element, place: LinkBases) -> None:
    for name, value in element.items():
        if value.strip().startswith("#"):
            continue
        if name in _REFERENCES or (name in _LAZY and may_be_reference(value)):
            element.set(name, place.resolve(value) or value)
        elif name in _SETS:
            candidates = by_document_order(value)
            element.set(
                name, ", ".join(f"{place.resolve(url) or url} {size}".strip() for url, size in candidates)
            )
