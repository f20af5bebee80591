"""The calls that mark items: edit-tag and mark-all-as-read. Both may be repeated."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from starlette.responses import Response

from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.call import Call, SignedIn, signed_in
from rss_pipeline.api.google_reader.folded import mark_entries, mark_shown
from rss_pipeline.api.google_reader.parameters import (
    READ,
    READING_LIST,
    STARRED,
    FeedByUrl,
    FeedStream,
    Label,
    OtherState,
    State,
    Stream,
    Tag,
    in_microseconds,
    item_numbers,
    microseconds,
    read_stream,
    read_tag,
)
from rss_pipeline.api.google_reader.responses import RefusedCall, not_understood, ok
from rss_pipeline.api.google_reader.subscription_calls import AllFeeds, folder_name, read_feeds
from rss_pipeline.reader.edit import add_folders
from rss_pipeline.reader.feed_queries import FeedName
from rss_pipeline.reader.item_queries import ALL, MAX_CHOSEN, Scope, Shown
from rss_pipeline.reader.mark import ItemMarks
from rss_pipeline.reader.query import NOTHING

_JUST_STORED = timedelta(seconds=1)
"""Without a time, and without a listing of this session, items that are younger are spared."""


async def edit_tag(call: Call) -> Response:
    """POST edit-tag: repeated i, a and r. Unknown items, and those of others, are left out."""
    session, fields = signed_in(call), call.fields
    edit = read_edit(fields.all("a"), fields.all("r"), has_items="i" in fields)
    if edit.new_folders:
        await session.change(lambda caller: add_folders(caller, edit.new_folders))
        return ok()
    numbers = item_numbers(fields.all("i"))
    if len(numbers) > MAX_CHOSEN:
        raise RefusedCall(413, f"At most {MAX_CHOSEN:,} items can be marked at once.")
    marks = ItemMarks(is_read=edit.is_read, is_starred=edit.is_starred)
    if marks == ItemMarks():
        await session.ask(NOTHING)
        return ok()
    named = session.service.named
    await session.change(lambda caller: mark_entries(caller, named, numbers, marks))
    if edit.is_read is not None and failing.may_be_entries(numbers):
        await failing.mark(session, await failing.read_failing(session), numbers, is_read=edit.is_read)
    return ok()


async def mark_all_as_read(call: Call) -> Response:
    """POST mark-all-as-read: the items of a stream up to `ts`, or up to what this session was shown of it.

    What came since stays unread: it was never seen. That also goes for a `ts` by the clock of the client,
    within the same second.
    """
    session = signed_in(call)
    stream = read_stream(call.fields.first("s"))
    time = microseconds(call.fields.first("ts"), "ts")
    if stream == STARRED:
        raise RefusedCall(400, "Starred items are not marked read all at once: mark a feed, a folder or all.")
    if stream == READ:
        await session.ask(NOTHING)
        return ok()
    if stream == failing.STREAM:
        await _mark_failing(session, await failing.read_failing(session), time)
        return ok()
    feeds = await read_feeds(session) if _needs_feeds(session, stream) else None
    shown, named = _shown(session, stream, feeds, time), session.service.named
    marked = await session.change(lambda caller: mark_shown(caller, named, shown))
    if stream == READING_LIST:
        await _mark_failing(session, await failing.failing_of(session, marked.read_failures), time)
    return ok()


async def _mark_failing(session: SignedIn, own: failing.Failing, time: int | None) -> None:
    """Mark the failures of feeds that are as old as this time."""
    seen = [entry.number for entry in own.entries if time is None or entry.number <= time]
    await failing.mark(session, own, seen, is_read=True)


def _needs_feeds(session: SignedIn, stream: Stream) -> bool:
    """True where the id of the feed is not known, or where it counts which feeds are in the stream, or around
    it: they may have been shown."""
    return isinstance(stream, FeedByUrl) or session.service.seen.has_other(
        session.session_id, str(stream if isinstance(stream, FeedStream) else READING_LIST)
    )


def _shown(session: SignedIn, stream: Stream, feeds: AllFeeds | None, time: int | None) -> Shown:
    """The part of a stream that is marked: up to `time`, or to what this session was shown of it."""
    match stream:
        case FeedStream() | FeedByUrl():
            return _shown_feed(session, stream, feeds, time)
        case Label(name):
            return _shown_feeds(session, Scope(folder=name), feeds, time)
        case _:
            return _shown_feeds(session, ALL, feeds, time)


def _shown_feed(
    session: SignedIn, stream: FeedStream | FeedByUrl, feeds: AllFeeds | None, time: int | None
) -> Shown:
    if isinstance(stream, FeedByUrl):
        assert feeds is not None
        row: FeedName | None = feeds.known(stream)
    else:
        row = None if feeds is None else feeds.find(stream)
    feed_id = stream.id if isinstance(stream, FeedStream) else row.feed_id if row else ""
    folder = [] if row is None or row.folder is None else [str(Label(row.folder))]
    shown = session.service.seen.newest(
        session.session_id, [str(FeedStream(feed_id)), *folder, str(READING_LIST)]
    )
    if time is not None:
        end = time if shown is None else min(time, shown)
    else:
        end = _last(session) if shown is None else shown
    return Shown(scope=Scope(feed_id=feed_id), up_to=end)


def _shown_feeds(session: SignedIn, scope: Scope, feeds: AllFeeds | None, time: int | None) -> Shown:
    """The same of a folder, or of all; a feed that was listed by itself up to what was listed of it."""
    seen, id = session.service.seen, session.session_id
    whole = seen.newest(
        id, [str(READING_LIST), *([] if scope.folder is None else [str(Label(scope.folder))])]
    )
    if time is not None:
        # Feeds may have been listed since, one by one; then only the time counts.
        is_last = whole is not None and whole == seen.last(id)
        return Shown(scope=scope, up_to=min(time, whole) if whole is not None and is_last else time)
    end = _last(session) if whole is None else whole
    of_feeds: dict[str, int] = {}
    for row in [] if feeds is None else feeds.rows:
        streams = [str(FeedStream(row.feed_id)), *([] if row.folder is None else [str(Label(row.folder))])]
        own = seen.newest(id, streams)
        if own is not None:
            of_feeds[row.feed_id] = own if whole is None else max(own, whole)
    return Shown(scope=scope, up_to=end, of_feeds={feed: own for feed, own in of_feeds.items() if own != end})


def _last(session: SignedIn) -> int:
    """The end of what any listing has shown, or else of what was stored a second ago."""
    last = session.service.seen.last(session.session_id)
    if last is not None:
        return last
    return in_microseconds((session.service.clock() - _JUST_STORED).replace(microsecond=0))


# The tags that a client adds and removes by edit-tag, as the states read and starred.

MAX_NEW_FOLDERS = 100
"""In one request."""

_UNREAD = (State("unread"), State("kept-unread"), State("fresh"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEdit:
    """The states that items get; None leaves one as it is."""

    is_read: bool | None = None
    is_starred: bool | None = None
    new_folders: tuple[str, ...] = ()
    """Folders to make, where no item is named (Readrops)."""


def read_edit(add: Iterable[str], remove: Iterable[str], *, has_items: bool) -> TagEdit:
    """The edit of repeated `a` and `r`.

    Newsboat marks by `a=read&r=kept-unread`, and back by `a=kept-unread&a=tracking-kept-unread&r=read`. A
    state that is added counts above one that is removed. Where both are added, the item stays unread, since
    that can be put right. Tags that no item has here (broadcast, like) change nothing.

    Raises:
        Refused: a tag that is not understood, a folder for an item, or no tag at all.
    """
    added, removed = [read_tag(text) for text in add if text], [read_tag(text) for text in remove if text]
    if not added and not removed:
        raise not_understood("No tag is named: the form has neither a nor r.")
    folders: list[str] = []
    is_read, is_starred = None, None
    for tag in removed:
        match tag:
            case State("read"):
                is_read = False
            case State("unread"):
                is_read = True
            case State("starred"):
                is_starred = False
            case _:
                _state_only(tag)
    for tag in added:
        match tag:
            case State("starred"):
                is_starred = True
            case Label() if not has_items:
                folders.append(folder_name(tag))
            case _:
                _state_only(tag)
    if any(tag in _UNREAD for tag in added):
        is_read = False
    elif State("read") in added:
        is_read = True
    if len(folders) > MAX_NEW_FOLDERS:
        raise not_understood(f"At most {MAX_NEW_FOLDERS} folders in one request.")
    return TagEdit(is_read=is_read, is_starred=is_starred, new_folders=tuple(folders))


def _state_only(tag: Tag) -> None:
    if not isinstance(tag, State | OtherState):
        raise not_understood(
            "A feed or a folder is no tag of items. Feeds have folders: subscription/edit with"
            " a=user/-/label/NAME puts one there."
        )
