"""The items of a document that XPath expressions select, evaluated in a child process with a limit of time.

Expressions are checked when feeds.yaml is read (expression.py).
"""

import gc
import os
import re
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn
from xml.etree.ElementTree import Element

from lxml import etree

from rss_pipeline.collector.models.item import ItemTree
from rss_pipeline.collector.parse.xml.namespaces import UNDECLARED, XHTML, short_name, without_spelling
from rss_pipeline.features.streams.expression import ATOM, PREFIXES, RSS1, without_prefixes

_NAMESPACES = dict(PREFIXES)


class XPathRefused(Exception):
    """An expression that selects nothing that could be an item. Its text continues "the XPath of ..."."""


class SelectableItems:
    """A document's items, for any number of expressions, evaluated in this process without any limit."""

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
# document's own vocabulary have no namespace, all others the one of PREFIXES, however the
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


# XPath selectors evaluated in a child process: libxml2 cannot be interrupted, and some axes are quadratic.
#
# `//item[preceding::item]` over 5,000 items takes 26 seconds. A selector that is too slow or crashes costs
# its own stream and those after it, never the document. The limit of memory is that of this process.

LIMIT_SECONDS = 2.0
"""Processor time for all selectors of a feed together; the copy of the tree may take as much before."""
_PATIENCE = 5
"""The child may take that many times its limit by the clock: on a busy machine a sound selector does."""
_OUT_OF_MEMORY = 77


@dataclass(slots=True)
class Selection:
    """The result of a feed's selectors, by the name of the stream."""

    items: dict[str, list[int]] = field(default_factory=dict)
    """The places, ascending, of the items that belong to the stream."""
    errors: dict[str, str] = field(default_factory=dict)
    """A sentence for each selector without a result."""
    seconds: float | None = None
    """Processor time of all results; None if the tree was not copied in time."""


def selected_items(
    tree: ItemTree, selectors: Mapping[str, str], *, feed_id: str, limit: float = LIMIT_SECONDS
) -> Selection:
    """Evaluate expressions, by the name of their stream and in this order, over the items of a document.

    Forks, so this process should have one thread only. An error of any kind is in the result.
    """
    selection = Selection()
    try:
        end = _fill(selection, tree, selectors, limit)
    except OSError as error:
        end = f"no process could be started for it ({error.strerror or error})"
    left = [name for name in selectors if name not in selection.items and name not in selection.errors]
    if left and selection.seconds is None:
        why = f"the copy of the document took longer than {limit:g} s" if end is None else end
        selection.errors |= dict.fromkeys(left, f"was not evaluated: {why}")
    elif left:
        first, *others = left
        used = selection.seconds or 0.0
        share = "" if used < limit / 20 else f" ({used:.1f} s of it were used by the selectors before)"
        why = f"took longer than {limit:g} s{share}" if end is None else end
        selection.errors[first] = why
        selection.errors |= dict.fromkeys(others, f"was not evaluated: the XPath of {feed_id}/{first} {why}")
    selection.errors = {
        name: f"The XPath of {feed_id}/{name} {error}." for name, error in selection.errors.items()
    }
    return selection


def _fill(selection: Selection, tree: ItemTree, selectors: Mapping[str, str], limit: float) -> str | None:
    """Add each result as the child sends it. Return the child's end as words after "The XPath of ...", None
    for the limit of time."""
    reader, writer = Pipe(duplex=False)
    with reader:
        with writer:
            child = os.fork()
            if child == 0:
                _evaluate_and_exit(tree, selectors, limit, writer)
        try:
            # EOFError: the child has ended; OSError: within a message.
            with suppress(EOFError, OSError):
                while reader.poll(limit * _PATIENCE):
                    name, found, selection.seconds = reader.recv()
                    if isinstance(found, str):
                        selection.errors[name] = found
                    elif name:
                        selection.items[name] = found
        finally:
            # Of a child that has ended by itself, the status remains.
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    match os.waitstatus_to_exitcode(status):
        case code if code in (-signal.SIGPROF, -signal.SIGKILL):
            return None
        case code if code == _OUT_OF_MEMORY:
            return "needed more memory than a parser process may take"
        case code:
            return f"ended its process (exit code {code})"


def _evaluate_and_exit(
    tree: ItemTree, selectors: Mapping[str, str], limit: float, writer: Connection
) -> NoReturn:
    """The child: send each result as it is found. The kernel ends it after its time, also if the process that
    waits for it was killed; nothing of this copy of the process may run after it."""
    code = 1
    try:
        for number in (signal.SIGPROF, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limit)
        # The pipes of the pool are not this process's to hold open.
        os.closerange(3, writer.fileno())
        os.closerange(writer.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        # A collection would copy all pages of memory that both processes share.
        gc.disable()
        items = SelectableItems(tree)
        signal.setitimer(signal.ITIMER_PROF, limit)
        writer.send(("", None, 0.0))
        began = time.process_time()
        for name, expression in selectors.items():
            found: list[int] | str
            try:
                found = items.select(expression)
            except XPathRefused as error:
                found = str(error)
            writer.send((name, found, time.process_time() - began))
        code = 0
    except MemoryError:
        code = _OUT_OF_MEMORY
    finally:
        os._exit(code)
