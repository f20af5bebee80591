"""The references of an image element to its image: `src`, lazy-loading attributes, `srcset`.

One rule says which of them are trackers or stand-ins, for HTML as text (`shows_picture`), for its tree
(collector.images.find) and for what a feed names beside its HTML (`pictures.py`). Nothing is resolved here.
"""

import re
from collections.abc import Callable, Iterator

LAZY_SRC = (
    "data-src",
    "data-original",
    "data-lazy-src",
    "data-actualsrc",
    "data-original-src",
    "data-orig-file",
    "data-lazy",
    "data-echo",
    "data-url",
    "data-image",
    "data-croporisrc",
    "data-hi-res-src",
    "data-large-file",
    "data-full-url",
    "file",
    "zoomfile",
    "original",
    "lazy-src",
    "lazyload",
)
LAZY_SRCSET = ("data-srcset", "data-lazy-srcset", "data-original-set")
NOT_FETCHED = re.compile(r"\A\s*(?:data|cid|javascript|about|blob|file|mailto):", re.IGNORECASE)
DESCRIPTOR = re.compile(r"\A([0-9]+(?:\.[0-9]+)?)[wx]")

_EMPTY_NAMES = frozenset(
    ("placeholder", "blank", "spacer", "transparent", "pixel", "1x1", "loading", "lazy", "lazyload")
)
"""The names of files that show nothing."""
_DOUBTFUL_NAMES = _EMPTY_NAMES | frozenset(
    ("space", "trans", "grey", "gray", "clear", "dot", "none", "nothing", "default-img", "default_img")
)
"""The names of files that may show nothing: they stand in for the picture that an element names as well."""
_DIGITS = "0123456789"
_STAND_IN_ENDINGS = frozenset(("gif", "png", "jpg", "jpeg", "svg", "webp"))
_PHOTO_ENDINGS = frozenset(("jpg", "jpeg", "webp", "avif", "heic"))
_PIXEL = re.compile(
    r"(?:track(?:ing|er)?[_-]?)?(?:pixel|beacon|tracker)(?:\.(?:gif|php|aspx?))?", re.IGNORECASE
)
_COUNTER = re.compile(
    r"(?:track(?:ing)?|counter|stats?|hit|ping|collect|tr)(?:\.(?:gif|png|php|aspx?))?"
    r"|(?:pixel|beacon|tracker)\.png|[a-z]\.gif",
    re.IGNORECASE,
)
"""The name of what counts a reader, if a query says which."""
_COUNTING_FOLDER = re.compile(r"/(?:tracking|tracker|beacon)s?(?:/|$)", re.IGNORECASE)
_NO_PHOTO = re.compile(r"[^.]*(?:\.(?:gif|png|php|aspx?))?", re.IGNORECASE)
_COUNTING_HOST = re.compile(
    r"(?:https?:)?//(?:pixel|stats?|track(?:er|ing)?|beacon|count(?:er)?|analytics|metrics)[0-9]*\.[^/]+",
    re.IGNORECASE,
)
_KNOWN_COUNTER = re.compile(
    r"(?:https?:)?//(?:feeds\.feedburner\.com/~|feedads\.|ads\.pheedo\.com/|(?:www\.)?facebook\.com/tr\b"
    r"|[^/?#]*\b(?:feedsportal\.com|google-analytics\.com|met\.vgwort\.de)/"
    r"|[^/?#]*\b(?:quantserve|scorecardresearch|doubleclick)\.(?:com|net)/|(?:[^/?#]+\.)?medium\.com/_/stat)",
    re.IGNORECASE,
)
_STYLE_LENGTH = re.compile(r"(?:^|;)\s*(width|height)\s*:\s*([0-9.]+)\s*px", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"\A\s*+([0-9]++)\s*+(?:px\s*+)?", re.IGNORECASE)
_IMAGE_TAG = re.compile(
    r"""<(img|amp-img|amp-anim|source)(?=[\s/"'])((?:[^>"']++|"[^"]*+"|'[^']*+'|["'])*+)""", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""(?<![\w:-])([a-zA-Z][\w:-]*+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")

Attribute = Callable[[str], str]
"""The value of an element's attribute, trimmed; empty for one that is missing."""


def image_references(attribute: Attribute) -> Iterator[str]:
    """The references of an `<img>` to its image, the best first; without trackers and inline data.

    A name that may be a stand-in's comes last: with lazy loading it is one.
    """
    doubtful: list[str] = []
    src = attribute("src")
    if src and not NOT_FETCHED.match(src) and not is_tracker_url(src):
        if not may_stand_in(src):
            yield src
        else:
            doubtful.append(src)
    for name in LAZY_SRC:
        value = attribute(name)
        if value and may_be_reference(value):
            yield value
    for reference in source_references(attribute):
        if may_stand_in(reference):
            doubtful.append(reference)
        else:
            yield reference
    yield from (each for each in doubtful if not is_tracker_url(each))


def source_references(attribute: Attribute) -> Iterator[str]:
    """The references of a `<source>` of a picture, and of an `<img>` by its sets: the largest of each."""
    for name in ("srcset", *LAZY_SRCSET):
        if (srcset := attribute(name)) and (found := by_size(srcset)):
            yield found[0][0]


def may_be_reference(value: str) -> bool:
    """True if a lazy-loading attribute names an image: some of them also hold flags ("true") or widths."""
    return ("/" in value or "." in value) and not NOT_FETCHED.match(value)


def by_size(srcset: str) -> list[tuple[str, str]]:
    """The candidates (URL, descriptor), greatest width or density first, equal ones in their order."""

    def weight(candidate: tuple[str, str]) -> float:
        size = DESCRIPTOR.match(candidate[1])
        return float(size[1]) if size else 1.0

    fetched = [candidate for candidate in by_document_order(srcset) if not NOT_FETCHED.match(candidate[0])]
    return sorted(fetched, key=weight, reverse=True)


def by_document_order(srcset: str) -> Iterator[tuple[str, str]]:
    """URL and descriptor of each candidate of a `srcset`, as in HTML's "parse a srcset attribute".

    A URL ends only at white space, since it may contain commas. `a.jpg 1x,b.jpg 2x` is common too, with the
    next URL directly after the comma of a descriptor.
    """
    waiting: str | None = None
    for word in srcset.split():
        glued = word
        if waiting is not None:
            descriptor, comma, glued = word.partition(",")
            yield waiting, descriptor
            waiting = None
            if not comma:
                continue
        url = glued.strip(",")
        if url and glued.endswith(","):
            yield url, ""
        elif url:
            waiting = url
    if waiting is not None:
        yield waiting, ""


def may_stand_in(reference: str) -> bool:
    """True for the name of a file that may stand in for a picture that comes later."""
    name, words, ending = _named_words(reference)
    return ending in _STAND_IN_ENDINGS and (name in _DOUBTFUL_NAMES or words in _DOUBTFUL_NAMES)


def _named_words(reference: str) -> tuple[str, str, str]:
    """The name of a file without its ending, the last word of that, and the ending; in lower case."""
    path = reference.partition("#")[0].partition("?")[0]
    name, _, ending = path.rpartition("/")[2].lower().rpartition(".")
    name = name.rstrip(_DIGITS) if name.startswith("loading") else name
    return name, name.replace("_", "-").replace(".", "-").rpartition("-")[2], ending


def is_tracker_url(reference: str) -> bool:
    """True for the URL of what counts readers or fills a place, as far as its name or its host tells."""
    stem, word, ending = _named_words(reference)
    if ending in _STAND_IN_ENDINGS and (
        stem in _EMPTY_NAMES or (ending == "gif" and (stem in _DOUBTFUL_NAMES or word in _EMPTY_NAMES))
    ):
        return True
    if ending in _PHOTO_ENDINGS:
        return False
    path, mark, _ = reference.partition("#")[0].partition("?")
    folder, _, name = path.rpartition("/")
    if _PIXEL.fullmatch(name) or (mark and _COUNTER.fullmatch(name)) or _KNOWN_COUNTER.match(reference):
        return True
    if not _NO_PHOTO.fullmatch(name):
        return False
    # Pictures may lie there too: in folders, and by their names.
    return _COUNTING_FOLDER.search(folder) is not None or (
        ending != "png" and _COUNTING_HOST.fullmatch(folder) is not None
    )


def is_one_pixel(attribute: Attribute) -> bool:
    """At most one pixel wide and high, by attributes or style."""
    style = attribute("style")
    if not style and not attribute("width"):
        return False
    styled = {name.lower(): value for name, value in _STYLE_LENGTH.findall(style)} if style else {}
    for name in ("width", "height"):
        number = _LEADING_NUMBER.fullmatch(attribute(name))
        size = float(number[1]) if number else None
        if size is None and name in styled:
            size = float(styled[name].strip(".") or 0) if styled[name].count(".") < 2 else None
        if size is None or size > 1:
            return False
    return True


def shows_picture(html: str) -> bool:
    """True if HTML names an image that is no tracker; its tags are found roughly, in a tenth of a parser's
    time."""
    for tag in _IMAGE_TAG.finditer(html):
        attributes = {
            name.lower(): (double or single or bare).strip()
            for name, double, single, bare in reversed(_ATTRIBUTE.findall(tag[2]))
        }

        def attribute(name: str, attributes: dict[str, str] = attributes) -> str:
            return attributes.get(name, "")

        references = source_references if tag[1].lower() == "source" else image_references
        if not is_one_pixel(attribute) and next(references(attribute), None) is not None:
            return True
    return False
