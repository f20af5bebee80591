"""The body of an item for readers, as far as it depends on the item and its feed's addresses alone.

It can be kept: archived images, which come later and may go, are put in when it is served.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape, unescape
from json.encoder import encode_basestring
from urllib.parse import unquote

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.links import web_base
from rss_pipeline.collector.parse.sections import Sections
from rss_pipeline.collector.sanitize.html import text_of, with_link_rel, with_marks
from rss_pipeline.collector.sanitize.shown import files_beside, shown_html
from rss_pipeline.collector.sanitize.text import cut, legal, one_line, title_line

LINK_REL = "noopener noreferrer"
_MOST_TITLE_CHARACTERS = 500
_TITLE_OF_TEXT_CHARACTERS = 100
_MOST_PLAIN_CHARACTERS = 4_000_000
_TAG = re.compile(r"<[^<>]*+>?")
_BLOCK = re.compile(
    r"</?(?:p|div|br|hr|li|h[1-6]|tr|dt|dd|blockquote|pre|section|article|figure|figcaption)\b[^<>]*+>?",
    re.IGNORECASE,
)
_WITHOUT_TEXT = Sections((r"<!--", "-->"), (r"(?i:<script\b)", "</script>"), (r"(?i:<style\b)", "</style>"))
_ANY_BASE = "https://feed.invalid/a/b"
_PLAIN_URL = re.compile("[A-Za-z0-9/:.?=%_~-]*")
"""Written in HTML and JSON as it is."""
_USUAL_URL = re.compile("[A-Za-z0-9/:.?=%_~&;,+@!$-]*")
"""Written so but for `&`, and without a fragment."""
_MARK = "\x02"
"""Around the URL of each image and poster; sanitized HTML has no such character."""
_MARK_BYTE = _MARK.encode()
_ESCAPED_MARK = "\\u0002"
"""As JSON has it."""

Pieces = tuple[bytes | memoryview, ...]
"""Bytes, one piece behind the other: what is long is copied once, when it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodySource:
    """The parts of an item and of its feed that a body is made of."""

    text: str
    """The content, or the summary of an item without."""
    enclosures: tuple[Enclosure, ...]
    title: str | None
    base_url: str | None
    link: str | None
    feed_link: str | None
    feed_url: str | None
    omitted: str | None = None
    """The sentence about what was too large to be stored."""

    @property
    def bases(self) -> tuple[str | None, ...]:
        """The bases of references; the first usable one counts."""
        return (self.base_url, self.link, self.feed_link, self.feed_url)


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeBody:
    """A body without archived images."""

    marked: bytes
    """Its sanitized HTML, for `with_places` and `without_marks`."""
    title_of_text: str | None
    """The title, made of the text, file or address, of an item without one; None for an item with a title."""
    files: tuple[Enclosure, ...]
    """The enclosures that it does not show."""
    of_feed: bool
    """It has references that are resolved against the feed's link or its URL."""


def safe_body(source: BodySource) -> SafeBody:
    """The body of an item."""
    html = _html(source, source.bases)
    # Another base gives other references; few items have none of their own.
    has_base = any(web_base(each) for each in source.bases[:2])
    title = None
    if not plain_title(source.title):
        title = text_of(source.text, limit=_TITLE_OF_TEXT_CHARACTERS)
        title = title or title_of_place(source.enclosures, source.link)
    return SafeBody(
        marked=_marked(html),
        title_of_text=title,
        files=tuple(files_beside(html, source.enclosures)),
        of_feed=not has_base and "<" in html and html != _html(source, (_ANY_BASE,)),
    )


def title_of_place(enclosures: Iterable[Enclosure], link: str | None) -> str:
    """The title of an item that has neither title nor text: the name of its first file, else its address."""
    names = (unquote(each.url.partition("#")[0].partition("?")[0].rpartition("/")[2]) for each in enclosures)
    name = next((line for each in names if (line := one_line(each, limit=_TITLE_OF_TEXT_CHARACTERS))), "")
    return name or one_line(link, limit=_TITLE_OF_TEXT_CHARACTERS)


def with_places(marked: bytes, place: Callable[[str], str | None], placed: Mapping[bytes, bytes]) -> Pieces:
    """The HTML as a string of JSON; `place` gives the URL to put for an image's, or None.

    A fragment stays behind the URL: `place` is called without it. Nothing is parsed, nor decoded: an answer
    has some MB of HTML, and a thousand images. `placed` has what `usual_places` made of the same.
    """
    whole, pieces, end = memoryview(marked), list[bytes | memoryview]((b'"',)), 0
    # `split` looks at each byte by itself.
    while (start := marked.find(_MARK_BYTE, end)) >= 0:
        pieces.append(whole[end:start])
        end = marked.index(_MARK_BYTE, start + 1)
        url = marked[start + 1 : end]
        pieces.append(placed.get(url) or _placed(url, place))
        end += 1
    return (*pieces, whole[end:], b'"')


def _placed(written: bytes, place: Callable[[str], str | None]) -> bytes:
    url, mark, fragment = unescape(json.loads(b'"%b"' % written)).partition("#")
    new = place(url)
    return written if new is None else _escaped(escape(new + mark + fragment))


def has_images(marked: bytes) -> bool:
    """True if there is an image in it, or the poster of a video."""
    return _MARK_BYTE in marked


def usual_places(urls: Iterable[tuple[str, str]]) -> dict[bytes, bytes]:
    """The usual ones of pairs of an image's URL and the URL to put for it, as both are written in HTML and
    JSON: in a quarter of the time that `place` takes."""
    return {
        url.replace("&", "&amp;").encode(): new.encode()
        for url, new in urls
        if _USUAL_URL.fullmatch(url) and _PLAIN_URL.fullmatch(new)
    }


def without_marks(marked: bytes) -> str:
    """The HTML with its images as they are published."""
    html: str = json.loads(b'"%b"' % marked.replace(_MARK_BYTE, b""))
    return html


def _marked(html: str) -> bytes:
    """HTML as a string of JSON without its quotes, with marks."""
    if "<img" not in html and "<video" not in html:
        return _escaped(html)
    marked = with_marks(html, _MARK)
    if _ESCAPED_MARK in html:
        return _MARK_BYTE.join([_escaped(piece) for piece in marked.split(_MARK)])
    return _escaped(marked).replace(_ESCAPED_MARK.encode(), _MARK_BYTE)


def _escaped(text: str) -> bytes:
    # `json.dumps` would make an encoder each time.
    return encode_basestring(text)[1:-1].encode()


def plain_title(title: str | None) -> str:
    """An item's own title on one line; empty if it has none."""
    return title_line(title, limit=_MOST_TITLE_CHARACTERS)


def _html(source: BodySource, bases: Sequence[str | None]) -> str:
    html = shown_html(source.text, source.enclosures, bases=bases)
    html = _plain(source.text) if html is None else with_link_rel(html, LINK_REL)
    if source.omitted:
        html += f"<p>This item is too large to be stored whole: {escape(source.omitted, quote=False)}.</p>"
    return html


def _plain(html: str) -> str:
    """The text of HTML that cannot be read safely, in its paragraphs; empty if there is none.

    Tags go by their brackets only, in linear time.
    """
    paragraphs: list[str] = []
    left = _MOST_PLAIN_CHARACTERS
    for piece in _BLOCK.split(_WITHOUT_TEXT.sub(lambda _: " ", html)):
        words = unescape(_TAG.sub(" ", piece)).encode("utf-8", "ignore").decode()
        if not (text := " ".join(legal(words).split())):
            continue
        paragraphs.append(f"<p>{escape(cut(text, limit=max(left, 1)), quote=False)}</p>")
        left -= len(text)
        if left < 0:
            paragraphs.append("<p>The text goes on; it is too long to be shown whole.</p>")
            break
    return "".join(paragraphs)
