"""The tree of a document for XPath: our repaired tree copied into lxml, with canonical names.

Names of the document's own vocabulary have no namespace, all others the one of `prefixes.PREFIXES`, however
the publisher spells it. The parsers make the tree that is copied (collector.parse).
"""

import re
from xml.etree.ElementTree import Element

from lxml import etree

from rss_pipeline.collector.models.item_tree import ItemTree
from rss_pipeline.collector.parse.xml.namespaces import UNDECLARED, XHTML, short_name, without_spelling
from rss_pipeline.collector.streams.prefixes import PREFIXES

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
