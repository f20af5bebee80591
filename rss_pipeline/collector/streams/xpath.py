"""The items of a document that an XPath expression selects.

Evaluated in this process and without any limit: forked.py has one. Expressions are checked when feeds.yaml is
read (check.py).
"""

from collections.abc import Iterable
from typing import Any

from lxml import etree

from rss_pipeline.collector.models.item_tree import ItemTree
from rss_pipeline.collector.streams.prefixes import ATOM, PREFIXES, RSS1, without_prefixes
from rss_pipeline.collector.streams.tree import lxml_tree

_NAMESPACES = dict(PREFIXES)


class XPathRefused(Exception):
    """An expression that selects nothing that could be an item. Its text continues "the XPath of ..."."""


class SelectableItems:
    """A document's items, for any number of expressions."""

    def __init__(self, tree: ItemTree) -> None:
        self._root, items = lxml_tree(tree)
        # lxml gives an element the same Python object for as long as one is referenced, here.
        self._places = {element: place for place, element in enumerate(items)}
        self._own_prefixes = (RSS1, ATOM) if self._root.tag == "feed" else (RSS1,)

    def select(self, expression: str) -> list[int]:
        """The places, ascending, of the items that are selected, or that have a selected node in them.

        Raises `XPathRefused`.
        """
        expression = without_prefixes(expression, self._own_prefixes)
        found = self._evaluated(expression)
        if not isinstance(found, list):
            is_number = "a number" if isinstance(found, float) else "a text"
            kind = "a truth value" if isinstance(found, bool) else is_number
            raise XPathRefused(f"gives {kind} and no elements; write a path such as //item[enclosure]")
        selected = self._around(found)
        if any(not isinstance(node, etree._Element) for node in found):
            # Texts and attributes are plain strings here, without a way back to their element.
            selected |= self._around(self._evaluated(f"({expression})/.."))
        return sorted(selected)

    def _evaluated(self, expression: str) -> Any:
        try:
            # Without EXSLT's regular expressions, which lxml registers by default: they know no limit.
            return etree.XPath(expression, namespaces=_NAMESPACES, regexp=False, smart_strings=False)(
                self._root
            )
        except etree.XPathError as error:
            # All that lxml says where libxml2 has no memory left.
            reason = "want of memory, probably" if str(error) == "unknown error" else str(error)
            raise XPathRefused(f"cannot be evaluated: {reason}") from None

    def _around(self, nodes: Iterable[object]) -> set[int]:
        found: set[int] = set()
        seen: set[etree._Element] = set()
        for node in nodes:
            while isinstance(node, etree._Element) and node not in seen:
                seen.add(node)
                if (place := self._places.get(node)) is not None:
                    found.add(place)
                    break
                node = node.getparent()
        return found
