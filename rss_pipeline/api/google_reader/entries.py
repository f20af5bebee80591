"""An item as clients get it, field by field; each has one that does not work without it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from rss_pipeline.api.google_reader.ids import long_id
from rss_pipeline.api.google_reader.streams import READ, READING_LIST, STARRED, FeedStream, Label, Stream
from rss_pipeline.api.google_reader.times import in_microseconds
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.iri import published_url
from rss_pipeline.collector.sanitize.body import Pieces

_WEB = ("http://", "https://")
_SCHEME = len("https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The feed of an item, as its subscriber sees it."""

    feed_id: str
    title: str
    url: str
    site: str | None
    folder: str | None

    @property
    def page(self) -> str:
        """The feed's site, or its own URL: Capy Reader and Fluent Reader demand one."""
        return web_url(self.site) or web_url(self.url) or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An item of one user."""

    number: int
    origin: Origin
    title: str
    link: str | None
    authors: tuple[str, ...]
    published: datetime
    updated: datetime
    html_json: Pieces
    """HTML that is fit to be shown, sanitized and with absolute links, as a string of JSON."""
    categories: tuple[str, ...]
    enclosures: tuple[Enclosure, ...]
    is_read: bool
    is_starred: bool

    @property
    def page(self) -> str:
        """The item's link. Clients take it as it is, so a scheme of the web or the feed's site."""
        return web_url(self.link) or self.origin.page

    @property
    def html(self) -> str:
        html: str = orjson.loads(b"".join(self.html_json))
        return html

    @property
    def author(self) -> str:
        return ", ".join(self.authors)


def web_url(url: str | None) -> str | None:
    """The URL as an absolute one, unless a client that opens it would run it (`javascript:`)."""
    published = published_url(url)
    return published if published is not None and published[:_SCHEME].lower().startswith(_WEB) else None


def entry_as_json(entry: Entry) -> dict[str, Any]:
    """An item of stream/contents and items/contents."""
    own = _own(entry.origin, entry.is_read, entry.is_starred)
    return {
        **own,
        **_beside_html(entry),
        "categories": [*own["categories"], *_published_categories(entry)],
        # Newsboat takes the alphabetically first value.
        "summary": {"content": orjson.Fragment(b"".join(entry.html_json)), "direction": "ltr"},
    }


def own_part(origin: Origin, *, is_read: bool, is_starred: bool) -> bytes:
    """The first part of an item as JSON: what depends on the user, and the item only by its two states."""
    # Ends in the middle of the categories, of which there is one at least.
    return orjson.dumps(_own(origin, is_read, is_starred))[:-2]


def shared_part(entry: Entry) -> Pieces:
    """The rest of it, in pieces: what is the same for all users, as long as the item and its feed's addresses
    are."""
    categories = [b"," + orjson.dumps(name) for name in _published_categories(entry)]
    others = orjson.dumps(_beside_html(entry))[1:-1]
    before = b"".join([*categories, b"],", others, b',"summary":{"direction":"ltr","content":'])
    return before, *entry.html_json, b"}}"


@lru_cache(maxsize=1_000)
def _own(origin: Origin, is_read: bool, is_starred: bool) -> Mapping[str, Any]:
    """The same for most items of a feed; never changed."""
    return {
        "origin": {
            "streamId": str(FeedStream(origin.feed_id)),
            "title": origin.title,
            "htmlUrl": origin.page,
        },
        "categories": _own_categories(origin, is_read=is_read, is_starred=is_starred),
    }


def _beside_html(entry: Entry) -> dict[str, Any]:
    page = entry.page
    return {
        # Read You: 16 lower-case digits.
        "id": long_id(entry.number),
        # NetNewsWire takes these two as strings only.
        "crawlTimeMsec": str(entry.number // 1_000),
        "timestampUsec": str(entry.number),
        # Newsboat takes an integer only, and loses the rest of the feed with a string.
        "published": in_microseconds(entry.published) // 1_000_000,
        # Liferea's date.
        "updated": in_microseconds(entry.updated) // 1_000_000,
        "title": entry.title,
        "author": entry.author,
        # The only link of newsboat, Liferea, Capy Reader, Fluent Reader ...
        "canonical": [{"href": page}],
        # ... and of NetNewsWire, RSS Guard, Readrops. With another type RSS Guard takes it for an enclosure.
        "alternate": [{"href": page, "type": "text/html"}],
        # `href`: newsboat finds none by another name.
        "enclosure": [_enclosure(url, each) for each in entry.enclosures if (url := web_url(each.url))],
    }


def contents(
    stream: Stream, entries: Iterable[Entry], *, updated: int, title: str, continuation: str | None = None
) -> dict[str, Any]:
    """The answer of stream/contents and items/contents; `updated` in seconds."""
    found: dict[str, Any] = {
        "direction": "ltr",
        "id": str(stream),
        "title": title,
        "updated": updated,
        "items": [entry_as_json(entry) for entry in entries],
    }
    if continuation is not None:
        found["continuation"] = continuation
    return found


def item_ids(numbers: Sequence[int], continuation: str | None) -> dict[str, Any]:
    """The answer of stream/items/ids. Readrops reads one key of each object and fails at a second."""
    # Written as text: the objects would take longer than the query.
    ids = '"},{"id":"'.join(map(str, numbers))
    found: dict[str, Any] = {"itemRefs": orjson.Fragment(f'[{{"id":"{ids}"}}]') if numbers else []}
    if continuation is not None:
        found["continuation"] = continuation
    return found


def _own_categories(origin: Origin, *, is_read: bool, is_starred: bool) -> list[str]:
    """The user's states and folder. Newsboat and Readrops compare whole texts, with `-` for the user."""
    found = [str(READING_LIST)]
    if is_read:
        found.append(str(READ))
    if is_starred:
        found.append(str(STARRED))
    if origin.folder is not None:
        found.append(str(Label(origin.folder)))
    return found


def _published_categories(entry: Entry) -> list[str]:
    """The publisher's own. One that reads like a state would mark the item in every client."""
    return [name for name in entry.categories if not name.startswith("user/")]


def _enclosure(url: str, enclosure: Enclosure) -> dict[str, Any]:
    found: dict[str, Any] = {"href": url, "type": enclosure.type or "application/octet-stream"}
    if enclosure.length is not None:
        found["length"] = enclosure.length
    return found
