"""The sources of images in plain HTML, as most editors write it, replaced without a parser.

A parser takes ten times as long. So the condition is strict: each `<` begins a well-formed tag of a known
element, whose content every parser reads as elements, and an image has only a `src` that all read in
the same way. In all other HTML, `archived.py` has the tree decide; for plain HTML both give the same.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape, unescape

from rss_pipeline.collector.parse.image_references import LAZY_SRC, LAZY_SRCSET

_MOST_TAGS = 1_000
"""Far fewer than the levels at which libxml2 gives up."""
_ATTRIBUTE = r"""[ \t\r\n]++[a-zA-Z][a-zA-Z0-9_-]*+(?:=(?:"[^"<>]*+"|'[^'<>]*+'))?+"""
_WELL_FORMED = re.compile(
    rf"(?:[^<\0]*+</?+[a-zA-Z][a-zA-Z0-9]*+(?:{_ATTRIBUTE}){{0,100}}+[ \t\r\n]*+/?+>)*+[^<\0]*+"
)
"""HTML with nothing but text and tags, these with few attributes: see find.py."""
_NAME = re.compile("</?([a-zA-Z][a-zA-Z0-9]*+)")
_ELEMENTS = (
    "a abbr acronym address article aside b big blockquote br center cite code dd del details dfn "
    "div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main "
    "mark nav ol p pre q s samp section small span strike strong sub summary sup table tbody td "
    "tfoot th thead time tr tt u ul var wbr"
)
_NAMES = frozenset(_ELEMENTS.split())
_IMAGE = re.compile(r"(?i:<img)(?=[ \t\r\n/>])[^<>]*+>")
_SOURCE = re.compile(
    rf"(?i:<img)(?:(?![ \t\r\n]++(?i:src)[= \t\r\n/>]){_ATTRIBUTE})*+[ \t\r\n]++(?i:src)"
    r"""(?P<change>=(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'))"""
)
_OTHER_SOURCE = re.compile(
    rf"[ \t\r\n](?:{'|'.join(map(re.escape, (*LAZY_SRC, 'srcset', *LAZY_SRCSET)))})(?=[= \t\r\n/>])"
)
_OTHER_SOURCE_SIGNS = ("data-", "file", "original", "lazy", "srcset")
"""Without one of these there is no attribute of that kind."""
_REFERENCE = re.compile(r"(?:[!#-%'-;=?-~]|&(?:amp;|#0?38;|[a-zA-Z][a-zA-Z0-9]*+=))*+")
"""In which everybody reads `&` in the same way: written as it should be, or before a parameter's name."""
_VALUE = re.compile(r"""[ \t\r\n]([a-zA-Z][a-zA-Z0-9_-]*+)(?:=(?:"([^"<>]*+)"|'([^'<>]*+)'))?+""")
_AMPERSAND = re.compile(r"&(?:amp|#0?38);")


@dataclass(slots=True)
class PlainImage:
    """An `<img>` with nothing but a `src` that names its image."""

    tag: str
    start: int
    """The place of the `=` behind `src`, in the tag; the value ends at `end`."""
    end: int
    reference: str
    _values: dict[str, str] | None = None
    """The values of the other attributes; the first one of a name counts."""

    def get(self, name: str) -> str | None:
        """The value of an attribute, as of an element."""
        if name == "src":
            return self.reference
        if self._values is None:
            self._values = {each.lower(): a or b for each, a, b in reversed(_VALUE.findall(self.tag))}
        value = self._values.get(name)
        return value and unescape(value)


@lru_cache(maxsize=4)
def plain_images(html: str) -> tuple[PlainImage, ...] | None:
    """The distinct images of HTML, in its order; None if it is not plain. It is called twice for the same
    HTML, by the search for images and by `render`."""
    if html.count("<") > _MOST_TAGS or not _WELL_FORMED.fullmatch(html):
        return None
    names = {*_NAME.findall(html)}
    if not names <= _NAMES and not {name.lower() for name in names} <= _NAMES:
        return None
    images = list(dict.fromkeys(_IMAGE.findall(html)))
    lowered = "".join(images).lower()
    if any(sign in lowered for sign in _OTHER_SOURCE_SIGNS) and _OTHER_SOURCE.search(lowered):
        return None
    plain: list[PlainImage] = []
    for tag in images:
        source = _SOURCE.match(tag)
        if source is None:
            continue
        reference = source["double"] if source["single"] is None else source["single"]
        if not _REFERENCE.fullmatch(reference):
            return None
        if "&" in reference:
            reference = _AMPERSAND.sub("&", reference)
        plain.append(PlainImage(tag, *source.span("change"), reference))
    return tuple(plain)


def with_places(html: str, place: Callable[[str], str | None]) -> str | None:
    """`html` with another `src` in each image for which `place` gives one; None if it is not plain.

    Every other byte stays the same.
    """
    images = plain_images(html)
    if images is None:
        return None
    changed: dict[str, str] = {}
    for each in images:
        new = place(each.reference)
        if new is not None and new != each.reference:
            changed[each.tag] = f"{each.tag[: each.start]}{attribute_value(new)}{each.tag[each.end :]}"
    return _IMAGE.sub(lambda image: changed.get(image[0], image[0]), html) if changed else html


def attribute_value(value: str) -> str:
    """The text behind the name of an attribute with this value."""
    escaped = escape(value, quote=False).replace('"', "&quot;")
    return f'="{escaped}"'
