"""MathML Core as it stays, and formulas in words.

The markup for programs that stands beside a formula (`<annotation>`) goes, and so do its copies for eyes that
a site's style sheet would hide: KaTeX, MathJax and Wikipedia write each formula twice. Of other MathML that
browsers no longer know, the operators that it means stay (`<mfenced>`).
"""

import re
from collections.abc import Callable
from html import escape, unescape

from rss_pipeline.collector.sanitize.markup import Element, names, start_tag

_GLOBAL = names("dir displaystyle scriptlevel mathvariant mathcolor mathbackground mathsize")
_OPERATOR = names(
    "form fence separator stretchy symmetric largeop movablelimits lspace rspace minsize maxsize"
)
_CELL = frozenset(("columnspan", "rowspan"))
_SIDES = frozenset(("width", "height", "depth"))
_UNDER = frozenset(("accent", "accentunder"))

ELEMENTS: dict[str, frozenset[str]] = {
    "math": _GLOBAL | {"display", "alttext"},
    "mi": _GLOBAL,
    "mn": _GLOBAL,
    "mo": _GLOBAL | _OPERATOR,
    "ms": _GLOBAL,
    "mtext": _GLOBAL,
    "mspace": _GLOBAL | _SIDES,
    "mrow": _GLOBAL,
    "mfrac": _GLOBAL | {"linethickness"},
    "msqrt": _GLOBAL,
    "mroot": _GLOBAL,
    "mstyle": _GLOBAL,
    "merror": _GLOBAL,
    "mpadded": _GLOBAL | _SIDES | {"lspace", "voffset"},
    "mphantom": _GLOBAL,
    "msub": _GLOBAL,
    "msup": _GLOBAL,
    "msubsup": _GLOBAL,
    "munder": _GLOBAL | _UNDER,
    "mover": _GLOBAL | _UNDER,
    "munderover": _GLOBAL | _UNDER,
    "mmultiscripts": _GLOBAL,
    "mprescripts": _GLOBAL,
    "none": _GLOBAL,
    "mtable": _GLOBAL | {"columnalign", "rowspacing", "columnspacing"},
    "mtr": _GLOBAL | {"columnalign"},
    "mtd": _GLOBAL | _CELL | {"columnalign"},
}
"""The elements that stay, with their attributes: those of MathML Core (https://www.w3.org/TR/mathml-core/),
without `semantics`, which leaves its first child, and without `annotation-xml`, in which a browser reads HTML
or not by an attribute."""
KNOWN = names(
    """annotation annotation-xml semantics maction mfenced menclose mlabeledtr mglyph malignmark
    maligngroup mstack mlongdiv msgroup msrow mscarries mscarry msline"""
)
"""Further elements that are read, and become others."""
_VALUE = re.compile(
    r"(?:#[0-9A-Fa-f]{3,8}|[-+%A-Za-z_ \t]|[0-9]{0,3}\.[0-9]{1,10}(?![0-9])|[0-9]{1,3}(?![0-9])){0,100}"
)
"""A number of four digits would be a length of a page, or more."""
_GONE = frozenset(("annotation", "annotation-xml", "malignmark", "maligngroup", "svg"))
_TEX = re.compile(r"(?:application/x-)?(?:la)?tex", re.IGNORECASE)
_INLINE = frozenset(("span", "nobr", "mjx-container", "mjx-assistive-mml"))
_INVISIBLE = re.compile("[\u2061-\u2064\u200b]")
_MOST_LABEL = 2_000


def value(attribute: str, text: str) -> str | None:
    """The value of an attribute of these elements as it stays; None if it does not."""
    return text if attribute == "alttext" or _VALUE.fullmatch(text) else None


def formula(math: Element, searched: set[Element]) -> str:
    """The words of a formula: its `alttext`, else its annotation, else what its elements mean.

    The element is changed to what is shown; if it shows nothing, to these words. `searched` are the elements
    whose children were looked through for copies of a formula.
    """
    attributes = math.attributes()
    label = (attributes.get("alttext", "").strip() or _annotation(math))[:_MOST_LABEL]
    _drop_copies(math, searched)
    for element in list(math.elements()):
        _simplify(element)
    words = _unstyled(label) or _in_words(math)
    if not math.words():
        math.become(escape(words, quote=False))
    elif label:
        math.start = start_tag("math", {**attributes, "alttext": label})
    return words


def _unstyled(label: str) -> str:
    """Without the words that Wikipedia puts around each formula."""
    is_styled = label.startswith(("{\\displaystyle ", "{\\textstyle ")) and label.endswith("}")
    return label[:-1].partition(" ")[2].strip() if is_styled else label


def _annotation(math: Element) -> str:
    found = [each for each in math.elements() if each.name == "annotation"]
    tex = [each for each in found if _TEX.fullmatch(each.attributes().get("encoding", ""))]
    return next((words for each in (*tex, *found) if (words := each.words())), "")


def _drop_copies(math: Element, searched: set[Element]) -> None:
    """Leave out what is beside the formula for the eyes of those only whose browser has no MathML."""
    place = math
    while (parent := place.parent) is not None and parent.name in _INLINE and parent not in searched:
        searched.add(parent)
        for each in parent.children:
            if isinstance(each, Element) and each is not place and ' aria-hidden="true"' in each.start:
                each.become()
        place = parent


def _simplify(element: Element) -> None:
    name = element.name
    if name in _GONE:
        element.become()
    elif name in ("semantics", "maction"):
        parts = (each for each in element.children if isinstance(each, Element))
        first = next((each for each in parts if each.name not in _GONE), None)
        element.name, element.start = "mrow", "<mrow>"
        element.children = [first] if first is not None else element.children
    elif name == "mfenced":
        _open_fence(element)
    elif name == "mlabeledtr":
        element.name, element.start = "mtr", "<mtr>"
        element.children = element.children[1:]
    elif name in ("img", "mglyph"):
        element.become(escape(element.attributes().get("alt", ""), quote=False))
    elif name in KNOWN:
        element.name, element.start = "mrow", "<mrow>"
    elif name and name not in ELEMENTS:
        # HTML in a text, or a name of content markup.
        element.become(*element.children)


def _open_fence(element: Element) -> None:
    attributes = element.attributes()
    opened, closed = attributes.get("open", "("), attributes.get("close", ")")
    separators = "".join(attributes.get("separators", ",").split())
    parts = [each for each in element.children if isinstance(each, Element)]
    element.name, element.start, element.children = "mrow", "<mrow>", []
    for number, part in enumerate(parts):
        if number and separators:
            element.children.append(_operator(separators[min(number, len(separators)) - 1]))
        element.children.append(part)
    element.children = [_operator(opened), *element.children, _operator(closed)]


def _operator(text: str) -> Element:
    operator = Element("mo" if text else "", "<mo>" if text else "", None)
    operator.children.append(escape(text[:10], quote=False))
    return operator


def _in_words(math: Element) -> str:
    """The formula in a line of its symbols, as one would type it."""
    order = [math, *math.elements()]
    said: dict[Element, str] = {}
    for element in reversed(order):
        said[element] = _said(element, said)
        if len(said[element]) > _MOST_LABEL:
            said[element] = said[element][:_MOST_LABEL]
    return " ".join(_INVISIBLE.sub("", said[math]).split())


def _said(element: Element, said: dict[Element, str]) -> str:
    parts = [said.get(each, "") for each in element.children if isinstance(each, Element)]
    form = _FORMS.get(element.name)
    if form is not None and len(parts) == form[0]:
        return form[1](*parts)
    match element.name:
        case "mphantom":
            return ""
        case "mspace":
            return " "
        case "msqrt":
            return "√" + _grouped("".join(parts))
        case "mtable":
            return "; ".join(parts)
        case "mtr":
            return ", ".join(parts)
    return "".join(
        said.get(each, "") if isinstance(each, Element) else unescape(each) for each in element.children
    )


def _grouped(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


_FORMS: dict[str, tuple[int, Callable[..., str]]] = {
    "mfrac": (2, lambda above, below: f"{_grouped(above)}/{_grouped(below)}"),
    "mroot": (2, lambda base, index: f"{_grouped(base)}^(1/{index})"),
    "msub": (2, lambda base, below: f"{base}_{_grouped(below)}"),
    "munder": (2, lambda base, below: f"{base}_{_grouped(below)}"),
    "msup": (2, lambda base, above: f"{base}^{_grouped(above)}"),
    "mover": (2, lambda base, above: f"{base}^{_grouped(above)}"),
    "msubsup": (3, lambda base, below, above: f"{base}_{_grouped(below)}^{_grouped(above)}"),
    "munderover": (3, lambda base, below, above: f"{base}_{_grouped(below)}^{_grouped(above)}"),
}
"""By name, the number of children and how they are said."""
