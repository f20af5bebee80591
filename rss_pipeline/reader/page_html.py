"""Sanitized HTML of an item as the reader's pages show it.

Nothing is requested from a publisher that the user did not choose, and nothing moves while images load. What
is sanitized is collector.sanitize.html's; apps get that as it is. Here it is changed tag by tag: nh3 writes
each tag in one way, and a `<` that begins none as `&lt;`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape, unescape
from urllib.parse import urlsplit

from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.collector.sanitize.embeds import player
from rss_pipeline.collector.sanitize.replace import EMBEDDED

_CHANGED = "a|img|picture|source|track|audio|video|main|nav|aside|header|footer|h[1-6]|pre|table"
_TAG = re.compile(
    rf'<(?P<end>/?)(?P<name>[a-zA-Z][^ <>/]*+(?= )|{_CHANGED})(?P<attributes>(?: [^ "=<>]++="[^"]*+")*+)>'
)
"""A tag with attributes, which may contain `<`, or one that is changed without any."""
_HREF = re.compile(r' href="([^"]*+)"')
_ATTRIBUTE = re.compile(r' ([^ "=<>]++)="([^"]*+)"')
_HEADING = re.compile(r"<h([1-6])[ >]")
_LENGTH = re.compile(r"\A\s*([0-9]{1,5})(?:\.[0-9]*)?(?:px)?\s*")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}+(?:-[A-Za-z0-9]{2,8}+)*+")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_MOST_PIXELS = 10_000
_ALT_CHARACTERS = 200
_HOST_CHARACTERS = 80
_LANDMARKS = frozenset({"main", "nav", "aside", "header", "footer"})
"""Elements that are parts of a page for readers without sight. An item's are not parts of ours."""
_FIRST_HEADING = 2
"""Below the item's title, a `<h1>` or `<h2>`."""
_KEPT_OF_IMAGES = frozenset({"id", "title", "dir", "lang"})
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
    html: str, *, placed: Callable[[str], PlacedImage | None], shows_publishers_images: bool
) -> str:
    """`html`, which is sanitized, for a page.

    `placed` gives the archived image of a `src` or poster. Any other image is a link to it, or, with
    `shows_publishers_images`, an `<img>` that requests it from its publisher. Every `<img>` says its size, or
    has the class `unsized`. Audio and video are requested once somebody plays them: also a player of another
    site, whose link says in `data-frame` what the page's script loads then. A table, a formula with a
    line of its own, or a text whose lines are kept, scrolls in itself, and can be reached by the keyboard.
    """
    if "<" not in html:
        return html
    highest = min((int(level) for level in _HEADING.findall(html)), default=_FIRST_HEADING)
    writer = _Writer(placed, shows_publishers_images, demotion=_FIRST_HEADING - highest)
    return _TAG.sub(writer.tag, html) + writer.left()


class _Writer:
    """One item's tags in their order."""

    def __init__(
        self, placed: Callable[[str], PlacedImage | None], shows_publishers_images: bool, *, demotion: int
    ) -> None:
        self._placed = placed
        self._shows = shows_publishers_images
        self._demotion = demotion
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
            return f"<source{_kept(found['attributes'])}>" if self._media > 0 else ""
        if name == "table":
            return self._table(found["attributes"], is_end=is_end)
        if name in _LANDMARKS:
            name = "div"
        elif name[0] == "h" and name[1:].isdigit():
            name = f"h{min(int(name[1:]) + self._demotion, 6)}"
        if is_end:
            return f"</{name}>"
        scrolling = _scrolling("Preformatted text") if name == "pre" else ""
        if name == "math" and ' display="block"' in found["attributes"]:
            # It is a formula for who hears it, and no group.
            scrolling = ' tabindex="0"'
        return f"<{name}{_kept(found['attributes'])}{scrolling}>"

    def left(self) -> str:
        """The rest, to be written at the end."""
        behind, self._behind = self._behind, []
        return "".join(behind)

    def _link(self, attributes: str) -> str:
        href = _HREF.search(attributes)
        self._links.append(href and href[1])
        if href is None:
            found = _attributes(attributes)
            return _start("span", {"id": found["id"]} if "id" in found else {})
        kept = _kept(attributes)
        if f' class="{EMBEDDED}"' in kept:
            kept = kept.replace(f' class="{EMBEDDED}"', _player_of(href[1]), 1)
        target = ' target="_blank"' if _WEB.match(href[1]) else ""
        return f"<a{kept}{target}>"

    def _table(self, attributes: str, *, is_end: bool) -> str:
        self._tables += -1 if is_end else 1
        if is_end:
            return "</table>" if self._tables else "</table></div>"
        table = f"<table{_kept(attributes)}>"
        return table if self._tables > 1 else f'<div class="scrolls"{_scrolling("Table")}>{table}'

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
        elif src[:5].lower() == "data:":
            found = {"src": src, **_sides(width, height, None)}
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
        poster = attributes.pop("poster", "")
        if image := self._placed(unescape(poster)) if poster else None:
            attributes["poster"] = escape(image.url)
        elif self._shows and _WEB.match(poster):
            attributes["poster"] = poster
        attributes |= {side: str(length) for side, length in sides.items() if length}
        return _start(name, {**attributes, "controls": "", "preload": "none"})


def _scrolling(label: str) -> str:
    """Attributes of what scrolls sideways: without a mouse it is focused first, and says what it is."""
    return f' tabindex="0" role="group" aria-label="{label}"'


def _player_of(href: str) -> str:
    """The attributes of a link to a player, if this is one."""
    found = player(unescape(href))
    if found is None:
        return ""
    origin = ' data-origin=""' if found.needs_origin else ""
    return f' class="{EMBEDDED} {found.kind}" data-frame="{escape(found.frame)}"{origin}'


def _kept(attributes: str) -> str:
    """The attributes of a tag as they are written, without those that a page cannot have."""
    if ' lang="' not in attributes and ' headers="' not in attributes:
        return attributes
    return _written(_attributes(attributes))


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
