"""A document as a tree of elements, with the element of each item, for streams that are selected by XPath.

Only a parser makes one, and only collector.streams reads it: it leaves no process and is never stored.
"""

from dataclasses import dataclass
from xml.etree.ElementTree import Element


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ItemTree:
    """The tree as the items were read from it, repaired."""

    root: Element
    own: str = ""
    """The namespace of the document's own vocabulary."""
    items: tuple[Element, ...]
    """The element of each item that was read, in the order of the items."""
    left_out: tuple[Element, ...] = ()
    """Elements that are no part of the document: items that were cut off."""
