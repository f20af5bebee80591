"""A tree of HTML that nh3 wrote, to be changed and written again.

nh3 (html5ever) writes each tag in one way: `<name attribute="value">` with `<`, `>`, `&` and `"` escaped in
values and texts, an end tag for each element that can have one, no comment. So a split by tags is a parser,
and what is not changed comes out byte for byte. It does not read the HTML of publishers.
"""

import re
from collections.abc import Iterator, Mapping
from html import escape, unescape

# The elements of HTML that are shown, with their attributes; those of formulas and drawings have tables of
# their own (mathml.py, svg.py).


def names(text: str) -> frozenset[str]:
    """The names in a list of them."""
    return frozenset(text.split())


TAGS = names(
    """a abbr acronym address article aside audio b bdi bdo big blockquote br caption center cite code col
    colgroup
    dd del details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd
    li main mark nav ol p picture pre q rp rt rtc ruby s samp section small source span strike strong sub
    summary sup table tbody td tfoot th thead time tr track tt u ul var video wbr"""
)
ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href", "hreflang"},
    "audio": {"src", "controls"},
    "col": {"span"},
    "colgroup": {"span"},
    "data": {"value"},
    "del": {"datetime"},
    "details": {"open"},
    "img": {"src", "alt", "width", "height"},
    "ins": {"datetime"},
    "li": {"value"},
    "ol": {"start", "type", "reversed"},
    "source": {"src", "type"},
    "td": {"colspan", "rowspan", "headers", "align"},
    "th": {"colspan", "rowspan", "headers", "align", "scope"},
    "time": {"datetime"},
    "track": {"src", "kind", "srclang", "label"},
    "video": {"src", "poster", "controls", "width", "height"},
}
DROPPED_WITH_CONTENT = names("script style noscript template title object svg math iframe noembed noframes")
"""Elements of which not even the text is shown, if nothing was put in their place (replace.py)."""


_TAG = re.compile("(<[^<>]*>)")
_ATTRIBUTE = re.compile(' ([^ "=<>]+)="([^"<>]*)"')
_RAW = re.compile(r"<(noscript|iframe)((?: [^<>]*+)?)>(.*?)(?:</\1>|\Z)", re.DOTALL)
"""Elements that html5ever reads as text and writes as they were. It leaves none within SVG or MathML."""
_SPACES = re.compile(r"[ \t\r\n\f]+")
_VOID = names("area base br col embed hr img input link meta param source track wbr")


class Element:
    """An element with its start tag as it is written.

    Without a name it is written without tags: it holds what has taken the place of another one.
    """

    __slots__ = ("children", "name", "parent", "start")

    def __init__(self, name: str, start: str, parent: "Element | None") -> None:
        self.name = name
        self.start = start
        self.parent = parent
        self.children: list[Element | str] = []
        """A text is as it is written: escaped."""

    def attributes(self) -> dict[str, str]:
        """By name, the values."""
        return {name: unescape(value) for name, value in _ATTRIBUTE.findall(self.start)}

    def become(self, *written: "Element | str") -> None:
        """Leave its place to others, which are written as they are; to nothing if there are none."""
        self.name = self.start = ""
        self.children = list(written)

    def elements(self) -> Iterator["Element"]:
        """The elements below, in their order; of one that has changed meanwhile, those that it holds then."""
        left = [each for each in reversed(self.children) if isinstance(each, Element)]
        while left:
            element = left.pop()
            yield element
            left += [each for each in reversed(element.children) if isinstance(each, Element)]

    def words(self) -> str:
        """The text below on one line."""
        parts: list[str] = []
        left: list[Element | str] = [self]
        while left:
            node = left.pop()
            if isinstance(node, str):
                parts.append(node)
            else:
                left += reversed(node.children)
        return _SPACES.sub(" ", unescape("".join(parts))).strip()

    def written(self) -> str:
        """The HTML of this element."""
        parts: list[str] = []
        left: list[Element | str] = [self]
        while left:
            node = left.pop()
            if isinstance(node, str):
                parts.append(node)
                continue
            parts.append(node.start)
            if node.name not in _VOID:
                if node.name:
                    left.append(f"</{node.name}>")
                left += reversed(node.children)
        return "".join(parts)


def parsed(html: str) -> Element:
    """An element without a name that holds the HTML, which nh3 wrote.

    The content of `<noscript>` and `<iframe>` is one text.
    """
    if "<noscript" in html or "<iframe" in html:
        html = _RAW.sub(lambda raw: f"<{raw[1]}{raw[2]}>{escape(raw[3], quote=False)}</{raw[1]}>", html)
    root = place = Element("", "", None)
    for number, part in enumerate(_TAG.split(html)):
        if number % 2 == 0:
            if part:
                place.children.append(part)
        elif part[1] == "/":
            place = place.parent or root
        else:
            name = part[1:-1].partition(" ")[0]
            element = Element(name, part, place)
            place.children.append(element)
            if name not in _VOID:
                place = element
    return root


def start_tag(name: str, attributes: Mapping[str, str]) -> str:
    """A start tag as nh3 writes it."""
    return f"<{name}" + "".join(f' {each}="{escape(value)}"' for each, value in attributes.items()) + ">"


def with_attribute(start: str, name: str, value: str | None) -> str:
    """A start tag with another value of an attribute, or without the attribute."""
    begin = start.find(f' {name}="')
    written = "" if value is None else f' {name}="{escape(value)}"'
    if begin < 0:
        return start[:-1] + written + ">"
    end = start.index('"', begin + len(name) + 3) + 1
    return start[:begin] + written + start[end:]
