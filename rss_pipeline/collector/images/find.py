"""The images of an item: the attributes and elements that name them, and the URLs that its content shows.

Nothing is downloaded, and the HTML is not changed (`archived.py` puts archived images into it).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice

from lxml import etree

from rss_pipeline.collector.images.plain import PlainImage, plain_images
from rss_pipeline.collector.images.urls import image_url, resolver, usable_base
from rss_pipeline.collector.models.item import Enclosure, Item
from rss_pipeline.collector.parse.image_references import (
    image_references,
    is_one_pixel,
    is_tracker_url,
    source_references,
)
from rss_pipeline.collector.parse.pictures import has_picture_name, is_picture, picture_key

_SIGNS = (
    "<img",
    "srcset",
    "<picture",
    "<noscript",
    "<amp-img",
    "<amp-anim",
    "<object",
    "<embed",
    "<video",
    "<amp-video",
)
_OBJECTS = {"object": "data", "embed": "src"}
"""The elements that may be images, and the attributes that name them."""
_ELEMENTS = ("img", "amp-img", "amp-anim", "picture", "source", *_OBJECTS)
MOST_IMAGES = 10_000
"""Elements of one item that are read: a page shows some hundreds, a hostile one could fill a table."""


@lru_cache(maxsize=4)
def in_lower_case(html: str) -> str:
    """HTML in lower case; several look at the same text, one after the other."""
    return html.lower()


def may_hold_images(html: str) -> bool:
    """False if `find_images` certainly finds none; the HTML is not parsed."""
    if "<img" in html:
        return True
    lowered = in_lower_case(html)
    # An expression takes five times as long as this.
    return any(sign in lowered for sign in _SIGNS)


def find_images(html: str, *, bases: Sequence[str | None]) -> tuple[str, ...]:
    """Absolute http(s) URLs of the images in `html`, distinct, in document order, without fragments.

    One URL for each image: `src`, or if that is missing, inline data or a placeholder, the lazy-loading
    attributes, then the largest of `srcset`, then the `<source>`s of its `<picture>`. Images in a
    `<noscript>` count too, and objects that are images; the posters of videos come last. Trackers and URLs
    that cannot be fetched (data:, cid:) are left out. References are resolved against the first usable of
    `bases`.
    """
    images, posters = _images_and_posters(html, bases)
    return tuple(dict.fromkeys((*images, *posters)))


def _images_and_posters(html: str, bases: Sequence[str | None]) -> tuple[list[str], list[str]]:
    if not may_hold_images(html):
        return [], []
    resolve = resolver(bases)
    plain = plain_images(html)
    if plain is None:
        return images_by_tree(html, resolve)
    attributes = (partial(attribute, each) for each in plain)
    images = (_first(image_references(each), resolve) for each in attributes if not is_one_pixel(each))
    return [url for url in images if url], []


def images_by_tree(html: str, resolve: Callable[[str], str | None]) -> tuple[list[str], list[str]]:
    """The images and the posters of any HTML; `resolve` is the `resolver` of its bases."""
    root = tree(html)
    if root is None:
        return [], []
    images = [
        each.url
        for each in shown_images(root, resolve)
        if each.url and (each.is_picture or each.picture is None)
    ]
    videos = islice(root.iter("video", "amp-video"), MOST_IMAGES) if "poster" in html.lower() else ()
    references = ((attribute(each, name) for name in ("poster", "data-poster")) for each in videos)
    posters = (_first(filter(None, each), resolve) for each in references)
    return images, [url for url in posters if url]


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
    """An `<img>`, `<amp-img>`, `<amp-anim>`, `<picture>`, a `<source>` of a picture, or an object that is an
    image; and the URL of the image it shows.

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
    for element in islice(root.iter(*_ELEMENTS), MOST_IMAGES):
        picture = _innermost(element, above) if above else None
        each = ShownImage(element, picture)
        if element.tag == "picture":
            above[element] = each
            each.is_picture = True
        elif element.tag == "source":
            if picture is None:
                continue
            each.url = _first(source_references(partial(attribute, element)), resolve)
        elif element.tag in _OBJECTS:
            found.append(ShownImage(element, None, _object_image(element, resolve)))
            continue
        elif is_one_pixel(partial(attribute, element)):
            trackers.add(element)
        else:
            each.url = _first(image_references(partial(attribute, element)), resolve)
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


def _object_image(element: etree._Element, resolve: Callable[[str], str | None]) -> str | None:
    reference = attribute(element, _OBJECTS[element.tag])
    kind = attribute(element, "type").lower()
    is_image = kind.startswith("image/") or (not kind and has_picture_name(reference))
    return resolve(reference) if is_image and reference else None


def _first(references: Iterator[str], resolve: Callable[[str], str | None]) -> str | None:
    return next((url for reference in references if (url := resolve(reference))), None)


def image_bases(item: Item, feed_link: str | None, feed_url: str | None) -> list[str | None]:
    """The bases of an item's images; the first usable one counts, so an image is beside its article."""
    return [item.base_url, item.link, feed_link, feed_url]


def may_show_images(item: Item) -> bool:
    """False if `item_images` certainly finds none; the content is not parsed."""
    return bool(item.content_html and may_hold_images(item.content_html)) or any(
        map(is_picture, item.enclosures)
    )


def item_images(item: Item, feed_link: str | None, feed_url: str | None) -> tuple[str, ...]:
    """The images of an item as `images_in_order` has them."""
    bases = image_bases(item, feed_link, feed_url)
    return images_in_order(item.content_html, item.enclosures, bases=bases)


def images_in_order(
    html: str | None, enclosures: Iterable[Enclosure], *, bases: Sequence[str | None]
) -> tuple[str, ...]:
    """The images of an item, distinct, in the order in which one is chosen to stand for it.

    Those of its HTML; the pictures that its feed names beside it, in the order that parse/pictures.py has
    given them, of several sizes the first; the posters of videos.
    """
    images, posters = _images_and_posters(html, bases) if html else ([], [])
    base = usable_base(bases)
    beside: dict[str, str] = {}
    for each in enclosures:
        if is_picture(each) and not is_tracker_url(each.url) and (url := image_url(each.url, base)):
            beside.setdefault(picture_key(url), url)
    return tuple(dict.fromkeys((*images, *beside.values(), *posters)))


def attribute(element: etree._Element | PlainImage, name: str) -> str:
    return (element.get(name) or "").strip()


# Tags with so many attributes that a parser would take minutes.

_MOST_ATTRIBUTES = 500
_TAG_OR_COMMENT = re.compile(r"<(?:!--|[a-z])", re.IGNORECASE)
_TAG_PART = re.compile(r"(?P<end>>)|=\s*(?:\"[^\"]*\"?|'[^']*'?|[^\s>]*)|(?P<name>[^\s=>/]+)")
_QUOTED_END = re.compile(r"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")
"""A `>` in the value of an attribute."""
_FEW_ATTRIBUTES_CHARACTERS = 900
"""A name and a blank are two characters; a tenth is for what is added to a tag."""


def has_overloaded_tag(html: str) -> bool:
    """True if a tag has more than 500 attributes: libxml2 compares each with all before it, which takes a
    minute for a megabyte of them. The ends of tags are found roughly; a parser's time limit covers the
    rest."""
    if not may_have_overloaded_tag(html):
        return False
    at = 0
    has_end = True
    while start := _TAG_OR_COMMENT.search(html, at):
        at = start.end()
        attributes = 0
        if start[0].startswith("<!"):
            # Of comments that do not end, only the first is searched for its end: a text of "<!--" would
            # take time by the square of its length.
            end = html.find("-->", at) if has_end else -1
            has_end = end >= 0
            at = max(at, end + 3)
            continue
        for part in _TAG_PART.finditer(html, at):
            at = part.end()
            if part.lastgroup == "end":
                break
            attributes += part.lastgroup == "name"
            if attributes > _MOST_ATTRIBUTES:
                return True
    return False


def may_have_overloaded_tag(html: str) -> bool:
    """False if `has_overloaded_tag` is certainly false, which is seen in a tenth of the time.

    Then no value has a `>`, so that each tag ends at the next one, and none is long.
    """
    if _QUOTED_END.search(html):
        return True
    pieces = html.split(">")
    return max(map(len, pieces)) > _FEW_ATTRIBUTES_CHARACTERS and any(
        0 <= piece.find("<") < len(piece) - _FEW_ATTRIBUTES_CHARACTERS for piece in pieces
    )
