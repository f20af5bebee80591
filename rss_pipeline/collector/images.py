"""The images of an item: which URLs its content shows.

Nothing is downloaded here, and the HTML is not changed.
"""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urldefrag

from lxml import etree

from rss_pipeline.collector.links import absolute, web_base
from rss_pipeline.collector.models import Item

_MAY_HOLD_IMAGES = re.compile(r"<(?:img|picture|noscript|amp-img)\b|srcset", re.IGNORECASE)

_LAZY_SRC = (
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
_LAZY_SRCSET = ("data-srcset", "data-lazy-srcset", "data-original-set")
_NOT_FETCHED = re.compile(r"\s*(?:data|cid|javascript|about|blob|file|mailto):", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"(?:^|[/_.-])(?:placeholder|blank|spacer|space|loading\d*|lazy(?:load|[_-]loading)?|transparent|trans|"
    r"pixel|1x1|grey|gray|clear|dot|none|nothing|default[_-]?img)\.(?:gif|png|jpe?g|svg|webp)(?:[?#]|$)",
    re.IGNORECASE,
)
_STYLE_LENGTH = re.compile(r"(?:^|;)\s*(width|height)\s*:\s*([0-9.]+)\s*px", re.IGNORECASE)
_DESCRIPTOR = re.compile(r"([0-9]+(?:\.[0-9]+)?)[wx]")
_LEADING_NUMBER = re.compile(r"\s*([0-9]+)\s*(?:px)?\s*", re.IGNORECASE)


def find_images(html: str, *, bases: Sequence[str | None]) -> tuple[str, ...]:
    """Absolute http(s) URLs of the images in `html`, distinct, in document order, without fragments.

    One URL an image: `src`, or where that is missing, inline data or a placeholder, the lazy-loading
    attributes, then the largest of `srcset`, then the `<source>`s of its `<picture>`. Images in a
    `<noscript>` count too. Left out are 1x1 trackers and what cannot be fetched (data:, cid:).
    References are resolved against the first usable of `bases`.
    """
    if not _MAY_HOLD_IMAGES.search(html):
        return ()
    base = next((usable for each in bases if (usable := web_base(each))), None)
    found: dict[str, None] = {}
    for element in _image_elements(html):
        if element.tag == "picture":
            references = _picture_references(element)
        elif _is_tracker(element) or next(element.iterancestors("picture"), None) is not None:
            continue
        else:
            references = _references(element)
        for reference in references:
            if url := image_url(reference, base):
                found.setdefault(url)
                break
    return tuple(found)


def _image_elements(html: str) -> Iterator[etree._Element]:
    """`<img>`, `<amp-img>` and `<picture>` in document order.

    The tree is the one that BeautifulSoup's lxml builder makes, without its Python objects: they take
    twenty times as long, and this runs on every item. Not Python's html.parser: it is quadratic before
    3.11.14, and `?x=1&copy=2` becomes `©=2` in it.
    """
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True)
    try:
        root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    except etree.ParserError:  # nothing but comments or white space
        return iter(())
    return iter(()) if root is None else root.iter("img", "amp-img", "picture")


def image_url(reference: str, base: str | None) -> str | None:
    """The URL an image reference names: absolute, http(s), without fragment; None if there is none."""
    if _NOT_FETCHED.match(reference):
        return None
    url = absolute(reference, (base,))
    return urldefrag(url).url if url and web_base(url) else None


def image_bases(item: Item, feed_link: str | None, feed_url: str | None) -> list[str | None]:
    """What an item's image references are relative to, the first usable one counts."""
    return [item.base_url, feed_link, item.link, feed_url]


def item_images(item: Item, feed_link: str | None, feed_url: str | None) -> tuple[str, ...]:
    """The images of an item, distinct: those of its content, then its enclosures of type image/*."""
    bases = image_bases(item, feed_link, feed_url)
    found = dict.fromkeys(find_images(item.content_html, bases=bases) if item.content_html else ())
    base = next((usable for each in bases if (usable := web_base(each))), None)
    for enclosure in item.enclosures:
        if (enclosure.type or "").strip().lower().startswith("image/") and (
            url := image_url(enclosure.url, base)
        ):
            found.setdefault(url)
    return tuple(found)


def _references(image: etree._Element) -> Iterator[str]:
    """What one `<img>` may show, the best first."""
    src = _attribute(image, "src")
    doubtful = not src or _NOT_FETCHED.match(src) is not None or _PLACEHOLDER.search(src) is not None
    if not doubtful:
        yield src
    for name in _LAZY_SRC:
        value = _attribute(image, name)
        # Some of these names also carry flags ("true") and widths.
        if value and ("/" in value or "." in value) and not _NOT_FETCHED.match(value):
            yield value
    for name in ("srcset", *_LAZY_SRCSET):
        if (largest := _largest(_attribute(image, name))) and not _PLACEHOLDER.search(largest):
            yield largest


def _picture_references(picture: etree._Element) -> Iterator[str]:
    images = list(picture.iter("img", "amp-img"))
    if any(_is_tracker(image) for image in images):
        return
    for image in images:
        yield from _references(image)
    for source in picture.iter("source"):
        for name in ("srcset", *_LAZY_SRCSET):
            if largest := _largest(_attribute(source, name)):
                yield largest


def _largest(srcset: str) -> str | None:
    """The candidate with the greatest width or density; of equals the first."""
    best: tuple[float, str] | None = None
    for url, descriptor in _candidates(srcset):
        if _NOT_FETCHED.match(url):
            continue
        size = _DESCRIPTOR.match(descriptor)
        weight = float(size[1]) if size else 1.0
        if best is None or weight > best[0]:
            best = (weight, url)
    return None if best is None else best[1]


def _candidates(srcset: str) -> Iterator[tuple[str, str]]:
    """URL and descriptor of each candidate, as HTML's "parse a srcset attribute" splits them.

    A URL ends at white space only, for it may hold commas; yet `a.jpg 1x,b.jpg 2x` is common too, where
    the next URL is glued to the descriptor by its comma.
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


def _is_tracker(image: etree._Element) -> bool:
    """At most one pixel wide and high, by attributes or style."""
    styled = {name.lower(): value for name, value in _STYLE_LENGTH.findall(_attribute(image, "style"))}
    sizes = []
    for name in ("width", "height"):
        number = _LEADING_NUMBER.fullmatch(_attribute(image, name))
        size = float(number[1]) if number else None
        if size is None and name in styled:
            size = float(styled[name].strip(".") or 0) if styled[name].count(".") < 2 else None
        sizes.append(size)
    return all(size is not None and size <= 1 for size in sizes)


def _attribute(element: etree._Element, name: str) -> str:
    return (element.get(name) or "").strip()
