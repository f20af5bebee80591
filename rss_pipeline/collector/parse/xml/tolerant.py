"""A tolerant XML parser: the tree of any text that begins with the root element of a feed.

It reads what `tree.py` refuses, after the repairs of `repair.py`. The meaning of an element is used only to
decide where another one without its end tag ends.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element, SubElement

from rss_pipeline.collector.parse.xml.namespaces import NAMESPACES, UNDECLARED, XML
from rss_pipeline.collector.parse.xml.tree import VOID, Defect, Tree

# A quoted value may have `>` in it; a quote that opens nothing is a character.
_TOKEN = re.compile(
    r"<!\[CDATA\[(?P<cdata>(?:[^<\]]++|<(?!!\[CDATA\[)|\](?!\]>))*+)\]\]>"
    r"|<!--(?:[^<-]++|<(?!!--)|-(?!->))*+-->"
    # What begins one of them and has no end of its own says nothing.
    r"|<!\[CDATA\[|<!--|<[!?][^<>]*+>"
    r"|</(?P<end>[^\W\d][\w.:-]*+)[^<>]*+>"
    r"|<(?P<start>[^\W\d][\w.:-]*+)"
    r"""(?P<attributes>(?:[^<>"']++|"[^"<]*+"(?=[\s>/]|[\w:]++=)|'[^'<]*+'(?=[\s>/]|[\w:]++=)|["'])*+)>"""
    r"|(?P<text>[^<]++|<)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""(?<![^\s"'])([^\W\d][\w.:-]*+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|["']?([^\s"']++)["']?)"""
)
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6}));")
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

_ROOTS = frozenset(("rss", "rdf", "feed"))
_ITEMS = frozenset(("item", "entry"))
_FRAMES = _ROOTS | _ITEMS | {"channel"}
_FIELDS = frozenset(
    (
        *("title", "link", "guid", "id", "description", "pubdate", "author", "category", "comments"),
        *("enclosure", "source", "image", "updated", "published", "issued", "modified", "created", "date"),
        *("summary", "content", "contributor", "rights", "language", "generator", "lastbuilddate", "ttl"),
        *("subtitle", "tagline", "copyright", "managingeditor", "webmaster", "docs", "cloud", "textinput"),
        *("skiphours", "skipdays", "thumbnail", "icon", "logo"),
    )
)
"""Elements of feeds and items, in lower case: where one begins, one before it that has no end tag has ended.
So has it where any element with a prefix begins."""
_MOST_NAMES = 1_000
"""Namespaces in force at one place; further ones are not declared."""


def read_tolerantly(text: str) -> Tree | None:
    """The tree of a text; None if no element begins in it.

    Takes time by the length of the text, whatever is in it. A field without its end tag ends where the next
    field begins, and an item where the next one does; an end tag without its element is left out, and so is
    what follows the root. The elements in which the text ends are `unended`.
    """
    tokens = _tokens(text.replace("\r\n", "\n").replace("\r", "\n"))
    reading = _Reading(tokens)
    for place, token in enumerate(tokens):
        reading.take(place, token)
    return reading.tree()


@dataclass(frozen=True, slots=True)
class _Token:
    start: str = ""
    """The name of a start tag, or of an end tag, as written; both are empty for text."""
    end: str = ""
    text: str = ""
    attributes: Sequence[tuple[str, str]] = ()
    is_empty: bool = False

    @property
    def local(self) -> str:
        return (self.start or self.end).rpartition(":")[2].lower()


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for found in _TOKEN.finditer(text):
        match found.lastgroup:
            case "text":
                tokens.append(_Token(text=_unescaped(found["text"])))
            case "cdata":
                tokens.append(_Token(text=found["cdata"]))
            case "end":
                tokens.append(_Token(end=found["end"]))
            case "attributes":
                inside = found["attributes"]
                is_empty = inside.endswith("/")
                attributes = tuple(_attributes(inside[:-1] if is_empty else inside))
                tokens.append(_Token(start=found["start"], attributes=attributes, is_empty=is_empty))
    return tokens


def _attributes(inside: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for found in _ATTRIBUTE.finditer(inside):
        name, *values = found.groups()
        if name not in seen:
            seen.add(name)
            value = next(each for each in values if each is not None)
            yield name, _unescaped(re.sub(r"\s", " ", value))


def _unescaped(text: str) -> str:
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _CHARACTERS[found[1]]
    code = int(found[2]) if found[2] else int(found[3], 16)
    return chr(code) if code < 0x110000 else "\ufffd"


def _with_end(tokens: Sequence[_Token]) -> set[int]:
    """The places of the start tags that have an end tag of their own in the same item, or outside of any."""
    ended: set[int] = set()
    begun: dict[str, list[int]] = defaultdict(list)
    for place, token in enumerate(tokens):
        if token.local in _FRAMES:
            begun.clear()
        elif token.start and not token.is_empty:
            begun[token.start.lower()].append(place)
        elif token.end and (places := begun.get(token.end.lower())):
            ended.add(places.pop())
    return ended


@dataclass(slots=True)
class _Open:
    element: Element
    name: str
    """As written, in lower case."""
    local: str
    has_end: bool
    names: Mapping[str, str]
    """The namespaces in force by prefix; "" is the default one."""


class _Reading:
    """The open elements, the innermost last, while the tokens are read."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self.root: Element | None = None
        self._with_end = _with_end(tokens)
        frames = [(place, token) for place, token in enumerate(tokens) if token.local in _FRAMES]
        self._last_item = max((place for place, token in frames if token.local in _ITEMS), default=-1)
        self._lost_items = {
            place
            for (place, token), (_, following) in pairwise(frames)
            if token.end and token.local in _ITEMS and following.end and following.local in _ITEMS
        }
        """The places of items' end tags after which another one is the next tag of a frame."""
        self._after: int | None = None
        """The place of the last tag of a frame."""
        self._open: list[_Open] = []
        self._frames: Counter[str] = Counter()
        """The open frames by name."""
        self._inside: list[Counter[str]] = [Counter()]
        """The other open elements by name, for each open frame those within it."""
        self._text: list[str] = []
        """Text read since an element last began or ended."""
        self._item = ""
        """The name of the items."""
        self._is_over = False
        self._has_junk = False

    def tree(self) -> Tree | None:
        if self.root is None:
            return None
        self._write()
        unended = tuple(each.element for each in self._open)
        defect: Defect | None = "cut off" if unended else "junk after" if self._has_junk else None
        return Tree(root=self.root, unended=unended, defect=defect)

    def take(self, place: int, token: _Token) -> None:
        if self._is_over:
            self._has_junk = self._has_junk or bool(token.start or token.end or token.text.strip())
            return
        if token.start:
            self._start(place, token)
        elif token.end:
            self._end(place, token)
        else:
            self._text.append(token.text)
        if token.local in _FRAMES:
            self._after = place

    def _start(self, place: int, token: _Token) -> None:
        local = token.local
        if self._open and local in _ROOTS and token.start.lower() == self._open[0].name:
            # Another document.
            self._open.clear()
            self._is_over = self._has_junk = True
            return
        if local in _ITEMS:
            self._item = token.start
            self._close_while(lambda each: each.local in _ITEMS or each.local not in _FRAMES)
        elif local in _FIELDS or ":" in token.start:
            self._close_while(lambda each: not each.has_end and each.local not in _FRAMES)
            if self._after in self._lost_items and self._open and self._open[-1].local not in _ITEMS:
                self._begin(_Token(start=self._item), has_end=True)
        self._begin(token, has_end=place in self._with_end)

    def _begin(self, token: _Token, *, has_end: bool) -> None:
        names = self._open[-1].names if self._open else {"xml": XML}
        own = {
            name[6:]: uri for name, uri in token.attributes if name == "xmlns" or name.startswith("xmlns:")
        }
        if own and len(names) < _MOST_NAMES:
            names = {**names, **own}
        tag = _tag(token.start, names)
        attributes = {
            _tag(name, names) if ":" in name else name: value
            for name, value in token.attributes
            if name.partition(":")[0] != "xmlns"
        }
        self._write()
        if self._open:
            element = SubElement(self._open[-1].element, tag, attributes)
        else:
            element = self.root = Element(tag, attributes)
        if token.is_empty or (token.local in VOID and not has_end and token.local not in _FIELDS):
            self._is_over = self.root is element
            return
        opened = _Open(element, token.start.lower(), token.local, has_end, names)
        self._open.append(opened)
        if opened.local in _FRAMES:
            self._frames[opened.name] += 1
            self._inside.append(Counter())
        else:
            self._inside[-1][opened.name] += 1

    def _end(self, place: int, token: _Token) -> None:
        name, local = token.end.lower(), token.local
        if local in _FRAMES:
            # One before the last item is a mistake, but for that of a channel beside its items.
            is_early = local not in _ITEMS and place < self._last_item
            if self._frames[name] and not (
                is_early and not (local == "channel" and self._open[0].local == "rdf")
            ):
                self._close_through(name)
        elif self._inside[-1][name]:
            self._close_through(name)
        elif local in _FIELDS and self._open and self._open[-1].local in _FRAMES:
            # The start tag is missing: the text is the field's.
            text, self._text = "".join(self._text), []
            if text.strip():
                SubElement(self._open[-1].element, _tag(token.end, self._open[-1].names)).text = text
        self._is_over = not self._open

    def _close_through(self, name: str) -> None:
        while self._close().name != name:
            pass

    def _close_while(self, condition: Callable[[_Open], bool]) -> None:
        while len(self._open) > 1 and condition(self._open[-1]):
            self._close()

    def _close(self) -> _Open:
        self._write()
        closed = self._open.pop()
        if closed.local in _FRAMES:
            self._frames[closed.name] -= 1
            self._inside.pop()
        else:
            self._inside[-1][closed.name] -= 1
        return closed

    def _write(self) -> None:
        if not self._text or not self._open:
            return
        element, text = self._open[-1].element, "".join(self._text)
        self._text = []
        if len(element):
            element[-1].tail = (element[-1].tail or "") + text
        else:
            element.text = (element.text or "") + text


def _tag(name: str, names: Mapping[str, str]) -> str:
    prefix, _, local = name.rpartition(":")
    uri = names.get(prefix)
    if uri is None:
        uri = NAMESPACES.get(prefix.lower(), UNDECLARED + prefix) if prefix else ""
    return f"{{{uri}}}{local}" if uri else local
