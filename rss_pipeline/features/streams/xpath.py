"""The items of a document that an XPath expression selects.

Evaluated in this process and without any limit: forked.py has one. Expressions are checked when feeds.yaml is
read (check.py).
"""

import re
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element

from lxml import etree

from rss_pipeline.collector.models.item import ItemTree
from rss_pipeline.collector.parse.xml.namespaces import UNDECLARED, XHTML, short_name, without_spelling
from rss_pipeline.features.streams.prefixes import ATOM, PREFIXES, RSS1, without_prefixes

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


# The tree of a document for XPath: our repaired tree copied into lxml, with canonical names. Names of the
# document's own vocabulary have no namespace, all others the one of `prefixes.PREFIXES`, however the
# publisher spells it. The parsers make the tree that is copied (collector.parse).

_SHORT = 1_000
"""Characters of a text in which white space is collapsed: a line break inside a name would be part of it."""
_SPACES = " \t\r\n"
_UNEVEN = re.compile(r"[\t\r\n]|  |\A | \Z")
_SPACE = re.compile(r"[ \t\r\n]+")
_NO_URI = f"{UNDECLARED}no-uri"
_BY_SPELLING = {without_spelling(uri): uri for uri in PREFIXES.values()}
_IN_XHTML = f"{{{XHTML}}}"


class Names(dict[str, str]):
    """Tag or attribute name, as published, to its canonical name; each is looked up once."""

    def __init__(self, own: str) -> None:
        super().__init__()
        self._own = own

    def __missing__(self, name: str) -> str:
        short = short_name(name, self._own)
        if short.startswith("{"):
            uri, _, local = short[1:].partition("}")
            known = PREFIXES.get(uri.removeprefix(UNDECLARED)) or _BY_SPELLING.get(without_spelling(uri))
            canonical = f"{{{known}}}{local}" if known else _accepted(name, local)
        else:
            prefix, _, local = short.rpartition(":")
            canonical = f"{{{PREFIXES[prefix]}}}{local}" if prefix else local
        self[name] = canonical
        return canonical


def _accepted(name: str, local: str) -> str:
    """The name; in a namespace of our own if its own is no URI, which expat accepts and lxml does not."""
    try:
        etree.Element(name)
    except ValueError:
        return f"{{{_NO_URI}}}{local}"
    return name


def lxml_tree(tree: ItemTree) -> tuple[etree._Element, list[etree._Element]]:
    """The root of the copy, and in it the element of each of `tree.items`.

    Without comments, and without the white space that only indents. Not recursive: a document may be nested
    deeper than Python's stack.
    """
    names = Names(tree.own)
    places = {id(element): place for place, element in enumerate(tree.items)}
    left_out = set(map(id, tree.left_out))
    items: list[etree._Element] = [etree.Element("none")] * len(tree.items)
    root = etree.Element(names[tree.root.tag], _attributes(tree.root, names))
    to_copy = [(tree.root, root)]
    while to_copy:
        source, copy = to_copy.pop()
        for child in source:
            number = id(child)
            if number in left_out:
                continue
            target = etree.SubElement(copy, names[child.tag], _attributes(child, names))
            if number in places:
                items[places[number]] = target
            text = child.text
            if len(child):
                to_copy.append((child, target))
                if text and not _indents(text, target):
                    target.text = text
            elif text:
                target.text = _collapsed(text)
            if child.tail and not _indents(child.tail, target):
                target.tail = child.tail
    return root, items


def _attributes(element: Element, names: Names) -> dict[str, str] | None:
    attributes = element.attrib
    return {names[name]: value for name, value in attributes.items()} if attributes else None


def _collapsed(text: str) -> str:
    if len(text) > _SHORT or not _UNEVEN.search(text):
        return text
    return _SPACE.sub(" ", text).strip(" ")


def _indents(text: str, element: etree._Element) -> bool:
    return "\n" in text and not text.strip(_SPACES) and not str(element.tag).startswith(_IN_XHTML)
