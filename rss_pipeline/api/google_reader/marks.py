"""The calls that mark items: edit-tag and mark-all-as-read. Both may be repeated."""

from datetime import timedelta

from starlette.responses import Response

from rss_pipeline.api.google_reader import failing
from rss_pipeline.api.google_reader.answers import ok
from rss_pipeline.api.google_reader.call import Call, SignedIn, signed_in
from rss_pipeline.api.google_reader.ids import item_numbers
from rss_pipeline.api.google_reader.refused import Refused
from rss_pipeline.api.google_reader.streams import (
    READ,
    READING_LIST,
    STARRED,
    FeedAddress,
    FeedStream,
    Label,
    Stream,
    read_stream,
)
from rss_pipeline.api.google_reader.subscriptions.feeds import Feeds, read_feeds
from rss_pipeline.api.google_reader.tag_edits import read_edit
from rss_pipeline.api.google_reader.times import in_microseconds, microseconds
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.subscriptions.chosen import ALL, MAX_CHOSEN, Chosen, Scope
from rss_pipeline.storage.subscriptions.folders import add_folder
from rss_pipeline.storage.subscriptions.states import (
    mark_items,
    mark_read_up_to,
    star_items,
    unstar_items,
)

_JUST_STORED = timedelta(seconds=1)
"""Without a time, and without a listing of this session, items that are younger are spared."""


async def edit_tag(call: Call) -> Response:
    """POST edit-tag: repeated i, a and r. Unknown items, and those of others, are left out."""
    session, fields = signed_in(call), call.fields
    edit = read_edit(fields.all("a"), fields.all("r"), has_items="i" in fields)
    statements: list[Statement] = []
    for name in edit.new_folders:
        statements += add_folder(session.user_id, name)
    if not edit.new_folders:
        numbers = item_numbers(fields.all("i"))
        if len(numbers) > MAX_CHOSEN:
            raise Refused(413, f"At most {MAX_CHOSEN:,} items can be marked at once.")
        chosen = Chosen.by_numbers(numbers)
        if edit.is_read is not None:
            statements += mark_items(session.user_id, chosen, is_read=edit.is_read)
            if failing.may_be_entries(numbers):
                own = await failing.read_failing(session)
                statements += failing.mark(session, own, numbers, is_read=edit.is_read)
        if edit.is_starred:
            statements += star_items(session.user_id, chosen, at=call.service.clock())
        elif edit.is_starred is not None:
            statements += unstar_items(session.user_id, chosen)
    await (session.write(*statements) if statements else session.read())
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
        raise Refused(400, "Starred items are not marked read all at once: mark a feed, a folder or all.")
    if stream == READ:
        await session.read()
        return ok()
    if stream == failing.STREAM:
        await _mark_failing(session, await failing.read_failing(session), time)
        return ok()
    feeds = await read_feeds(session) if _needs_feeds(session, stream) else None
    scope = _scope(stream, feeds)
    end = _end(session, stream, feeds, time)
    *_, wishes = await session.write(
        *mark_read_up_to(session.user_id, scope, end), failing.wishes(session.user_id)
    )
    if stream == READING_LIST:
        await _mark_failing(session, await failing.failing_of(session, wishes), time)
    return ok()


async def _mark_failing(session: SignedIn, own: failing.Failing, time: int | None) -> None:
    """Mark the failures of feeds that are as old as this time."""
    seen = [entry.number for entry in own.entries if time is None or entry.number <= time]
    if marked := failing.mark(session, own, seen, is_read=True):
        await session.write(*marked)


def _needs_feeds(session: SignedIn, stream: Stream) -> bool:
    """True where the id of the feed is not known, or its folder counts: it may have been shown."""
    if isinstance(stream, FeedStream):
        return session.service.seen.has_folders(session.session_id)
    return isinstance(stream, FeedAddress)


def _scope(stream: Stream, feeds: Feeds | None) -> Scope:
    match stream:
        case FeedStream(feed_id):
            return Scope(feed_id=feed_id)
        case FeedAddress():
            assert feeds is not None
            return Scope(feed_id=feeds.known(stream).feed_id)
        case Label(name):
            return Scope(folder=name)
        case _:
            return ALL


def _end(session: SignedIn, stream: Stream, feeds: Feeds | None, time: int | None) -> int:
    """The number of arrival up to which a stream is marked."""
    seen, last = session.service.seen, session.service.seen.last(session.session_id)
    shown = seen.newest(session.session_id, _streams_around(stream, feeds))
    if time is None:
        if shown is None:
            shown = last
        moment = session.service.clock() - _JUST_STORED
        return in_microseconds(moment.replace(microsecond=0)) if shown is None else shown
    # A folder, or all, may have been shown since, feed by feed; then only the time counts.
    is_whole = isinstance(stream, FeedStream | FeedAddress) or (shown is not None and shown == last)
    return min(time, shown) if shown is not None and is_whole else time


def _streams_around(stream: Stream, feeds: Feeds | None) -> list[str]:
    """The stream and those that hold all of it, as listings remember them."""
    if isinstance(stream, Label):
        return [str(stream), str(READING_LIST)]
    if not isinstance(stream, FeedStream | FeedAddress):
        return [str(READING_LIST)]
    row = None if feeds is None else feeds.find(stream)
    if row is None:
        return [str(stream), str(READING_LIST)]
    folder = [] if row.folder is None else [str(Label(row.folder))]
    return [str(FeedStream(row.feed_id)), *folder, str(READING_LIST)]
