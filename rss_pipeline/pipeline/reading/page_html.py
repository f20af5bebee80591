"""Sanitized HTML of an item as the reader's pages show it.

Nothing is requested from a publisher that the user did not choose, and nothing moves while images load. What
is sanitized is collector.sanitize.html's; apps get that as it is. Here it is changed tag by tag: nh3 writes
each tag in one way, and a `<` that begins none as `&lt;`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from urllib.parse import unquote, urldefrag, urlsplit

from rss_pipeline.collector.models.image_size import ImageSize

_CHANGED = "a|img|picture|source|track|audio|video|main|nav|aside|header|footer|h[1-6]|pre|table"
_TAG = re.compile(
    rf'<(?P<end>/?)(?P<name>[a-zA-Z][^ <>/]*+(?= )|{_CHANGED})(?P<attributes>(?: [^ "=<>]++="[^"]*+")*+)>'
)
"""A tag with attributes, which may contain `<`, or one that is changed without any."""
_HREF = re.compile(r' href="([^"]*+)"')
_HREF_OF_PART = re.compile(r' href="([^"#]*+#[^"]++)"')
_NAMED = re.compile(r'<(?!img |source |track |picture )[a-zA-Z][^ <>/]*+((?: [^ "=<>]++="[^"]*+")++)>')
"""A tag that keeps its place on the page."""
_NAMES = ("id", "name")
_CHECKED = ("lang", "headers", "href", *_NAMES)
_ATTRIBUTE = re.compile(r' ([^ "=<>]++)="([^"]*+)"')
_HEADING = re.compile(r"<h([1-6])[ >]")
_LENGTH = re.compile(r"\s*([0-9]{1,5})(?:\.[0-9]*)?(?:px)?\s*")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_MOST_PIXELS = 10_000
_ALT_CHARACTERS = 200
_HOST_CHARACTERS = 80
_LANDMARKS = frozenset({"main", "nav", "aside", "header", "footer"})
"""Elements that are parts of a page for readers without sight. An item's are not parts of ours."""
_FIRST_HEADING = 2
"""Below the item's title, a `<h1>` or `<h2>`."""
_KEPT_OF_IMAGES = frozenset({"title", "dir", "lang"})
_DROPPED = frozenset({"picture", "track"})
_TARGET = ' target="_blank"'
_OUTSIDE = f'rel="noopener noreferrer"{_TARGET}'

Attributes = dict[str, str]
"""By name, values as they are written: escaped."""


@dataclass(frozen=True, slots=True)
class PlacedImage:
    """An archived image: where a page finds it, and its size if that is known."""

    url: str
    size: ImageSize | None


def page_html(
    html: str,
    *,
    placed: Callable[[str], PlacedImage | None],
    shows_publishers_images: bool,
    addresses: Sequence[str | None] = (),
    anchor: str = "",
) -> str:
    """`html`, which is sanitized, for a page.

    `placed` gives the archived image of a `src`. Any other image is a link to it, or, with
    `shows_publishers_images`, an `<img>` that requests it from its publisher. Every `<img>` says its size, or
    has the class `unsized`. Audio and video are requested once somebody plays them. A table, or a text whose
    lines are kept, scrolls in itself, and can be reached by the keyboard.

    A link to a part of the item, by one of its `addresses` (a footnote), leads there on the page. The part is
    named `anchor` and a number: no publisher's id is an id of our page, where it could hide ours.
    """
    if "<" not in html:
        return html
    highest = min((int(level) for level in _HEADING.findall(html)), default=_FIRST_HEADING)
    parts = _parts(html, addresses, anchor)
    writer = _Writer(placed, shows_publishers_images, parts, demotion=_FIRST_HEADING - highest)
    return _TAG.sub(writer.tag, html) + writer.left()


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an item that links of its own lead to."""

    by_name: Mapping[str, str]
    """Our id of each, by the publisher's as it is written."""
    by_href: Mapping[str, str]
    """Our id of the part that a link leads to, by its `href` as it is written."""


_NO_PARTS = _Parts({}, {})


def _parts(html: str, addresses: Sequence[str | None], anchor: str) -> _Parts:
    hrefs = dict.fromkeys(_HREF_OF_PART.findall(html))
    own = {_document(each) for each in addresses if each}
    if not hrefs or not own:
        return _NO_PARTS
    names: dict[str, str] = {}
    for tag in _NAMED.findall(html):
        for name, value in _ATTRIBUTE.findall(tag):
            if name in _NAMES and value:
                names.setdefault(unescape(value), value)
    by_name: dict[str, str] = {}
    by_href: dict[str, str] = {}
    for href in hrefs if names else ():
        document, fragment = urldefrag(unescape(href))
        # As browsers look for it: as it is, then decoded (https://html.spec.whatwg.org/#find-a-potential-indicated-element).
        name = next((each for each in (fragment, unquote(fragment)) if each in names), None)
        if name is not None and _document(document) in own:
            by_href[href] = by_name.setdefault(names[name], f"{anchor}-{len(by_name) + 1}")
    return _Parts(by_name, by_href)


def _document(url: str) -> tuple[str, ...]:
    """The address without its fragment, in the one form of all that are the same."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return (url,)
    return parts.scheme.lower(), parts.netloc.lower(), unquote(parts.path) or "/", unquote(parts.query)


class _Writer:
    """One item's tags in their order."""

    def __init__(
        self,
        placed: Callable[[str], PlacedImage | None],
        shows_publishers_images: bool,
        parts: _Parts,
        *,
        demotion: int,
    ) -> None:
        self._placed = placed
        self._shows = shows_publishers_images
        self._demotion = demotion
        self._parts = parts
        self._named: set[str] = set()
        """Ids that were written: a publisher may have given one twice."""
        self._links: list[str | None] = []
        """The `href` of each open `<a>`, None for one without."""
        self._behind: list[str] = []
        """Links to images that were in a link: a link cannot contain another."""
        self._media = 0
        self._tables = 0

    def tag(self, found: re.Match[str]) -> str:
        name, is_end = found["name"], bool(found["end"])
        if name in _DROPPED:
            return ""
        if name == "a":
            return self._end_of_link() if is_end else self._link(found["attributes"])
        if name == "img":
            return self._image(_attributes(found["attributes"]))
        if name in ("audio", "video"):
            self._media += -1 if is_end else 1
            return found[0] if is_end else self._player(name, _attributes(found["attributes"]))
        if name == "source":
            return f"<source{self._kept(found['attributes'])}>" if self._media > 0 else ""
        if name == "table":
            return self._table(found["attributes"], is_end=is_end)
        if name in _LANDMARKS:
            name = "div"
        elif name[0] == "h" and name[1:].isdigit():
            name = f"h{min(int(name[1:]) + self._demotion, 6)}"
        if is_end:
            return f"</{name}>"
        scrolling = _scrolling("Preformatted text") if name == "pre" else ""
        return f"<{name}{self._kept(found['attributes'])}{scrolling}>"

    def left(self) -> str:
        """The rest, to be written at the end."""
        behind, self._behind = self._behind, []
        return "".join(behind)

    def _link(self, attributes: str) -> str:
        href = _HREF.search(attributes)
        self._links.append(href and href[1])
        if href is None:
            return _start("span", self._name(_attributes(attributes)))
        leaves = _WEB.match(href[1]) and href[1] not in self._parts.by_href
        return f"<a{self._kept(attributes)}{_TARGET if leaves else ''}>"

    def _table(self, attributes: str, *, is_end: bool) -> str:
        self._tables += -1 if is_end else 1
        if is_end:
            return "</table>" if self._tables else "</table></div>"
        table = f"<table{self._kept(attributes)}>"
        return table if self._tables > 1 else f'<div class="wide"{_scrolling("Table")}>{table}'

    def _kept(self, attributes: str) -> str:
        """The attributes of a tag as they are written, without those that a page cannot have."""
        if not any(f' {name}="' in attributes for name in _CHECKED):
            return attributes
        return _written(self._own(_attributes(attributes)))

    def _own(self, attributes: Attributes) -> Attributes:
        """The attributes with our names of the item's parts in place of the publisher's."""
        kept = {name: value for name, value in attributes.items() if name not in _NAMES}
        part = self._parts.by_href.get(kept.get("href", ""))
        if part is not None:
            kept["href"] = f"#{part}"
        return kept | self._name(attributes)

    def _name(self, attributes: Attributes) -> Attributes:
        """Our id, if this is a part that a link leads to."""
        for each in _NAMES:
            part = self._parts.by_name.get(attributes.get(each, ""))
            if part is not None and part not in self._named:
                self._named.add(part)
                return {"id": part}
        return {}

    def _end_of_link(self) -> str:
        end = "</a>" if not self._links or self._links.pop() is not None else "</span>"
        return end if self._links else end + self.left()

    def _image(self, attributes: Attributes) -> str:
        width, height = _length(attributes.get("width")), _length(attributes.get("height"))
        if (width, height) != (None, None) and max(width or 0, height or 0) <= 1:
            # It counts readers.
            return ""
        src, alt = attributes.get("src", ""), attributes.get("alt", "")
        image = self._placed(unescape(src))
        if image is not None:
            found = {"src": escape(image.url), **_sides(width, height, image.size)}
        elif not _WEB.match(src):
            return alt
        elif self._shows:
            found = {"src": src, "referrerpolicy": "no-referrer", **_sides(width, height, None)}
        else:
            return self._image_link(src, alt)
        if not alt and any(self._links):
            # The name of a link that has no text.
            alt = "Image"
        kept = {name: value for name, value in attributes.items() if name in _KEPT_OF_IMAGES}
        return _start("img", {**found, "alt": alt, **kept, "loading": "lazy", "decoding": "async"})

    def _image_link(self, src: str, alt: str) -> str:
        alt = escape(unescape(alt).strip()[:_ALT_CHARACTERS])
        words = f"Image at {_host(src)}" + (f": {alt}" if alt else "")
        link = f'<a class="image-link" href="{src}" {_OUTSIDE} dir="auto">{words}</a>'
        if not self._links:
            return f" {link} "
        if src in self._links:
            return words
        self._behind.append(f" {link} ")
        return alt or "Image"

    def _player(self, name: str, attributes: Attributes) -> str:
        sides = {side: _length(attributes.pop(side, None)) for side in ("width", "height")}
        if not self._shows or not _WEB.match(attributes.get("poster", "")):
            attributes.pop("poster", None)
        attributes |= {side: str(length) for side, length in sides.items() if length}
        return _start(name, {**self._own(attributes), "controls": "", "preload": "none"})


def _scrolling(label: str) -> str:
    """Attributes of what scrolls sideways: without a mouse it is focused first, and says what it is."""
    return f' tabindex="0" role="group" aria-label="{label}"'


def _attributes(text: str) -> Attributes:
    attributes = dict(_ATTRIBUTE.findall(text))
    if "lang" in attributes and not _LANGUAGE.fullmatch(attributes["lang"]):
        del attributes["lang"]
    # It names ids, and those are not the publisher's.
    attributes.pop("headers", None)
    return attributes


def _start(name: str, attributes: Attributes) -> str:
    return f"<{name}{_written(attributes)}>"


def _written(attributes: Attributes) -> str:
    return "".join(f' {name}="{value}"' for name, value in attributes.items())


def _length(text: str | None) -> int | None:
    """Pixels; None for what is none, or more than a page has."""
    found = _LENGTH.fullmatch(text) if text else None
    length = int(found[1]) if found else None
    return length if length is not None and length <= _MOST_PIXELS else None


def _sides(width: int | None, height: int | None, size: ImageSize | None) -> Attributes:
    """Width and height with the proportions of the file, which the browser takes once it is there."""
    if size is not None:
        if width:
            height = round(width * size.height / size.width)
        elif height:
            width = round(height * size.width / size.height)
        else:
            width, height = size.width, size.height
        width, height = max(width, 1), max(height, 1)
    if not width or not height:
        return {"class": "unsized"}
    return {"width": str(width), "height": str(height)}


def _host(src: str) -> str:
    try:
        host = urlsplit(unescape(src)).hostname
    except ValueError:
        host = None
    return escape((host or "another site")[:_HOST_CHARACTERS])
