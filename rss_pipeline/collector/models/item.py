"""Items and the document that lists them, as published; and the ids made from them."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from xml.etree.ElementTree import Element

from rss_pipeline.collector.models.identity import Identities

# Hints of a publisher on how often its feed changes and when not to request it.
#
# One value from the parsed document to the next visit; its columns are in storage.feeds.feed_row, its effect
# is in collector.schedule.


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherHints:
    """The hints of a feed's last document and of the answer that brought it."""

    max_age: int | None = None
    """Seconds for which that answer, or a later 304, said it stays fresh."""
    ttl: timedelta | None = None
    """The interval of `<ttl>`, else of sy:updatePeriod."""
    updates: tuple[datetime, ...] = ()
    """Publication times of the newest items, newest first."""
    skip_hours: frozenset[int] = frozenset()
    """UTC hours 0 to 23 without requests (RSS skipHours)."""
    skip_days: frozenset[int] = frozenset()
    """Weekdays without requests, Monday 0 (RSS skipDays)."""


# A document as a tree of elements, with the element of each item, for streams that are selected by XPath.
# Only a parser makes one, for keys of features: it leaves no process and is never stored.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ItemTree:
    """The tree as the items were read from it, repaired."""

    root: Element
    own: str = ""
    """The namespace of the document's own vocabulary."""
    items: tuple[Element, ...]
    """The element of each item that was read, in the order of the items."""
    left_out: tuple[Element, ...] = ()
    """Elements that are no part of the document: items that were cut off."""


GuidSource = Literal["guid", "link", "hash"]


def item_id(feed_id: str, guid: str) -> str:
    """32 hex digits that name an item: SHA-256 of feed id and guid."""
    return hashlib.sha256(f"{feed_id}\0{guid}".encode()).hexdigest()[:32]


def image_task_id(item: str, url: str) -> str:
    """32 hex digits that name an image task: SHA-256 of item id and image URL."""
    return hashlib.sha256(f"{item}\0{url}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosure:
    url: str
    type: str | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item as published. Raw where a promise says so: `guid` and `content_html` byte for byte."""

    guid: str
    guid_source: GuidSource
    link: str | None = None
    title: str | None = None
    author: str | None = None
    """The first that the item itself names."""
    authors: tuple[str, ...] = ()
    """All of them, also those that it has from its feed; each as published, white space collapsed."""
    pub_date: datetime | None = None
    """None where the document gives none that can be read strictly; never a guess."""
    pub_date_raw: str | None = None
    updated_at: datetime | None = None
    categories: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    summary: str | None = None
    content_html: str | None = None
    comments_url: str | None = None
    """The page on which readers discuss the item."""
    base_url: str | None = None
    """xml:base in force for the content, resolved; None where the document sets none."""
    identities: Identities | None = None
    """For an item without guid, with a link: `guid` may be another one of these where it is stored."""
    former_guids: tuple[tuple[str, str], ...] = ()
    """Guids that it may have, each with what a former codec of the feed read: it may be stored under that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHeader:
    """A document without its items: the feed's own fields, and how the document was read."""

    format: str
    """rss20, rss10, rss091, atom10, atom03, json11, cdf ... (feedparser's names; json* are ours)."""
    title: str | None
    link: str | None
    description: str | None = None
    """Plain text."""
    language: str | None = None
    charset: str
    """The Python codec that decoded the document."""
    charset_rule: Literal[
        "bom", "nul-pattern", "http", "utf-8", "declaration", "detected", "hint", "fallback"
    ]
    is_ascii: bool = False
    """The document has no other characters: it says nothing of the feed's codec."""
    mislabelled: str | None = None
    """The label that HTTP or the document gives, where `charset` is another one."""
    repairs: tuple[str, ...] = ()
    """Repairs without which the document could not be read, in words."""
    hints: PublisherHints = field(default_factory=PublisherHints)
    """Without `max_age` until the answer's head is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFeed:
    """A document read: the feed's header and its items in document order."""

    header: FeedHeader
    items: tuple[Item, ...] = ()
    duplicate_guids: tuple[str, ...] = ()
    """Guids that came again in this document; the first item with each was kept."""
    shared_guids: int = 0
    """The number of these that are other items than the first: they differ in title, link or content."""
    impossible_zones: int = 0
    """Items with a date whose offset no place on Earth has: its clock was taken for UTC."""
    dropped_items: int = 0
    """Items beyond the cap of items a document."""
    cut_off: bool = False
    """The document ends early: items may be missing."""
    moved: "Moved | None" = None
    tree: ItemTree | None = field(default=None, compare=False, repr=False)
    """The elements that the items were read from, if the caller needs them."""
    part: object = field(default=None, compare=False, repr=False)
    """The findings of a feature's reader besides, for its `parse`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A document whose stored items have other addresses now, which are their guids."""

    guids: frozenset[str]
    """Guids of items that are stored ones, by the document before."""
    older: frozenset[str] = frozenset()
    """Guids of others that are older than these."""
    is_confirmed: bool = False
    """A person has confirmed the document's list."""


# The size of an image in pixels.


@dataclass(frozen=True, slots=True)
class ImageSize:
    """Width and height as a browser shows them, both at least 1."""

    width: int
    height: int
