"""A strict XML parser for a document's text; of a text that is cut off it keeps the complete elements.

The elements are given no meaning here, and nothing is repaired.
"""

import html
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, cast
from xml.etree.ElementTree import Element, ParseError, XMLParser, XMLPullParser
from xml.parsers.expat import errors

from rss_pipeline.collector.parse.xml.namespaces import XHTML

_CUT_OFF = frozenset(
    errors.codes[message]
    for message in (
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        errors.XML_ERROR_PARTIAL_CHAR,
    )
)
_NO_MEMORY = errors.codes[errors.XML_ERROR_NO_MEMORY]
UNBOUND_PREFIX = errors.codes[errors.XML_ERROR_UNBOUND_PREFIX]
"""`ParseError.code` of a text that uses a prefix it does not declare."""
_JUNK_AFTER = errors.codes[errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]
VOID = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    )
)


Defect = Literal["cut off", "junk after"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The root element, and the elements without an end tag if the document was cut off."""

    root: Element
    unended: tuple[Element, ...] = ()
    defect: Defect | None = None


def read_tree(text: str) -> Tree:
    """Parse text that begins with its root element.

    With expat and without a document type in the text, so no entity but XML's five, no file, no network.
    Raises `xml.etree.ElementTree.ParseError` for ill-formed text, but not for text that only ends early or
    continues after its root; `MemoryError` at the memory limit of this process.
    """
    parser = XMLParser()
    try:
        parser.feed(text)
        return Tree(root=parser.close())
    except ParseError as error:
        if error.code == _NO_MEMORY:
            raise MemoryError from error
        if error.code != _JUNK_AFTER and error.code not in _CUT_OFF:
            raise
        return _partial(text, error)


def _partial(text: str, error: ParseError) -> Tree:
    parser: XMLPullParser[Element] = XMLPullParser(("start", "end"))
    unended: list[Element] = []
    root: Element | None = None
    parser.feed(text)
    with suppress(ParseError):
        parser.close()
    # The error is the last event, after those of the text before it.
    try:
        for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
            if event == "start":
                root = element if root is None else root
                unended.append(element)
            else:
                unended.pop()
    except ParseError as last:
        if last.code == _NO_MEMORY:
            raise MemoryError from last
    if root is None:
        raise error
    return Tree(
        root=root,
        unended=tuple(unended),
        defect="junk after" if error.code == _JUNK_AFTER else "cut off",
    )


def text_of(element: Element) -> str:
    """The character data of an element and all within it."""
    return element.text or "" if len(element) == 0 else "".join(element.itertext())


def attribute(element: Element, name: str) -> str | None:
    """The value of an attribute without a prefix, or with one of its element's own namespace."""
    value = element.get(name)
    if value is None and element.tag.startswith("{"):
        value = element.get(f"{element.tag.partition('}')[0]}}}{name}")
    return value


def inner_html(element: Element) -> str:
    """The inside of an element as HTML: names without prefixes, void elements closed by ` />`.

    Not recursive: a document may be nested deeper than Python's stack.
    """
    pieces = [html.escape(element.text or "", quote=False)]
    stack = [(iter(element), "")]
    while stack:
        children, closing = stack[-1]
        child = next(children, None)
        if child is None:
            pieces.append(closing)
            stack.pop()
            continue
        name = _local(child.tag)
        attributes = "".join(f' {_attribute(key)}="{html.escape(value)}"' for key, value in child.items())
        tail = html.escape(child.tail or "", quote=False)
        if name in VOID and len(child) == 0 and not child.text:
            pieces.append(f"<{name}{attributes} />{tail}")
        else:
            pieces.append(f"<{name}{attributes}>{html.escape(child.text or '', quote=False)}")
            stack.append((iter(child), f"</{name}>{tail}"))
    return "".join(pieces)


def unwrapped(element: Element) -> Element:
    """The single `<div>` around Atom's XHTML (RFC 4287, 3.1.1.3), or the element itself."""
    if len(element) != 1 or (element.text or "").strip() or (element[0].tail or "").strip():
        return element
    return element[0] if element[0].tag in (f"{{{XHTML}}}div", "div") else element


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _attribute(key: str) -> str:
    uri, _, local = key.rpartition("}")
    return f"xml:{local}" if uri.endswith("/XML/1998/namespace") else local
