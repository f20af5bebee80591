"""The images of an item: the attributes and elements that name them, and the URLs that its content shows.

Nothing is downloaded, and the HTML is not changed (`render.py` puts archived images into it).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lxml import etree

from rss_pipeline.collector.images.overloaded import has_overloaded_tag
from rss_pipeline.collector.images.urls import NOT_FETCHED, image_url, resolver, usable_base
from rss_pipeline.collector.models.item import Enclosure, Item

MAY_HOLD_IMAGES = re.compile(r"<(?:img|picture|noscript|amp-img)\b|srcset", re.IGNORECASE)

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
_PLACEHOLDER = re.compile(
    r"(?:^|[/_.-])(?:placeholder|blank|spacer|space|loading\d*|lazy(?:load|[_-]loading)?|transparent|trans|"
    r"pixel|1x1|grey|gray|clear|dot|none|nothing|default[_-]?img)\.(?:gif|png|jpe?g|svg|webp)(?:[?#]|$)",
    re.IGNORECASE,
)
MOST_IMAGES = 10_000
"""Elements of one item that are read: a page shows some hundreds, a hostile one could fill a table."""
_STYLE_LENGTH = re.compile(r"(?:^|;)\s*(width|height)\s*:\s*([0-9.]+)\s*px", re.IGNORECASE)
DESCRIPTOR = re.compile(r"([0-9]+(?:\.[0-9]+)?)[wx]")
_LEADING_NUMBER = re.compile(r"\s*([0-9]+)\s*(?:px)?\s*", re.IGNORECASE)


def find_images(html: str, *, bases: Sequence[str | None]) -> tuple[str, ...]:
    """Absolute http(s) URLs of the images in `html`, distinct, in document order, without fragments.

    One URL for each image: `src`, or if that is missing, inline data or a placeholder, the lazy-loading
    attributes, then the largest of `srcset`, then the `<source>`s of its `<picture>`. Images in a
    `<noscript>` count too. 1x1 trackers and URLs that cannot be fetched (data:, cid:) are left out.
    References are resolved against the first usable of `bases`.
    """
    if not MAY_HOLD_IMAGES.search(html):
        return ()
    root = tree(html)
    if root is None:
        return ()
    shown = shown_images(root, resolver(bases))
    return tuple(
        dict.fromkeys(each.url for each in shown if each.url and (each.is_picture or each.picture is None))
    )


def tree(html: str) -> etree._Element | None:
    """The parsed HTML; None for only comments or white space, and for a tag that no page has.

    It is the tree of BeautifulSoup's lxml builder without its Python objects, which take twenty times as
    long; this runs on every item. Not Python's html.parser: it is quadratic before 3.11.14, and turns
    `?x=1&copy=2` into `©=2`.
    """
    if has_overloaded_tag(html):
        return None
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True)
    try:
        return etree.fromstring(html.encode("utf-8", "replace"), parser)
    except etree.ParserError:
        return None


@dataclass(slots=True, eq=False)
class ShownImage:
    """An `<img>`, `<amp-img>`, `<picture>`, or a `<source>` of a picture, and the URL of the image it shows.

    A `<picture>` shows one image. The `url` of an `<img>` or `<source>` in one is its own; None if it names
    none, and for 1x1 trackers.
    """

    element: etree._Element
    picture: "ShownImage | None"
    """The innermost picture around the element."""
    url: str | None = None
    is_picture: bool = False


def shown_images(root: etree._Element, resolve: Callable[[str], str | None]) -> list[ShownImage]:
    """The first 10,000 of them in document order. `resolve` gives the absolute URL of a reference, or None.

    Pictures that are not closed are nested. So each element is read once, and its image is passed up: a
    search below each picture would be quadratic.
    """
    found: list[ShownImage] = []
    above: dict[etree._Element, ShownImage | None] = {}
    trackers: set[etree._Element] = set()
    for element in islice(root.iter("img", "amp-img", "picture", "source"), MOST_IMAGES):
        picture = _innermost(element, above) if above else None
        each = ShownImage(element, picture)
        if element.tag == "picture":
            above[element] = each
            each.is_picture = True
        elif element.tag == "source":
            if picture is None:
                continue
            each.url = _first(_source_references(element), resolve)
        elif is_tracker(element):
            trackers.add(element)
        else:
            each.url = _first(_references(element), resolve)
        found.append(each)
    sources: dict[etree._Element, str] = {}
    for each in reversed(found):
        if each.is_picture and each.element in trackers:
            each.url = None
            sources.pop(each.element, None)
        if each.picture is None:
            continue
        holder = each.picture.element
        if each.element in trackers:
            trackers.add(holder)
        source = each.url if each.element.tag == "source" else sources.get(each.element)
        if source:
            sources[holder] = source
        if each.url and each.element.tag != "source":
            each.picture.url = each.url
    for each in found:
        if each.is_picture and each.url is None:
            each.url = sources.get(each.element)
    return found


def _innermost(element: etree._Element, above: dict[etree._Element, ShownImage | None]) -> ShownImage | None:
    """The picture around an element. `above` keeps it for all elements between: there may be 2,000."""
    way: list[etree._Element] = []
    parent = element.getparent()
    while parent is not None and parent not in above:
        way.append(parent)
        parent = parent.getparent()
    picture = None if parent is None else above[parent]
    above.update(dict.fromkeys(way, picture))
    return picture


def _first(references: Iterator[str], resolve: Callable[[str], str | None]) -> str | None:
    return next((url for reference in references if (url := resolve(reference))), None)


def image_bases(item: Item, feed_link: str | None, feed_url: str | None) -> list[str | None]:
    """The bases of an item's images; the first usable one counts, so an image is beside its article."""
    return [item.base_url, item.link, feed_link, feed_url]


def may_show_images(item: Item) -> bool:
    """False if `item_images` certainly finds none; the content is not parsed."""
    return bool(item.content_html and MAY_HOLD_IMAGES.search(item.content_html)) or any(
        _is_image(enclosure) for enclosure in item.enclosures
    )


def _is_image(enclosure: Enclosure) -> bool:
    return (enclosure.type or "").strip().lower().startswith("image/")


def item_images(item: Item, feed_link: str | None, feed_url: str | None) -> tuple[str, ...]:
    """The images of an item, distinct: those of its content, then its enclosures of type image/*."""
    bases = image_bases(item, feed_link, feed_url)
    found = dict.fromkeys(find_images(item.content_html, bases=bases) if item.content_html else ())
    base = usable_base(bases)
    for enclosure in item.enclosures:
        if _is_image(enclosure) and (url := image_url(enclosure.url, base)):
            found.setdefault(url)
    return tuple(found)


def _references(image: etree._Element) -> Iterator[str]:
    """The references of an `<img>` to its image, the best first."""
    src = attribute(image, "src")
    doubtful = not src or NOT_FETCHED.match(src) is not None or _PLACEHOLDER.search(src) is not None
    if not doubtful:
        yield src
    for name in LAZY_SRC:
        value = attribute(image, name)
        if may_be_reference(value):
            yield value
    for name in ("srcset", *LAZY_SRCSET):
        if (largest := _largest(attribute(image, name))) and not _PLACEHOLDER.search(largest):
            yield largest


def may_be_reference(value: str) -> bool:
    """True if a lazy-loading attribute names an image: some of them also hold flags ("true") or widths."""
    return ("/" in value or "." in value) and not NOT_FETCHED.match(value)


def _source_references(source: etree._Element) -> Iterator[str]:
    for name in ("srcset", *LAZY_SRCSET):
        if largest := _largest(attribute(source, name)):
            yield largest


def _largest(srcset: str) -> str | None:
    return next((url for url, _ in by_size(srcset)), None)


def by_size(srcset: str) -> list[tuple[str, str]]:
    """The candidates (URL, descriptor), greatest width or density first, equal ones in their order."""

    def weight(candidate: tuple[str, str]) -> float:
        size = DESCRIPTOR.match(candidate[1])
        return float(size[1]) if size else 1.0

    fetched = [candidate for candidate in _candidates(srcset) if not NOT_FETCHED.match(candidate[0])]
    return sorted(fetched, key=weight, reverse=True)


def _candidates(srcset: str) -> Iterator[tuple[str, str]]:
    """URL and descriptor of each candidate, as in HTML's "parse a srcset attribute".

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


def is_tracker(image: etree._Element) -> bool:
    """At most one pixel wide and high, by attributes or style."""
    if image.get("width") is None and image.get("style") is None:
        return False
    styled = {name.lower(): value for name, value in _STYLE_LENGTH.findall(attribute(image, "style"))}
    sizes = []
    for name in ("width", "height"):
        number = _LEADING_NUMBER.fullmatch(attribute(image, name))
        size = float(number[1]) if number else None
        if size is None and name in styled:
            size = float(styled[name].strip(".") or 0) if styled[name].count(".") < 2 else None
        sizes.append(size)
    return all(size is not None and size <= 1 for size in sizes)


def attribute(element: etree._Element, name: str) -> str:
    return (element.get(name) or "").strip()
