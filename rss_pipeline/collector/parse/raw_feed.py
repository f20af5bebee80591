"""The result of each format's reader: a feed and its items before identity and dates are decided.

Values and small helpers only; the readers are `rss_atom.py`, `json_feed.py` and `feedparser_fallback.py`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from typing import Any, TypeVar

from rss_pipeline.collector.models.item import Enclosure, ItemTree, PublisherHints
from rss_pipeline.collector.parse.dates.read import parse_date
from rss_pipeline.collector.parse.image_references import shows_picture


@dataclass(frozen=True, slots=True, kw_only=True)
class RawItem:
    """One item; strings as published, except for white space around the short ones."""

    guid: str | None = None
    is_about: bool = False
    """The guid is an rdf:about, which may be no more than the link."""
    link: str | None = None
    """As published, not resolved: it may become the guid."""
    url: str | None = None
    """The link, resolved."""
    title: str | None = None
    """As published: it may become part of the guid."""
    plain_title: str | None = None
    """The title as plain text; None where it is that already."""
    author: str | None = None
    """The first that the item itself names, as published."""
    authors: tuple[str, ...] = ()
    """All of them, also those that it has from its feed; white space collapsed."""
    dates: tuple[str, ...] = ()
    """Publication dates, the preferred first: the first may become part of the guid."""
    published: tuple[str, ...] = ()
    """Publication dates with those that are no part of an identity; empty where there are no such."""
    updates: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    further_files: tuple[Enclosure, ...] = ()
    """Files of an item without enclosures that other vocabularies name; they are no part of an identity."""
    pictures: tuple[Enclosure, ...] = ()
    """The pictures beside content and enclosures, the best first; they are no part of an identity either."""
    summary: str | None = None
    content_html: str | None = None
    fallback_html: str | None = None
    """Another text of the item, for one whose content says nothing; it is no part of an identity."""
    comments_url: str | None = None
    """The page on which readers discuss the item, resolved."""
    base_url: str | None = None
    json: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The object of a JSON Feed that it was read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFeed:
    """The feed of a document: its own fields and at most MAX_ITEMS items."""

    format: str
    title: str | None = None
    link: str | None = None
    description: str | None = None
    """Plain text."""
    language: str | None = None
    items: tuple[RawItem, ...] = ()
    dropped_items: int = 0
    cut_off: bool = False
    """The document ends before its feed does: items may be missing."""
    repairs: tuple[str, ...] = field(default=())
    is_ill_formed: bool = False
    """Repair did not help: the tolerant parser made its tree."""
    hints: PublisherHints = field(default_factory=PublisherHints)
    """From the feed's own fields only: without `updates`."""
    tree: ItemTree | None = None
    """The elements of the items, in their order; None if they were not read from a tree."""


_LINE_BREAK = re.compile("\r\n?|\n")
CUT_OFF = "the document is cut off; the item without an end was left out"
"""The repair of a document that ends early."""


class EscapedText(str):
    """Plain text as HTML, but for its line breaks: an identity may be made of it."""

    __slots__ = ()


def with_line_breaks(html: str | None) -> str | None:
    """HTML to show: that of plain text gets its line breaks."""
    if not isinstance(html, EscapedText):
        return html
    # Not by `splitlines`, for U+0085 may be an ellipsis.
    lines = _LINE_BREAK.split(html.strip(" \t\r\n"))
    return "<br>\n".join(lines) if len(lines) > 1 else str(html)


def trimmed(text: str | None) -> str | None:
    """`text` without white space around it; None if it is only white space."""
    return (text or "").strip() or None


def distinct(texts: Iterable[str | None]) -> tuple[str, ...]:
    """The texts that are not blank, trimmed, each once, in order."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))


def content_and_summary(contents: Iterable[str | None], summary: str | None) -> tuple[str | None, str | None]:
    """The first content that is not blank, else the summary; and the summary if it is another text."""
    described = summary if summary and summary.strip() else None
    content = next((each for each in contents if each and each.strip()), described)
    return content, None if described is None or content == described else described


_SILENT = re.compile(
    r"(?:\s|&[#A-Za-z0-9]{1,31};|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0]|<!--(?:[^-]|-(?!->))*+(?:-->|\Z)"
    r"|<(?P<raw>script|style|template)\b[^<>]*+>(?:[^<]|<(?!/(?P=raw)))*+</(?P=raw)\s*+>"
    r"|</?(?!(?:picture|source|svg|math|video|audio|iframe|frame|embed|object|canvas|input|button|amp-|lite-)"
    r"|script\b|style\b|template\b)[A-Za-z][^<>]*+>)*+\Z",
    re.IGNORECASE,
)
"""Text without a letter, tags that show nothing, comments, and characters without a width."""
_COMMENT_OR_TAG = re.compile(r"<!--(?:[^-]|-(?!->))*+(?:-->|\Z)|<[^<>]*+>")
_REFERENCE = re.compile("&[#A-Za-z0-9]{1,31};")


def speaks(html: str | None) -> bool:
    """True if HTML shows anything: a comment, `&nbsp;`, empty paragraphs or a tracker's pixel do not."""
    if not html or html[0].isalnum() or not _SILENT.match(html):
        return bool(html)
    if "&" in html:
        named = _REFERENCE.findall(_COMMENT_OR_TAG.sub("", html))
        if not all(_SILENT.match(unescape(each)) for each in set(named)):
            return True
    return "<img" in html.lower() and shows_picture(html)


def first_that_speaks(texts: Iterable[str | None]) -> str | None:
    """The first text that shows anything."""
    return next(filter(speaks, texts), None)


def byte_count(text: str | None) -> int | None:
    """A length attribute as a number that every store can keep, or None."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


# The limit of items that are read from one document, and which of more items are read.
#
# No format is known here: the readers say how to find an item's date.

MAX_ITEMS = 5_000
"""Items that are read from one document; the others are counted. feedparser takes 0.7 s for 5,000."""

_NEVER = datetime.min.replace(tzinfo=UTC)

T = TypeVar("T")


def newest_items(items: Sequence[T], dates_of: Callable[[T], Sequence[str]], *, now: datetime) -> list[T]:
    """At most MAX_ITEMS of the items of a document, in its order: the newest by date.

    `dates_of` gives an item's dates as published, the preferred first; `now` limits their years. Where a
    publisher lists the oldest first, no new item would ever be among the first 5,000. Where dates do not
    decide (most items have none, or all the same), both ends are kept, half each.
    """
    if len(items) <= MAX_ITEMS:
        return list(items)
    dates = _dates(items, dates_of, now)
    last = sorted(dates, reverse=True)[MAX_ITEMS - 1]
    kept = {place for place, date in enumerate(dates) if date > last}
    equal = [place for place, date in enumerate(dates) if date == last]
    room = MAX_ITEMS - len(kept)
    kept.update(equal[: room - room // 2], equal[len(equal) - room // 2 :])
    return [items[place] for place in sorted(kept)]


def _dates(items: Sequence[T], dates_of: Callable[[T], Sequence[str]], now: datetime) -> list[datetime]:
    """A date for each item. One without takes that of the item before it, or of the next."""
    found = [
        next((date for raw in dates_of(item) if (date := parse_date(raw, now=now))), None) for item in items
    ]
    if 2 * sum(date is not None for date in found) < len(found):
        return [_NEVER] * len(found)
    before = next(date for date in found if date is not None)
    dates = []
    for date in found:
        before = date or before
        dates.append(before)
    return dates
