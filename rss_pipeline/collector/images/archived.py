"""An item's HTML with archived images in place of the originals.

`find.py` finds the images of an item; the caller passes the URLs of archived ones. No store is read or
changed.

The parsed tree decides which elements are images and what they show. Each attribute that changes is then
rewritten at its position in the text, which is found by the tree's element and never by a search for the URL
(`a.jpg` is the start of `a.jpg?w=100`, `&` may be written `&amp;`). The tree is not serialized, because that
would change other text: libxml2's serializer turns `href="#设想"` into `#%E8%AE%BE...`, loses elements deeper
than 2,048 levels and wraps a fragment in `<html><body>`; BeautifulSoup's does not escape as it read
(`<iframe>`, `<xmp>`) and takes twenty times as long; and both have repaired `<b><i></b>` in a way of their
own, which is not a browser's. So every byte outside image attributes stays the same, and every reader builds
the same tree.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from urllib.parse import quote

from lxml import etree

from rss_pipeline.collector.images.find import ShownImage, attribute, may_hold_images, shown_images, tree
from rss_pipeline.collector.images.plain import attribute_value, with_places
from rss_pipeline.collector.images.urls import resolver
from rss_pipeline.collector.parse.image_references import (
    DESCRIPTOR,
    LAZY_SRC,
    LAZY_SRCSET,
    by_size,
    may_be_reference,
)

_TAG = re.compile(r"<(?:img|amp-img|amp-anim|source)(?=[\t\n\f\r />])", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""[\t\n\f\r /]*+(?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*+)"""
    r"""(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"|'[^']*+'|[^\t\n\f\r >"'][^\t\n\f\r >]*+|(?=>)))?+"""
)
"""An attribute within a start tag, as a browser reads it (HTML 13.2.5.32 to 13.2.5.39)."""

_NAMES = frozenset(("src", *LAZY_SRC))
_SETS = frozenset(("srcset", *LAZY_SRCSET))
_MOST_JUDGED = 20
"""Texts like tags that are judged one by one, each by a parse: of more, images keep their originals."""
_BLANK = re.compile(r"\s")


def render(html: str, *, archived: Mapping[str, str], bases: Sequence[str | None]) -> str:
    """`html` with archived images as a browser shows them; everything else stays byte for byte the same.

    `archived` maps an image's absolute URL, as `find_images` returns it, to the URL of the archived image.
    References are resolved against the first usable of `bases`. If an image is archived,

    - each attribute that names it (`src`, the lazy-loading ones) names the archived one, with its fragment;
    - a `srcset` with archived candidates becomes the largest of them, with its descriptor: the layout stays,
      and no other original is requested;
    - an `<img>` that shows it by an attribute other than `src` (which has a placeholder or is missing) gets
      it as `src` too, since without the site's JavaScript a browser uses nothing else;
    - a `srcset` without an archived candidate becomes the image that its `<img>` or `<picture>` shows, since
      a browser prefers it to `src`, and would request an original that has a copy.

    All other references to images that are not archived stay as they are. Rendering twice gives the same.
    """
    if not archived or not may_hold_images(html):
        return html
    resolve = resolver(bases)

    def place(reference: str) -> str | None:
        url = resolve(reference)
        found = None if url is None else archived.get(url)
        return None if found is None else _with_fragment(found, reference)

    rendered = with_places(html, place)
    return render_by_tree(html, archived, resolve) if rendered is None else rendered


def render_by_tree(html: str, archived: Mapping[str, str], resolve: Callable[[str], str | None]) -> str:
    """`render` of any HTML; `resolve` is the `resolver` of its bases."""
    tags = list(_TAG.finditer(html))
    # An attribute that leads from the tree back to the text. The document cannot hold its own hash.
    mark = "m" + hashlib.blake2b(html.encode("utf-8", "replace"), digest_size=8).hexdigest()
    tags, root = _with_elements(html, tags, mark)
    if root is None:
        return html
    images = [
        (int(number), each)
        for each in shown_images(root, resolve)
        if not each.is_picture and (number := each.element.get(mark)) is not None
    ]
    starts = [tags[number].end() for number, _ in images]
    parts: list[str] = []
    done = 0
    for (_, each), (start, end) in zip(images, pairwise([*starts, len(html)]), strict=True):
        values = _new_values(each, archived, resolve)
        for begin, stop, text in _edits(html, start, end, values) if values else ():
            parts += (html[done:begin], text)
            done = stop
    return "".join((*parts, html[done:])) if parts else html


def _with_elements(
    html: str, tags: list[re.Match[str]], mark: str
) -> tuple[list[re.Match[str]], etree._Element | None]:
    """The tags among the texts like tags, and the tree in which each of them has its mark.

    Text like a tag in a comment, a script or another tag's attribute has no element with its mark. In an
    attribute the mark would be part of a URL, and in one without quotes it ends the value: what follows may
    then be read as something else. So where an element has no mark, they are judged one after the other.
    """
    root = tree(_marked(html, [tag.end() for tag in tags], mark))
    real = _numbers(root, mark)
    left = [tag for number, tag in enumerate(tags) if number in real]
    of_left = root if len(left) == len(tags) else tree(_marked(html, [tag.end() for tag in left], mark))
    if all(each.get(mark) is not None for each in _elements(of_left)):
        return left, of_left
    for _ in range(_MOST_JUDGED):
        # Marks before the first one that is none are those of tags, and change nothing.
        wrong = next((number for number in range(len(tags)) if number not in real), None)
        if wrong is None:
            return tags, root
        tags = [*tags[:wrong], *tags[wrong + 1 :]]
        root = tree(_marked(html, [tag.end() for tag in tags], mark))
        real = _numbers(root, mark)
    return left, of_left


def _numbers(root: etree._Element | None, mark: str) -> set[int]:
    return {int(number) for each in _elements(root) if (number := each.get(mark)) is not None}


def _elements(root: etree._Element | None) -> Iterator[etree._Element]:
    return iter(()) if root is None else root.iter("img", "amp-img", "amp-anim", "source")


def _marked(html: str, places: Sequence[int], mark: str) -> str:
    parts = [html[: places[0]]] if places else [html]
    for number, (start, end) in enumerate(pairwise([*places, len(html)])):
        parts.append(f" {mark}={number} {html[start:end]}")
    return "".join(parts)


def _new_values(
    each: ShownImage, archived: Mapping[str, str], resolve: Callable[[str], str | None]
) -> dict[str, str]:
    """By name, the attributes of one element that change, and the one that is added."""
    element, is_source = each.element, each.element.tag == "source"
    image = None if is_source else each.url
    if image is None and each.picture is not None:
        image = each.picture.url
    place = archived.get(image) if image else None
    values: dict[str, str] = {}
    names = element.keys()
    for name in names:
        if name in _SETS:
            if candidate := _archived_candidate(attribute(element, name), archived, resolve):
                values[name] = candidate
        elif name in _NAMES and not is_source:
            value = attribute(element, name)
            url = resolve(value) if name == "src" or may_be_reference(value) else None
            if url is not None and url in archived:
                values[name] = _with_fragment(archived[url], value)
                if url == image:
                    place = values[name]
    if place is None:
        return values
    if not is_source and resolve(attribute(element, "src")) != image:
        values["src"] = place
    if "srcset" in names and "srcset" not in values:
        values["srcset"] = _for_srcset(place)
    return values


def _archived_candidate(
    srcset: str, archived: Mapping[str, str], resolve: Callable[[str], str | None]
) -> str | None:
    """The largest archived candidate of a `srcset`, as its only one."""
    for reference, descriptor in by_size(srcset):
        url = resolve(reference)
        if url is not None and url in archived:
            place = _for_srcset(_with_fragment(archived[url], reference))
            return f"{place} {descriptor}" if DESCRIPTOR.fullmatch(descriptor) else place
    return None


def _with_fragment(place: str, reference: str) -> str:
    fragment = reference.partition("#")[2]
    return f"{place}#{fragment}" if fragment else place


def _for_srcset(url: str) -> str:
    """A URL as it is written in a `srcset`, which ends it at white space and cuts commas at both ends."""
    url = _BLANK.sub(lambda blank: quote(blank[0]), url)
    inner = url.strip(",")
    return url.replace(",", "%2C") if inner != url else url


def _edits(html: str, start: int, end: int, values: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """The replacements (start, end, text) in the order of the text. The tag's attributes begin at `start`.

    Of a duplicate attribute the first one counts.
    """
    missing = dict(values)
    found: list[tuple[int, int, str]] = []
    position = start
    while missing and (match := _ATTRIBUTE.match(html, position, end)):
        value = missing.pop(match["name"].lower(), None)
        if value is not None:
            found.append((match.end("name"), match.end(), attribute_value(value)))
        position = match.end()
    if "src" in missing:
        yield start, start, f" src{attribute_value(missing['src'])}"
    yield from found
