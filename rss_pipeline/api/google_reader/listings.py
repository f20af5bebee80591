"""The calls that list items: their ids, their contents, and Atom.

A list's end is the highest number of arrival in the same moment; it is what the session was shown (seen.py).
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import orjson
from starlette.responses import Response, StreamingResponse

from rss_pipeline.api.answers import BrokenOff
from rss_pipeline.api.conditional import bytes_answer
from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.answers import PRIVATE, as_json, packed_json
from rss_pipeline.api.google_reader.atom import ATOM_TYPE, atom_document
from rss_pipeline.api.google_reader.call import Call, SignedIn, signed_in, signed_in_by_token
from rss_pipeline.api.google_reader.entries import Entry, contents, entry_as_json, item_ids
from rss_pipeline.api.google_reader.ids import item_numbers
from rss_pipeline.api.google_reader.pages import Page, Place, read_page
from rss_pipeline.api.google_reader.refused import Refused
from rss_pipeline.api.google_reader.shown import entries_of, kept_entries, kept_items, packed_items
from rss_pipeline.api.google_reader.streams import READING_LIST, FeedStream, Label, Stream, read_stream
from rss_pipeline.api.google_reader.subscriptions.feeds import feed_id_of
from rss_pipeline.api.google_reader.times import in_microseconds
from rss_pipeline.api.packed import Packed, plain
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.pipeline.accounts.callers import Caller
from rss_pipeline.storage.database import Result, Statement, one
from rss_pipeline.storage.items.cursor import highest_number
from rss_pipeline.storage.subscriptions import item_lists
from rss_pipeline.storage.subscriptions.chosen import ALL, Chosen, Scope
from rss_pipeline.storage.subscriptions.folders import folder_names, list_folders
from rss_pipeline.storage.subscriptions.item_rows import ItemRow
from rss_pipeline.storage.subscriptions.listing import feed_names, list_names

MOST_IDS = 10_000
"""RSS Guard requests 200,000, and goes on by the continuation."""
MOST_CONTENTS = 1_000
MOST_NAMED = 10_000
"""Items of one items/contents; RSS Guard requests 9,999, and there is no continuation."""
AT_ONCE = 200
"""Items that are read and made into JSON together."""
WHOLE_BYTES = 4_000_000
"""An answer up to this size, some 1,000 items, is made before its first byte is sent. It is compressed, and
where the store fails in the middle, it is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """One page of a stream as it is requested."""

    stream: Stream
    page: Page
    scope: Scope

    @property
    def filter(self) -> item_lists.Filter:
        return item_lists.Filter(
            scope=self.scope,
            is_read=self.page.is_read,
            is_starred=self.page.is_starred,
            since=self.page.since,
            until=self.page.until,
        )

    @property
    def keys(self) -> item_lists.Page:
        return item_lists.Page(
            limit=self.page.count, after=self.page.behind, newest_first=not self.page.oldest_first
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """A stream as a whole: what the user calls it, its page on the web."""

    title: str
    site: str | None


async def stream_item_ids(call: Call) -> Response:
    """stream/items/ids: decimal numbers, newest first."""
    session = signed_in(call)
    listing = await _listing(call, session, call.fields.first("s"), most=MOST_IDS)
    query = item_lists.list_numbers(session.user_id, listing.filter, listing.keys)
    found, about, top, wishes = await session.run(
        lambda caller: caller.read(
            query,
            _about(caller.user_id, listing.scope),
            highest_number(),
            failing.wishes(caller.user_id),
        )
    )
    extra = await _failing(session, listing, wishes)
    if listing.page.place == failing.STREAM:
        return as_json(item_ids(*_cut([entry.number for entry in extra], listing.page)))
    _head(listing, about)
    if listing.page.is_empty:
        return as_json(item_ids([], None))
    page = item_lists.numbers_of(found, listing.keys)
    _show(session, listing, page.numbers, page.next_key, _number(top))
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
    return as_json(
        contents(listing.stream, entries, updated=updated, title=head.title, continuation=next_text)
    )


async def atom(call: Call) -> Response:
    """reader/atom: the same as Atom, for newsboat before 2.24; 304 while neither items nor states changed."""
    session = signed_in(call)
    listing = await _listing(call, session, call.rest or call.fields.first("s"), most=MOST_CONTENTS)
    entries, next_text, head = await _entries(session, listing)
    document = atom_document(
        listing.stream, entries, title=head.title, site=head.site, continuation=next_text
    )
    return bytes_answer(call.request, document, ATOM_TYPE)


async def item_contents(call: Call) -> Response:
    """stream/items/contents: named items in their order; those that are unknown, or others', are left out.

    A large answer is sent piece by piece, so that it is never in memory as a whole.
    """
    session = signed_in_by_token(call)
    numbers = item_numbers(call.fields.all("i"))
    if len(numbers) > MOST_NAMED:
        raise Refused(413, f"At most {MOST_NAMED:,} items can be read at once.")
    updated = in_microseconds(call.service.clock()) // 1_000_000
    pieces = _pieces(session, numbers, updated=updated)
    first, size = list[Packed](), 0
    async for piece in pieces:
        first += piece
        size += sum([len(part.plain) for part in piece])
        if size > WHOLE_BYTES:
            return StreamingResponse(_or_broken_off(first, pieces), headers=PRIVATE, media_type=_JSON)
    return await packed_json(call.request, first)


async def _pieces(session: SignedIn, numbers: Sequence[int], *, updated: int) -> AsyncIterator[list[Packed]]:
    """The JSON of these items, `AT_ONCE` by `AT_ONCE`."""
    empty = orjson.dumps(contents(READING_LIST, [], updated=updated, title=_TITLES["reading-list"]))
    before, after = empty.split(b'"items":[')
    yield [Packed.short(before + b'"items":[')]
    is_first = True
    # Without items the session is looked up all the same.
    for start in range(0, max(len(numbers), 1), AT_ONCE):
        items = await _named(session, numbers[start : start + AT_ONCE])
        found = [part for parts in items for part in (_COMMA, *parts)]
        if found:
            yield found[1:] if is_first else found
            is_first = False
    yield [Packed.short(after)]


async def _or_broken_off(
    first: Sequence[Packed], rest: AsyncIterator[Sequence[Packed]]
) -> AsyncIterator[bytes]:
    """The pieces of an answer that has begun: 503 or 401 can no longer be its status."""
    yield plain(first)
    try:
        async for piece in rest:
            yield plain(piece)
    except (InfrastructureError, Refused) as error:
        raise BrokenOff(str(error)) from error


async def _named(session: SignedIn, numbers: Sequence[int]) -> list[tuple[Packed, ...]]:
    """The parts of each of these items, in their order."""
    service = session.service

    def read(caller: Caller) -> tuple[Sequence[ItemRow], dict[int, tuple[Packed, Packed]] | None]:
        (found,) = caller.read(item_lists.items_by(caller.user_id, Chosen.by_numbers(numbers)))
        rows = item_lists.named_items(found)
        return rows, kept_items(rows, service.parts)

    rows, packed = await session.run(read)
    if packed is None:
        packed = await session.make(
            lambda caller: packed_items(rows, service.bodies, service.parts, caller.database)
        )
    items: dict[int, tuple[Packed, ...]] = {**packed}
    if len(items) < len(numbers) and failing.may_be_entries(numbers):
        for entry in (await failing.read_failing(session)).entries:
            items[entry.number] = (Packed.of(orjson.dumps(entry_as_json(entry))),)
    return [items[number] for number in numbers if number in items]


async def _listing(call: Call, session: SignedIn, stream_id: str | None, *, most: int) -> _Listing:
    stream = read_stream(stream_id)
    page = read_page(stream, call.fields, most=most)
    return _Listing(stream=stream, page=page, scope=await _scope(session, page.place))


async def _scope(session: SignedIn, place: Place | None) -> Scope:
    match place:
        case None:
            return ALL
        case Label(name):
            return Scope(folder=name)
        case feed:
            return Scope(feed_id=await feed_id_of(session, feed))


async def _entries(session: SignedIn, listing: _Listing) -> tuple[list[Entry], str | None, _Head]:
    bodies = session.service.bodies

    def read(caller: Caller) -> tuple[list[Entry] | None, item_lists.Items, Result, Result, Result]:
        query = item_lists.list_items(caller.user_id, listing.filter, listing.keys)
        found, about, top, wishes = caller.read(
            query,
            _about(caller.user_id, listing.scope),
            highest_number(),
            failing.wishes(caller.user_id),
        )
        items = item_lists.items_of(found, listing.keys)
        return kept_entries(items.items, bodies), items, about, top, wishes

    entries, items, about, top, wishes = await session.run(read)
    if entries is None:
        entries = await session.make(lambda caller: entries_of(items.items, bodies, caller.database))
    extra = await _failing(session, listing, wishes)
    head = _head(listing, about)
    if listing.page.is_empty:
        return [], None, head
    _show(session, listing, [entry.number for entry in entries], items.next_key, _number(top))
    if not extra:
        return entries, _text(items.next_key), head
    by_number = {entry.number: entry for entry in (*entries, *extra)}
    numbers, next_text = _cut(list(by_number), listing.page, has_more=items.next_key is not None)
    return [by_number[number] for number in numbers], next_text, head


async def _failing(session: SignedIn, listing: _Listing, wishes: Result) -> list[Entry]:
    """The entries of "Feeds that fail" that belong into a listing of it, or of all.

    Raises:
        Refused: it is the feed that is listed, and the user does not want it.
    """
    if listing.page.place not in (None, failing.STREAM):
        return []
    found = await failing.failing_of(session, wishes)
    if listing.page.place is not None and not found.is_shown:
        raise Refused(404, f"You do not subscribe {failing.STREAM}.")
    return found.on(listing.page)


def _cut(numbers: list[int], page: Page, *, has_more: bool = False) -> tuple[list[int], str | None]:
    """The first numbers of a page, and its continuation."""
    numbers.sort(reverse=not page.oldest_first)
    found = numbers[: page.count]
    return found, str(found[-1]) if found and (has_more or len(numbers) > len(found)) else None


def _about(user_id: str, scope: Scope) -> Statement:
    """A query for whether the user has this feed or folder."""
    return list_folders(user_id) if scope.feed_id is None else list_names(user_id, scope.feed_id)


def _head(listing: _Listing, about: Result) -> _Head:
    match listing.page.place:
        case None:
            return _Head(title=_TITLES[str(listing.stream).rpartition("/")[2]], site=None)
        case Label(name):
            if name not in folder_names(about):
                raise Refused(404, f"You have no folder {name[:80]!r}.")
            return _Head(title=name, site=None)
        case failing.STREAM:
            return _Head(title=failing.TITLE, site=None)
        case feed:
            rows = feed_names(about)
            if not rows:
                raise Refused(404, f"You do not subscribe {str(feed)[:200]!r}.")
            return _Head(title=rows[0].title or rows[0].url, site=rows[0].link or rows[0].url)


def _show(
    session: SignedIn, listing: _Listing, numbers: Sequence[int], next_key: int | None, top: int
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


def _number(top: Result) -> int:
    row = one(top)
    return 0 if row is None else int(row["number"])


def _text(next_key: int | None) -> str | None:
    return None if next_key is None else str(next_key)


_JSON = "application/json"
_COMMA = Packed.short(b",")
_TITLES = {
    "reading-list": "All items",
    "read": "Read items",
    "starred": "Starred items",
    "unread": "Unread items",
    "kept-unread": "Unread items",
    "fresh": "Unread items",
}
