"""An item as clients get it, field by field; each has one that does not work without it. And many items, made
of rows and bodies.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from rss_pipeline.api.google_reader.parameters import (
    READ,
    READING_LIST,
    STARRED,
    FeedStream,
    Label,
    Stream,
    in_microseconds,
    long_id,
)
from rss_pipeline.api.gzip_member import Packed, PackedParts
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.parse.iri import published_url
from rss_pipeline.collector.sanitize.item_body import Pieces
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.bodies import Bodies, Body
from rss_pipeline.reader.item_queries import ItemRow

_WEB = ("http://", "https://")
_SCHEME = len("https://")

Ends = Mapping[str, bytes]
"""By item id, HTML to be put behind an item's own, as JSON has it."""


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
class StreamEntry:
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


def entry_as_json(entry: StreamEntry) -> dict[str, Any]:
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


def shared_part(entry: StreamEntry) -> Pieces:
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


def _beside_html(entry: StreamEntry) -> dict[str, Any]:
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
    stream: Stream,
    entries: Iterable[StreamEntry],
    *,
    updated: int,
    title: str,
    continuation: str | None = None,
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


def _published_categories(entry: StreamEntry) -> list[str]:
    """The publisher's own. One that reads like a state would mark the item in every client."""
    return [name for name in entry.categories if not name.startswith("user/")]


def _enclosure(url: str, enclosure: Enclosure) -> dict[str, Any]:
    found: dict[str, Any] = {"href": url, "type": enclosure.type or "application/octet-stream"}
    if enclosure.length is not None:
        found["length"] = enclosure.length
    return found


# Entries of stored items: whole ones, and parts of JSON that are kept.

_AT_ONCE_BYTES = 2_000_000
"""Bytes of kept HTML that one thread has in memory; so many threads may do so as there are."""


def entries_of(rows: Sequence[ItemRow], bodies: Bodies, caller: Caller, ends: Ends) -> list[StreamEntry]:
    """The entries of these rows, with their bodies and what is behind some of them; it belongs into a thread.

    An app shows HTML without our cookie, so an archived image without a public URL stays at its publisher.
    """
    found = bodies.all_of(caller.database, [row.body_key for row in rows], shown="public")
    return [_entry(row, found.get(row.id), ends.get(row.id)) for row in rows]


def kept_entries(
    rows: Sequence[ItemRow], bodies: Bodies, caller: Caller, ends: Ends
) -> list[StreamEntry] | None:
    """The entries of these rows, if none has to be sanitized."""
    known = bodies.known({row.id: row.body_version for row in rows}, shown="public")
    if len(known) == len(rows):
        return [_entry(row, known[row.id], ends.get(row.id)) for row in rows]
    entries: list[StreamEntry] = []
    while left := rows[len(entries) :]:
        found, further = bodies.page(
            caller.database, [row.body_key for row in left], shown="public", sanitizes=False
        )
        if len(further) == len(left):
            return None
        done = left[: len(left) - len(further)]
        entries += [_entry(row, found.get(row.id), ends.get(row.id)) for row in done]
    return entries


def packed_items(
    rows: Sequence[ItemRow],
    bodies: Bodies,
    parts: PackedParts,
    caller: Caller,
    ends: Ends,
    *,
    as_gzip: bool,
    sanitizes: bool,
) -> tuple[dict[int, tuple[Packed, Packed]], Sequence[ItemRow]]:
    """The first of these items as JSON in two parts, by number, and the items that are left: those beyond
    some MB of HTML, and from the first one on that has to be sanitized unless `sanitizes`. With `as_gzip` the
    parts are there as deflate, too. It belongs into a thread."""
    known = parts.known([(_key(row, ends), row.body_version) for row in rows])
    shared = {row.id: part for row, part in zip(rows, known, strict=True) if part is not None}
    keys = [row.body_key for row in rows if row.id not in shared] if len(shared) < len(rows) else []
    found, left = bodies.page(
        caller.database, keys, shown="public", sanitizes=sanitizes, most_bytes=_AT_ONCE_BYTES
    )
    done = len(rows) if not left else next(n for n, row in enumerate(rows) if row.id == left[0].id)
    for row in rows[:done]:
        part = shared.get(row.id)
        if part is None or (as_gzip and part.deflated is None):
            if part is None:
                pieces = shared_part(_entry(row, found.get(row.id), ends.get(row.id)))
            else:
                pieces = part.pieces
            part = Packed.of(*pieces) if as_gzip else Packed(pieces)
            shared[row.id] = parts.keep(_key(row, ends), part, row.body_version)
    own = _own_parts(rows[:done], parts)
    return {row.arrived: (one, shared[row.id]) for row, one in zip(rows, own, strict=False)}, rows[done:]


def _key(row: ItemRow, ends: Ends) -> Hashable:
    end = ends.get(row.id)
    return row.id if end is None else (row.id, end)


def _own_parts(rows: Sequence[ItemRow], parts: PackedParts) -> list[Packed]:
    known = parts.known([(_own_key(row), "") for row in rows])
    return [part or _made_own(row, parts) for row, part in zip(rows, known, strict=True)]


def _made_own(row: ItemRow, parts: PackedParts) -> Packed:
    made = own_part(_origin(row), is_read=row.is_read, is_starred=row.is_starred)
    return parts.keep(_own_key(row), Packed.of(made))


def _own_key(row: ItemRow) -> tuple[Hashable, ...]:
    return (
        row.feed_id,
        row.feed_title,
        row.stored_feed_url,
        row.feed_link,
        row.folder,
        row.read,
        row.starred is not None,
    )


def _origin(row: ItemRow) -> Origin:
    return Origin(
        feed_id=row.feed_id,
        title=row.feed_title or row.feed_url,
        url=row.feed_url,
        site=row.feed_link,
        folder=row.folder,
    )


def _entry(row: ItemRow, body: Body | None, end: bytes | None) -> StreamEntry:
    # An item that went between the two requests is shown as it was, without its content.
    body = body or Body.of(row.title or "", "")
    published, html_json = row.published_at, body.html_json
    if end is not None:
        *before, last = html_json
        html_json = (*before, bytes(last).removesuffix(b'"'), end, b'"')
    return StreamEntry(
        number=row.arrived,
        origin=_origin(row),
        title=body.title,
        link=row.link,
        authors=row.authors,
        published=published,
        updated=row.updated_at or published,
        html_json=html_json,
        categories=row.categories,
        enclosures=body.files,
        is_read=row.is_read,
        is_starred=row.starred_at is not None,
    )
