"""Drawings within HTML: the elements and attributes of SVG that stay, in one table.

Nothing of a drawing runs, moves, leads anywhere or is loaded. A reference is a `#fragment` of an element in
the same HTML; links, style sheets, animations, filters and HTML within a drawing are not in the table.
Declarations of a `style` attribute become the attributes of the same name; the lines of a `<foreignObject>`
become a text; a picture in a drawing is shown behind it; a `<title>` becomes the drawing's label, because
html5ever and browsers read an element of that name outside of SVG as raw text (see `safe_html`).
"""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate, chain

from rss_pipeline.collector.sanitize.markup import Element, names, start_tag

_PAINTED = names(
    """id transform aria-label opacity color display visibility clip-path clip-rule mask fill fill-opacity
    fill-rule stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit
    stroke-opacity stroke-width paint-order vector-effect shape-rendering"""
)
_WRITTEN = _PAINTED | names(
    """x y dx dy rotate textLength lengthAdjust font-family font-size font-style font-weight font-variant
    text-anchor text-decoration dominant-baseline alignment-baseline baseline-shift letter-spacing
    word-spacing writing-mode direction"""
)
_BOX = frozenset(("x", "y", "width", "height"))
_MARKED = _PAINTED | {"marker-start", "marker-mid", "marker-end", "pathLength"}
_GRADIENT = frozenset(("id", "gradientUnits", "gradientTransform", "spreadMethod", "href"))
_VIEW = frozenset(("viewBox", "preserveAspectRatio"))

ELEMENTS: dict[str, frozenset[str]] = {
    "svg": _WRITTEN | _BOX | _VIEW | {"role", "aria-hidden"},
    "g": _WRITTEN,
    "defs": frozenset(("id",)),
    "symbol": _PAINTED | _BOX | _VIEW,
    "use": _WRITTEN | _BOX | {"href"},
    "path": _MARKED | {"d"},
    "rect": _PAINTED | _BOX | {"rx", "ry"},
    "circle": _PAINTED | {"cx", "cy", "r"},
    "ellipse": _PAINTED | {"cx", "cy", "rx", "ry"},
    "line": _MARKED | {"x1", "y1", "x2", "y2"},
    "polyline": _MARKED | {"points"},
    "polygon": _MARKED | {"points"},
    "text": _WRITTEN,
    "tspan": _WRITTEN,
    "textPath": _WRITTEN | {"href", "startOffset", "method", "spacing", "side"},
    "marker": _PAINTED | _VIEW
    | {"refX", "refY", "markerWidth", "markerHeight", "markerUnits", "orient", "overflow"},
    "linearGradient": _GRADIENT | {"x1", "y1", "x2", "y2"},
    "radialGradient": _GRADIENT | {"cx", "cy", "r", "fx", "fy", "fr"},
    "stop": frozenset(("id", "offset", "stop-color", "stop-opacity")),
    "clipPath": _PAINTED | {"clipPathUnits"},
    "mask": _PAINTED | _BOX | {"maskUnits", "maskContentUnits"},
    "pattern": _PAINTED | _BOX | _VIEW | {"patternUnits", "patternContentUnits", "patternTransform", "href"},
}  # fmt: skip
"""The elements that stay, with their attributes. None of them is one of HTML or is read as raw text."""
KNOWN = frozenset(("a", "switch", "title", "desc", "foreignObject", "image"))
"""Further elements that are read, and become others."""
_DRAWN = names("path rect circle ellipse line polyline polygon text use")
_TEXTS = frozenset(("text", "tspan", "textPath"))
_UNSEEN = names("defs symbol marker clipPath mask pattern")
_FUNCTIONS = r"(?:rgba?|hsla?|matrix|translate|scale|rotate|skewX|skewY)[ \t\r\n]*+\([^()\\@<>]*+\)"
_VALUE = re.compile(rf"(?:{_FUNCTIONS}|[^()\\@<>{{}};:])*+", re.IGNORECASE)
"""No function but these: no `url()`, `image-set()`, `var()`, and no escape that could write one."""
_REFERENCE = re.compile(r"""url\([ \t\r\n]*+["']?#([^"'()\s\\<>]++)["']?[ \t\r\n]*+\)[-#\w \t\r\n]*+""")
_NUMBER = re.compile(r"([-+]?[0-9]{0,9}(?:\.[0-9]{0,9})?)(?:px)?")
_UNWRITTEN = frozenset(("aria-label", "id"))
"""Attributes with any text in them."""
MOST_ELEMENTS = 10_000
"""In all drawings of an item."""
_MOST_DRAWN = 50_000
"""Elements that are drawn by references, those that are drawn again each time: `<use>` of ten `<use>` of ten
and so on takes a browser minutes, from a few lines."""
_DEEPEST = 8
_MOST_CHARACTERS = 300
_MOST_PIXELS = 4_000


def value(attribute: str, text: str) -> str | None:
    """The value of an attribute of these elements as it stays; None if it does not.

    References are those of a drawing whose names were changed by `Drawings.rename`.
    """
    if attribute == "href" or attribute in _UNWRITTEN:
        return text
    reference = _REFERENCE.fullmatch(text.strip())
    return text if reference is not None or _VALUE.fullmatch(text) else None


@dataclass(slots=True)
class Drawings:
    """The drawings of one item: their elements, and which refers to which."""

    elements: list[Element] = field(default_factory=list)
    """In the order of the text."""
    references: list[tuple[int, Element, str, str]] = field(default_factory=list)
    """Place, element, attribute, and the id that it names."""
    _places: dict[Element, tuple[int, int]] = field(default_factory=dict)
    """By element, its own place and the one behind its last descendant."""

    def add(self, svg: Element) -> str:
        """The words of a drawing: its titles and texts. The element is changed to what is shown."""
        if len(self.elements) + sum(1 for _ in svg.elements()) > MOST_ELEMENTS:
            words = svg.words()
            svg.become(escape(words, quote=False))
            return words
        titles, texts, pictures = _simplify(svg)
        words = " ".join(dict.fromkeys((*titles, *texts)))
        drawn = [each for each in (svg, *svg.elements()) if each.name]
        if not any(each.name in _DRAWN for each in drawn):
            if not any(each.name in _UNSEEN for each in drawn):
                svg.become(escape(titles[0] if titles else "", quote=False), *pictures)
            return words
        first = len(self.elements)
        for element in drawn:
            self._take(element)
        self._note_ends(first)
        if pictures:
            shown = Element(svg.name, svg.start, svg.parent)
            shown.children = svg.children
            svg.become(shown, *pictures)
        return words

    def leave_if_empty(self, element: Element) -> None:
        """Remove the drawing around an element if it draws nothing now: the symbol of an icon is on the
        publisher's page."""
        while element.parent is not None and (element.name != "svg" or element.parent.name in ELEMENTS):
            element = element.parent
        within = [each for each in element.elements() if each.name]
        if element.name == "svg" and not any(each.name in _DRAWN or each.name in _UNSEEN for each in within):
            label = element.attributes().get("aria-label", "")
            element.become(escape(label, quote=False))

    def _take(self, element: Element) -> None:
        kept = _kept(element)
        place = len(self.elements)
        self.elements.append(element)
        for name, text in kept.items():
            if name == "href":
                self.references.append((place, element, name, text.strip()[1:]))
            elif (reference := _REFERENCE.fullmatch(text.strip())) and name not in _UNWRITTEN:
                self.references.append((place, element, name, reference[1]))
        element.start = start_tag(element.name, kept)

    def _note_ends(self, first: int) -> None:
        ends: dict[Element, int] = {}
        for place in range(len(self.elements) - 1, first - 1, -1):
            element = self.elements[place]
            inner = [ends[each] for each in element.children if isinstance(each, Element) and each in ends]
            ends[element] = max(inner, default=place + 1)
            self._places[element] = place, ends[element]

    def are_bounded(self, ids: dict[str, Element]) -> bool:
        """False if references would draw more than 50,000 elements, or refer to each other without end."""
        places = [place for place, *_ in self.references]
        targets = [self._places.get(ids.get(id, _NONE)) for *_, id in self.references]
        inner = [
            None if span is None else (bisect_left(places, span[0]), bisect_left(places, span[1]))
            for span in targets
        ]
        costs = [0 if span is None else span[1] - span[0] for span in targets]
        own = list(costs)
        for _ in range(_DEEPEST):
            sums = [0, *accumulate(costs)]
            if sums[-1] > _MOST_DRAWN:
                return False
            further = [
                cost if span is None else cost + sums[span[1]] - sums[span[0]]
                for cost, span in zip(own, inner, strict=True)
            ]
            if further == costs:
                return True
            costs = further
        return False


_NONE = Element("", "", None)


def _simplify(svg: Element) -> tuple[list[str], list[str], list[str]]:
    """Titles, texts and pictures of a drawing, in which the elements of the table are left."""
    titles: list[str] = []
    texts: list[str] = []
    pictures: list[str] = []
    labels: dict[Element, str] = {}
    unseen: set[Element] = set()
    for element in chain((svg,), svg.elements()):
        name, parent = element.name, element.parent
        is_unseen = name in _UNSEEN or parent in unseen
        if is_unseen:
            unseen.add(element)
        if name == "title":
            words = element.words()[:_MOST_CHARACTERS]
            if words and parent is not None and parent not in labels:
                labels[parent] = words
                titles += [] if is_unseen else [words]
            element.become()
        elif name == "foreignObject":
            _become_text(element)
        elif name == "image":
            attributes = element.attributes()
            source = attributes.get("href") or attributes.get("xlink:href") or ""
            if source and source[0] != "#" and not is_unseen:
                pictures.append(start_tag("img", {"src": source, "alt": labels.get(svg, "")}))
            element.become()
        elif name in ("a", "switch"):
            element.name = "g"
        elif name not in ELEMENTS or (name == "use" and 'href="#' not in element.start):
            element.become()
        if element.name == "text" and not is_unseen and (words := element.words()):
            texts.append(words)
        if element.name and element.name not in _TEXTS:
            element.children = [each for each in element.children if isinstance(each, Element)]
    attributes = svg.attributes()
    for element, words in labels.items():
        if element.name in ELEMENTS:
            element.start = start_tag(element.name, {**element.attributes(), "aria-label": words})
    label = labels.get(svg) or attributes.get("aria-label", "")
    if attributes.get("aria-hidden") == "true":
        return [], [], pictures
    if label:
        svg.start = start_tag("svg", {**svg.attributes(), "role": "img", "aria-label": label})
    return titles or ([label] if label else []), texts, pictures


def _become_text(element: Element) -> None:
    """The words of HTML in a drawing, in the middle of their box."""
    words, attributes = element.words(), element.attributes()
    parent = element.parent
    others = [] if parent is None else [each for each in parent.children if isinstance(each, Element)]
    if not words or (parent is not None and parent.start.startswith("<switch") and len(others) > 1):
        element.become()
        return
    x, y, width, height = (_number(attributes.get(name)) or 0.0 for name in ("x", "y", "width", "height"))
    element.name = "text"
    element.start = start_tag(
        "text",
        {
            "x": f"{x + width / 2:g}",
            "y": f"{y + height / 2:g}",
            "text-anchor": "middle",
            "dominant-baseline": "central",
            **({"transform": attributes["transform"]} if "transform" in attributes else {}),
        },
    )
    element.children = [escape(words, quote=False)]


def _kept(element: Element) -> dict[str, str]:
    """The attributes of an element of the table as they stay, with those that its style declares."""
    allowed = ELEMENTS[element.name]
    attributes = element.attributes()
    declared = (each.partition(":") for each in attributes.pop("style", "").split(";"))
    if "xlink:href" in attributes:
        attributes.setdefault("href", attributes.pop("xlink:href"))
    kept = {
        name: text
        for name, text in {**attributes, **{name.strip(): text.strip() for name, _, text in declared}}.items()
        if name in allowed and value(name, text) is not None
    }
    if "href" in kept and not kept["href"].strip().startswith("#"):
        del kept["href"]
    if element.name == "svg" and (element.parent is None or element.parent.name not in ELEMENTS):
        kept |= _size(attributes, kept)
    return kept


def _size(attributes: dict[str, str], kept: dict[str, str]) -> dict[str, str]:
    """Width and height of a drawing that has none: an icon is as high as a line."""
    sides = [kept.pop(side, "") for side in ("width", "height")]
    found = {
        side: text
        for side, text in zip(("width", "height"), sides, strict=True)
        if text and ((number := _number(text)) is None or number <= _MOST_PIXELS)
    }
    if found:
        return found
    box = [_number(part) for part in kept.get("viewBox", "").replace(",", " ").split()]
    if attributes.get("aria-hidden") == "true":
        return {"width": "1em", "height": "1em"}
    if len(box) == 4 and box[2] and box[3] and 0 < max(box[2], box[3]) <= _MOST_PIXELS:
        return {"width": f"{box[2]:g}", "height": f"{box[3]:g}"}
    return {}


def _number(text: str | None) -> float | None:
    found = _NUMBER.fullmatch((text or "").strip())
    try:
        return float(found[1]) if found else None
    except ValueError:
        return None
