"""Each xml:base within an item's markup, put into the references below it.

HTML has no xml:base: what shows or searches an item's HTML knows one base for all of it. The bases of the
elements of a feed are fields.py's.
"""

from xml.etree.ElementTree import Element

from rss_pipeline.collector.parse.image_references import (
    LAZY_SRC,
    LAZY_SRCSET,
    by_document_order,
    may_be_reference,
)
from rss_pipeline.collector.parse.xml.fields import XML_BASE, LinkBases

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
