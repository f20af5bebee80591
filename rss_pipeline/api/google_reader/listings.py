"""The calls that list the items of a stream: their ids, their contents, and Atom.

A list's end is the highest number of arrival in the same moment; it is what the session was shown (call.py).
Items that the client names are named_items.py's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

from lxml import etree
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.conditional import bytes_answer
from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.answers import IN_THREAD_FROM_BYTES, Refused, as_json
from rss_pipeline.api.google_reader.call import Call, SignedIn, signed_in
from rss_pipeline.api.google_reader.entries import Entry, contents, item_ids, web_url
from rss_pipeline.api.google_reader.ids import LONG_ID, long_id
from rss_pipeline.api.google_reader.listed_items import entries_of, kept_entries
from rss_pipeline.api.google_reader.pages import Page, Place, read_page
from rss_pipeline.api.google_reader.streams import READING_LIST, FeedStream, Label, State, Stream, read_stream
from rss_pipeline.api.google_reader.subscriptions.feeds import feed_id_of
from rss_pipeline.api.google_reader.times import in_microseconds
from rss_pipeline.collector.models.clock import rfc3339
from rss_pipeline.collector.sanitize.text import legal
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.storage.database import MAX_INTEGER, Result, Statement, one
from rss_pipeline.storage.items.cursor import highest_number
from rss_pipeline.storage.subscriptions import item_lists
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope
from rss_pipeline.storage.subscriptions.folders import folder_names, list_folders
from rss_pipeline.storage.subscriptions.listing import feed_names, list_names

MOST_IDS = 10_000
"""RSS Guard requests 200,000, and goes on by the continuation."""
MOST_CONTENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """One page of a stream as it is requested."""

    stream: Stream
    page: Page
    scope: Scope
    since: int | None
    until: int | None
    """The bounds of the page, as `_bounds` gives them."""

    @property
    def filter(self) -> item_lists.Filter:
        return item_lists.Filter(
            scope=self.scope,
            is_read=self.page.is_read,
            is_starred=self.page.is_starred,
            since=self.since,
            until=self.until,
        )

    @property
    def keys(self) -> item_lists.Page:
        behind = self.page.behind
        return item_lists.Page(
            limit=self.page.count,
            after=None if behind is None else item_lists.Key.of_number(behind),
            newest_first=not self.page.oldest_first,
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


async def _bounds(session: SignedIn, page: Page) -> tuple[int | None, int | None]:
    """The lowest and the highest number of a page. Apps send the time of their last call, another one each
    time: where results are kept, it is the number of the item next to it, which stays the same."""
    if session.service.stores.kept is None or (page.since is None and page.until is None):
        return page.since, page.until
    (found,) = await session.read(item_lists.nearest_numbers(page.since, page.until))
    since, until = found.values[0]
    return (
        None if page.since is None else MAX_INTEGER if since is None else int(since),
        None if page.until is None else 0 if until is None else int(until),
    )


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
        return kept_entries(items.items, bodies, caller.database), items, about, top, wishes

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
        raise Refused(404, f"You do not subscribe to {failing.STREAM}.")
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
            title = listing.stream.title if isinstance(listing.stream, State) else str(listing.stream)
            return _Head(title=title, site=None)
        case Label(name):
            if name not in folder_names(about):
                raise Refused(404, "You have no folder of this name.")
            return _Head(title=name, site=None)
        case failing.STREAM:
            return _Head(title=failing.TITLE, site=None)
        case _:
            rows = feed_names(about)
            if not rows:
                raise Refused(404, "You do not subscribe to this feed.")
            return _Head(title=rows[0].title or rows[0].url, site=rows[0].link or rows[0].url)


def _show(
    session: SignedIn, listing: _Listing, numbers: Sequence[int], next_key: item_lists.Key | None, top: int
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


def _text(next_key: item_lists.Key | None) -> str | None:
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
    stream: Stream, entries: Sequence[Entry], *, title: str, site: str | None, continuation: str | None
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


def _add_entry(feed: etree._Element, entry: Entry) -> None:
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


def _states(entry: Entry) -> Iterable[str]:
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
