"""The characters by which an item's HTML names its images, for who replaces URLs in the text itself.

Which images an item has is find.py's decision. Here each tag is read as text, so that references are found as
they are written: relative, with `&amp;`, or as a candidate of a `srcset`.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from html import unescape

from rss_pipeline.collector.images.urls import resolver
from rss_pipeline.collector.parse.image_references import LAZY_SRC, LAZY_SRCSET, by_document_order

_TAG = re.compile(
    r"<(?:img|amp-img|amp-anim|source|object|embed|video|amp-video)(?=[\t\n\f\r /])", re.IGNORECASE
)
_ATTRIBUTE = re.compile(
    r"""[\t\n\f\r /]*+(?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*+)"""
    r"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'"""
    r"""|(?P<bare>[^\t\n\f\r >"'][^\t\n\f\r >]*+)|(?=>)))?+"""
)
_NAMES = frozenset(("src", *LAZY_SRC, "data", "poster", "data-poster"))
_SETS = frozenset(("srcset", *LAZY_SRCSET))
_AMPERSAND = re.compile("&(?:amp;|#0*38;|#[xX]0*26;)")


def written_references(
    html: str | None, urls: Collection[str], *, bases: Sequence[str | None]
) -> dict[str, str]:
    """By absolute URL, as `find_images` returns it, the first reference to each of these images in `html`,
    exactly as it is written there. What the HTML does not name is left out."""
    found: dict[str, str] = {}
    if not html or not urls:
        return found
    resolve, missing = resolver(bases), set(urls)
    for reference in _references(html):
        url = _url(reference, missing, resolve)
        if url is not None:
            found[url] = reference
            missing.discard(url)
            if not missing:
                break
    return found


def _references(html: str) -> Iterator[str]:
    for tag in _TAG.finditer(html):
        position = tag.end()
        while match := _ATTRIBUTE.match(html, position):
            position = match.end()
            name, value = match["name"].lower(), match["double"] or match["single"] or match["bare"]
            if not value:
                continue
            if name in _NAMES:
                yield value.strip()
            elif name in _SETS:
                yield from (reference for reference, _ in by_document_order(value))


def _url(reference: str, urls: Collection[str], resolve: Callable[[str], str | None]) -> str | None:
    """The URL among these that a reference means. Parsers differ on `&copy=2`, so each reading is tried."""
    readings = [reference]
    if "&" in reference:
        readings = [_AMPERSAND.sub("&", reference), reference, unescape(reference)]
    return next((url for each in readings if (url := resolve(each.strip())) in urls), None)
