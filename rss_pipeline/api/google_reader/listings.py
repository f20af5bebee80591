"""The calls for items: those of a stream, by id, with contents, and as Atom; and items that a client names.

A list's end is the highest number of arrival in the same moment; it is what the session was shown (call.py).
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

import orjson
from lxml import etree
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from rss_pipeline.api.answers import BrokenOff, takes_gzip
from rss_pipeline.api.conditional import bytes_answer
from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.call import Call, Service, SignedIn, signed_in, signed_in_by_token
from rss_pipeline.api.google_reader.folded import as_entries, read_as_wanted
from rss_pipeline.api.google_reader.parameters import (
    LONG_ID,
    READING_LIST,
    FeedStream,
    Label,
    Place,
    State,
    Stream,
    StreamPage,
    in_microseconds,
    item_numbers,
    long_id,
    read_page,
    read_stream,
)
from rss_pipeline.api.google_reader.responses import (
    IN_THREAD_FROM_BYTES,
    PRIVATE,
    RefusedCall,
    as_json,
    packed_json,
)
from rss_pipeline.api.google_reader.stream_entries import (
    Ends,
    StreamEntry,
    contents,
    entries_of,
    entry_as_json,
    item_ids,
    kept_entries,
    packed_items,
    web_url,
)
from rss_pipeline.api.google_reader.subscription_calls import feed_id_of
from rss_pipeline.api.gzip_member import GzipStream, Packed, plain
from rss_pipeline.collector.models.clock import rfc3339
from rss_pipeline.collector.sanitize.text import legal
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import InApps, in_apps
from rss_pipeline.reader.feed_queries import FeedName, feed_name, folders
from rss_pipeline.reader.item_queries import (
    ALL,
    Filter,
    Fold,
    ItemRow,
    Items,
    Key,
    Numbers,
    Page,
    Scope,
    arrival_numbers,
    highest_number,
    items,
    items_by_number,
    nearest_numbers,
)
from rss_pipeline.reader.query import NOTHING, Query, together

MOST_IDS = 10_000
"""RSS Guard requests 200,000, and goes on by the continuation."""
MOST_CONTENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """One page of a stream as it is requested."""

    stream: Stream
    page: StreamPage
    scope: Scope
    since: int | None
    until: int | None
    """The bounds of the page, as `_bounds` gives them."""

    def filter(self, *, is_folded: bool) -> Filter:
        return Filter(
            scope=self.scope,
            is_read=self.page.is_read,
            is_starred=self.page.is_starred,
            since=self.since,
            until=self.until,
            fold=Fold(with_news=True) if is_folded else None,
        )

    @property
    def keys(self) -> Page:
        behind = self.page.behind
        return Page(
            limit=self.page.count,
            after=None if behind is None else Key.of_number(behind),
            newest_first=not self.page.oldest_first,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """A stream as a whole: what the user calls it, its page on the web."""

    title: str
    site: str | None


_Listed = tuple[Items, _Head | RefusedCall, int, InApps]
"""The items of a listing, its head, the highest number at its time, the user's wishes for apps."""


async def stream_item_ids(call: Call) -> Response:
    """stream/items/ids: decimal numbers, newest first."""
    session = signed_in(call)
    listing = await _listing(call, session, call.fields.first("s"), most=MOST_IDS)
    user_id = session.user_id

    def query(is_folded: bool) -> Query[tuple[Numbers, _Head | RefusedCall, int, InApps]]:
        filter = listing.filter(is_folded=is_folded)
        return together(
            arrival_numbers(user_id, filter, listing.keys),
            _head(user_id, listing),
            highest_number(),
            in_apps(user_id),
        )

    page, head, top, wishes = await session.run(
        lambda caller: read_as_wanted(caller, session.service.named, query, lambda found: found[3])
    )
    extra = await _failing(session, listing, wishes.read_failures)
    if listing.page.place == failing.STREAM:
        return as_json(item_ids(*_cut([entry.number for entry in extra], listing.page)))
    if isinstance(head, RefusedCall):
        raise head
    if listing.page.is_empty:
        return as_json(item_ids([], None))
    _show(session, listing, page.numbers, page.next_key, top)
    if extra:
        numbers, next_text = _cut(
            [*page.numbers, *(entry.number for entry in extra)],
            listing.page,
            has_more=page.next_key is not None,
        )
        return as_json(item_ids(numbers, next_text))
    return as_json(item_ids(page.numbers, _text(page.next_key)))


async def stream_contents(call: Call) -> Response:
    """stream/contents: items with their bodies; the stream is in the path, or in s."""
    session = signed_in(call)
    listing = await _listing(call, session, call.rest or call.fields.first("s"), most=MOST_CONTENTS)
    entries, next_text, head = await _entries(session, listing)
    updated = in_microseconds(call.service.clock()) // 1_000_000
    content = contents(listing.stream, entries, updated=updated, title=head.title, continuation=next_text)
    size = sum(map(len, chain.from_iterable([entry.html_json for entry in entries])))
    return await run_in_threadpool(as_json, content) if size > IN_THREAD_FROM_BYTES else as_json(content)


async def atom(call: Call) -> Response:
    """reader/atom: the same as Atom, for newsboat before 2.24; 304 while neither items nor states changed."""
    session = signed_in(call)
    listing = await _listing(call, session, call.rest or call.fields.first("s"), most=MOST_CONTENTS)
    entries, next_text, head = await _entries(session, listing)
    document = await run_in_threadpool(
        partial(
            atom_document, listing.stream, entries, title=head.title, site=head.site, continuation=next_text
        )
    )
    return bytes_answer(call.request, document, ATOM_TYPE)


async def _listing(call: Call, session: SignedIn, stream_id: str | None, *, most: int) -> _Listing:
    # Fluent Reader and others name none for all items.
    stream = read_stream(stream_id, default=READING_LIST)
    page = read_page(stream, call.fields, most=most)
    since, until = await _bounds(session, page)
    scope = await _scope(session, page.place)
    return _Listing(stream=stream, page=page, scope=scope, since=since, until=until)


async def _bounds(session: SignedIn, page: StreamPage) -> tuple[int | None, int | None]:
    """The lowest and the highest number of a page. Apps send the time of their last call, another one each
    time: where results are kept, it is the number of the item next to it, which stays the same."""
    if session.service.stores.kept is None or (page.since is None and page.until is None):
        return page.since, page.until
    return await session.ask(nearest_numbers(page.since, page.until))


async def _scope(session: SignedIn, place: Place | None) -> Scope:
    match place:
        case None:
            return ALL
        case Label(name):
            return Scope(folder=name)
        case feed:
            return Scope(feed_id=await feed_id_of(session, feed))


async def _entries(session: SignedIn, listing: _Listing) -> tuple[list[StreamEntry], str | None, _Head]:
    bodies, user_id = session.service.bodies, session.user_id

    def query(is_folded: bool) -> Query[_Listed]:
        filter = listing.filter(is_folded=is_folded)
        return together(
            items(user_id, filter, listing.keys),
            _head(user_id, listing),
            highest_number(),
            in_apps(user_id),
        )

    def shown(caller: Caller) -> tuple[list[StreamEntry] | None, _Listed, Sequence[ItemRow], Ends]:
        found = read_as_wanted(caller, session.service.named, query, lambda found: found[3])
        rows: Sequence[ItemRow] = found[0].items
        ends: Ends = {}
        if found[3].is_folded:
            rows, ends = as_entries(caller, session.service.named, rows)
        return kept_entries(rows, bodies, caller, ends), found, rows, ends

    entries, (listed, head, top, wishes), rows, ends = await session.run(shown)
    if entries is None:
        entries = await session.make(lambda caller: entries_of(rows, bodies, caller, ends))
    extra = await _failing(session, listing, wishes.read_failures)
    if isinstance(head, RefusedCall):
        raise head
    if listing.page.is_empty:
        return [], None, head
    _show(session, listing, [entry.number for entry in entries], listed.next_key, top)
    if not extra:
        return entries, _text(listed.next_key), head
    by_number = {entry.number: entry for entry in (*entries, *extra)}
    numbers, next_text = _cut(list(by_number), listing.page, has_more=listed.next_key is not None)
    return [by_number[number] for number in numbers], next_text, head


async def _failing(session: SignedIn, listing: _Listing, read: frozenset[int] | None) -> list[StreamEntry]:
    """The entries of "Feeds that fail" that belong into a listing of it, or of all.

    Raises:
        Refused: it is the feed that is listed, and the user does not want it.
    """
    if listing.page.place not in (None, failing.STREAM):
        return []
    found = await failing.failing_of(session, read)
    if listing.page.place is not None and not found.is_shown:
        raise RefusedCall(404, f"You do not subscribe to {failing.STREAM}.")
    return found.on(listing.page)


def _cut(numbers: list[int], page: StreamPage, *, has_more: bool = False) -> tuple[list[int], str | None]:
    """The first numbers of a page, and its continuation."""
    numbers.sort(reverse=not page.oldest_first)
    found = numbers[: page.count]
    return found, str(found[-1]) if found and (has_more or len(numbers) > len(found)) else None


def _head(user_id: str, listing: _Listing) -> Query[_Head | RefusedCall]:
    """The head of a stream, or the answer where the user has no such feed or folder."""
    head: _Head | RefusedCall
    match listing.page.place:
        case None:
            title = listing.stream.title if isinstance(listing.stream, State) else str(listing.stream)
            head = _Head(title=title, site=None)
            return NOTHING.then(lambda _: head)
        case Label(name):
            head = _Head(title=name, site=None)
            return folders(user_id).then(
                lambda names: head if name in names else RefusedCall(404, "You have no folder of this name.")
            )
        case failing.STREAM:
            head = _Head(title=failing.TITLE, site=None)
            return NOTHING.then(lambda _: head)
        case _:
            return feed_name(user_id, listing.scope.feed_id or "").then(_head_of)


def _head_of(feed: FeedName | None) -> _Head | RefusedCall:
    if feed is None:
        return RefusedCall(404, "You do not subscribe to this feed.")
    return _Head(title=feed.title or feed.url, site=feed.link or feed.url)


def _show(
    session: SignedIn, listing: _Listing, numbers: Sequence[int], next_key: Key | None, top: int
) -> None:
    """Remember what the session was shown of a stream, if it was shown its unread items from their start."""
    page = listing.page
    if page.is_read or page.is_starred is not None or page.behind is not None or page.is_empty:
        return
    if page.oldest_first and next_key is not None:
        top = numbers[-1]
    if page.until is not None:
        top = min(top, page.until)
    streams = [str(page.place or READING_LIST)]
    if listing.scope.feed_id is not None:
        streams = [str(FeedStream(listing.scope.feed_id))]
    for stream in streams:
        session.service.seen.show(session.session_id, stream, top)


def _text(next_key: Key | None) -> str | None:
    return None if next_key is None else str(next_key)


# Atom, in Google Reader's dialect: newsboat before 2.24 reads nothing else. The states of an item are
# categories of a scheme of its own, with the state's name as label.

ATOM_TYPE = "application/atom+xml"

_ATOM = "http://www.w3.org/2005/Atom"
_READER = "http://www.google.com/schemas/reader/atom/"
_SCHEME = "http://www.google.com/reader/"
_PREFIXES: Any = {None: _ATOM, "gr": _READER}
_LONG_PREFIX = LONG_ID.removesuffix("item/")
_EMPTY = datetime.fromtimestamp(0, UTC)


def atom_document(
    stream: Stream, entries: Sequence[StreamEntry], *, title: str, site: str | None, continuation: str | None
) -> bytes:
    """The document of these entries. Its date is that of the newest: equal entries give equal bytes."""
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap=_PREFIXES)
    _add(feed, "id", f"{_LONG_PREFIX}{stream}")
    _add(feed, "title", title)
    _add(feed, "updated", rfc3339(max((entry.updated for entry in entries), default=_EMPTY)))
    if page := web_url(site):
        _add(feed, "link", rel="alternate", href=page)
    if continuation is not None:
        _add(feed, "continuation", continuation, namespace=_READER)
    for entry in entries:
        _add_entry(feed, entry)
    document: bytes = etree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def _add_entry(feed: etree._Element, entry: StreamEntry) -> None:
    element = _add(feed, "entry")
    element.set(f"{{{_READER}}}crawl-timestamp-msec", str(entry.number // 1_000))
    # Newsboat sends this id back to edit-tag, as it is.
    _add(element, "id", long_id(entry.number))
    for label in _states(entry):
        _add(element, "category", term=f"user/-/state/com.google/{label}", scheme=_SCHEME, label=label)
    for name in entry.categories:
        _add(element, "category", term=name)
    _add(element, "title", entry.title, type="text")
    _add(element, "published", rfc3339(entry.published))
    _add(element, "updated", rfc3339(entry.updated))
    _add(element, "link", rel="alternate", type="text/html", href=entry.page)
    for each in entry.enclosures:
        if url := web_url(each.url):
            length = None if each.length is None else str(each.length)
            _add(element, "link", rel="enclosure", type=each.type, length=length, href=url)
    for name in entry.authors or (entry.origin.title,):
        _add(_add(element, "author"), "name", name)
    _add(element, "content", entry.html, type="html")
    source = _add(element, "source")
    source.set(f"{{{_READER}}}stream-id", str(FeedStream(entry.origin.feed_id)))
    _add(source, "id", f"{_LONG_PREFIX}{FeedStream(entry.origin.feed_id)}")
    _add(source, "title", entry.origin.title)
    _add(source, "link", rel="alternate", href=entry.origin.page or None)


def _states(entry: StreamEntry) -> Iterable[str]:
    """Newsboat takes an entry as read or unread by `read`, `fresh` and `kept-unread`, else as it was."""
    yield "reading-list"
    yield "read" if entry.is_read else "fresh"
    if not entry.is_read:
        yield "kept-unread"
    if entry.is_starred:
        yield "starred"


def _add(
    parent: etree._Element,
    name: str,
    text: str | None = None,
    *,
    namespace: str = _ATOM,
    **attributes: str | None,
) -> etree._Element:
    child = etree.SubElement(parent, f"{{{namespace}}}{name}")
    child.text = None if text is None else legal(text)
    for key, value in attributes.items():
        if value is not None:
            child.set(key, legal(value))
    return child


# The contents of items that the client names: stream/items/contents.

MOST_NAMED = 10_000
"""Items of one items/contents; RSS Guard requests 9,999, and there is no continuation."""
AT_ONCE = 200
"""Items that are read and made into JSON together."""
WHOLE_BYTES = 4_000_000
"""An answer up to this size, some 1,000 items, is made before its first byte is sent. It is compressed, and
where the store fails in the middle, it is an error."""
_JSON = "application/json"
_COMMA = Packed.short(b",")


async def item_contents(call: Call) -> Response:
    """stream/items/contents: named items in their order; those that are unknown, or others', are left out.

    A large answer is sent piece by piece, so that it is never in memory as a whole.
    """
    session = signed_in_by_token(call)
    numbers = item_numbers(call.fields.all("i"))
    if len(numbers) > MOST_NAMED:
        raise RefusedCall(413, f"At most {MOST_NAMED:,} items can be read at once.")
    updated = in_microseconds(call.service.clock()) // 1_000_000
    as_gzip = takes_gzip(call.request.scope)
    pieces = _pieces(session, numbers, updated=updated, as_gzip=as_gzip)
    first, size = list[Packed](), 0
    async for piece in pieces:
        first += piece
        size += sum([part.length for part in piece])
        if size > WHOLE_BYTES:
            headers = {**PRIVATE, "Content-Encoding": "gzip"} if as_gzip else PRIVATE
            sent = _or_broken_off(first, pieces, GzipStream() if as_gzip else None)
            return StreamingResponse(sent, headers=headers, media_type=_JSON)
    return await packed_json(first, as_gzip=as_gzip)


async def _pieces(
    session: SignedIn, numbers: Sequence[int], *, updated: int, as_gzip: bool
) -> AsyncIterator[list[Packed]]:
    """The JSON of these items, at most `AT_ONCE` of them and some 4 MB at a time."""
    empty = orjson.dumps(contents(READING_LIST, [], updated=updated, title=READING_LIST.title))
    before, after = empty.split(b'"items":[')
    yield [Packed.short(before + b'"items":[')]
    is_first = True
    # Without items the session is looked up all the same.
    for start in range(0, max(len(numbers), 1), AT_ONCE):
        async for made in _named(session, numbers[start : start + AT_ONCE], as_gzip=as_gzip):
            found = [part for parts in made for part in (_COMMA, *parts)]
            if found:
                yield found[1:] if is_first else found
                is_first = False
    yield [Packed.short(after)]


async def _or_broken_off(
    first: Sequence[Packed], rest: AsyncIterator[Sequence[Packed]], stream: GzipStream | None
) -> AsyncIterator[bytes]:
    """The pieces of an answer that has begun: 503 or 401 can no longer be its status."""
    make = plain if stream is None else stream.of
    yield make(first)
    try:
        async for piece in rest:
            yield make(piece)
    except (InfrastructureError, RefusedCall) as error:
        raise BrokenOff(str(error)) from error
    if stream is not None:
        yield stream.end()


async def _named(
    session: SignedIn, numbers: Sequence[int], *, as_gzip: bool
) -> AsyncIterator[list[tuple[Packed, ...]]]:
    """The parts of each of these items, in their order, as many at a time as are made together. What has to
    be sanitized waits for its turn; the rest does not."""
    make = partial(_made, session.service, as_gzip=as_gzip)

    def read(caller: Caller) -> tuple[int, Ends, _Made]:
        user_id = caller.user_id
        rows, wishes = caller.ask(together(items_by_number(user_id, numbers), in_apps(user_id)))
        ordered: Sequence[ItemRow] = [rows[number] for number in numbers if number in rows]
        ends: Ends = {}
        if wishes.is_folded:
            ordered, ends = as_entries(caller, session.service.named, ordered)
        return len(ordered), ends, make(ordered, caller, ends, sanitizes=False)

    known, ends, (made, left) = await session.run(read)
    items: dict[int, tuple[Packed, ...]] = {**made}
    if known < len(numbers) and failing.may_be_entries(numbers):
        for entry in (await failing.read_failing(session)).entries:
            items[entry.number] = (Packed.of(orjson.dumps(entry_as_json(entry))),)
    place = 0
    while place < len(numbers):
        end = numbers.index(left[0].arrived, place) if left else len(numbers)
        yield [items.pop(number) for number in numbers[place:end] if number in items]
        place = end
        if left:
            before = len(left)
            made, left = await session.run(partial(make, left, ends=ends, sanitizes=False))
            if len(left) == before:
                made, left = await session.make(partial(make, left, ends=ends, sanitizes=True))
            items |= made


_Made = tuple[dict[int, tuple[Packed, Packed]], Sequence[ItemRow]]


def _made(
    service: Service, rows: Sequence[ItemRow], caller: Caller, ends: Ends, *, as_gzip: bool, sanitizes: bool
) -> _Made:
    bodies, parts = service.bodies, service.parts
    return packed_items(rows, bodies, parts, caller, ends, as_gzip=as_gzip, sanitizes=sanitizes)
