"""Lists of items: unread, all, starred, of a feed, of a folder; the list of feeds; the next feed to read; and
the marks and lines of items that the script of a list requests.

A page of items is two batches: what the frame shows has the preferences that choose the items.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import AsyncCaller, SignedIn
from rss_pipeline.api.pages.addresses import HOME, feed_url
from rss_pipeline.api.pages.frame import Frame, items_of_all, read_frame
from rss_pipeline.api.pages.reading.views import Order, Show, View, view_at
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.request_values import Folder as FolderName
from rss_pipeline.api.request_values import PageKey
from rss_pipeline.collector.sanitize.html import text_of
from rss_pipeline.collector.sanitize.text import one_line, title_line
from rss_pipeline.reader.accounts.preferences import Preferences, own_preferences, state_version
from rss_pipeline.reader.feed_queries import FeedRow, hidden_unread, star_count, unread_counts
from rss_pipeline.reader.item_queries import (
    FoldedItem,
    ItemRow,
    Key,
    Scope,
    Texts,
    earlier_copies,
    is_news,
    items_with_texts,
    marks,
    named_items_with_texts,
    read_with,
)
from rss_pipeline.reader.item_queries import together as together_with
from rss_pipeline.reader.mark import undoable
from rss_pipeline.reader.query import together

router = APIRouter(include_in_schema=False)

Together = Mapping[str, Sequence[FoldedItem]]

After = Annotated[PageKey | None, Query()]

_SHOWN_CHARACTERS = 220
_TITLE_CHARACTERS = 300
_TITLE_OF_TEXT_CHARACTERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An item in a list: its row, its title, its first words."""

    row: ItemRow
    title: str = ""
    words: str = ""
    together: Sequence[FoldedItem] = ()
    """All items that it stands for, where there are others, the leading one first."""

    @property
    def is_read(self) -> bool:
        """True if it has no news."""
        if not self.together:
            return self.row.is_read
        return not any(is_news(each, self.together) for each in self.together)

    @property
    def is_updated(self) -> bool:
        """True if a part of it was read, and something came since then."""
        return not self.is_read and any(not each.unread for each in self.together)

    @property
    def others(self) -> Sequence[FoldedItem]:
        return [each for each in self.together if each.id != self.row.id]

    @property
    def other_feeds(self) -> Sequence[str]:
        """The feeds of the others, by name."""
        return list(dict.fromkeys(each.feed_title or each.feed_url for each in self.others))

    @property
    def copied(self) -> str:
        """The ids of what its item is a copy of, which is unread with it."""
        return ",".join(each.id for each in earlier_copies(self.together, self.row.id))

    @property
    def listed(self) -> str:
        """The ids of all items that are read with it; empty for an item that stands for itself."""
        return ",".join(each.id for each in read_with(self.together, self.row.id))


@router.get("/")
async def home() -> Response:
    """The first page."""
    return see_other(HOME)


@router.get("/unread")
async def unread(
    request: Request, caller: SignedIn, order: Order | None = None, after: After = None
) -> Response:
    """Unread items of all feeds."""
    return await _list(request, caller, View(kind="unread", order=order), after)


@router.get("/all")
async def everything(
    request: Request, caller: SignedIn, order: Order | None = None, after: After = None
) -> Response:
    """All items of all feeds."""
    return await _list(request, caller, View(kind="all", order=order), after)


@router.get("/starred")
async def starred(
    request: Request,
    caller: SignedIn,
    show: Show | None = None,
    order: Order | None = None,
    after: After = None,
) -> Response:
    """Items with a star, in the order of their arrival."""
    return await _list(request, caller, View(kind="starred", show=show, order=order), after)


@router.get("/feeds")
async def feeds(request: Request, caller: SignedIn) -> Response:
    """All folders and feeds: on a phone, in place of the column beside the items."""
    frame, _ = await read_frame(caller)
    return await run_in_threadpool(page, request, "feeds.html", title="Feeds", frame=frame)


@router.get("/feeds/{id}")
async def of_feed(
    request: Request,
    caller: SignedIn,
    id: str,
    show: Show | None = None,
    order: Order | None = None,
    after: After = None,
) -> Response:
    """Items of a feed."""
    view = View(kind="feed", scope=Scope(feed_id=id), show=show, order=order)
    return await _list(request, caller, view, after)


@router.get("/folders")
@router.get("/folders/{name:path}")
async def of_folder(
    request: Request,
    caller: SignedIn,
    name: FolderName,
    show: Show | None = None,
    order: Order | None = None,
    after: After = None,
) -> Response:
    """Items of the feeds in a folder."""
    view = View(kind="folder", scope=Scope(folder=name), show=show, order=order)
    return await _list(request, caller, view, after)


@router.get("/next-unread")
async def next_unread(caller: SignedIn, after: str = "") -> Response:
    """The next feed with unread items behind this one, in the order of the column."""
    frame, _ = await read_frame(caller)
    found = frame.next_unread(after)
    return see_other(HOME if found is None else feed_url(found.feed_id))


async def _list(request: Request, caller: AsyncCaller, view: View, after: str | None) -> Response:
    frame, marks = await read_frame(caller, undoable(caller.user_id, now=caller.clock()))
    feeds = _feeds_of(frame, view)
    wanted = view.page(frame.preferences, after=None if after is None else Key.read(after))
    items, texts = await caller.ask_long(
        items_with_texts(caller.user_id, view.filter(frame.preferences), wanted)
    )
    folded = await read_together(caller, view, frame.preferences, items.items)

    def shown() -> Response:
        has_words = frame.preferences.density == "comfortable"
        entries = entries_of(items.items, texts, folded, has_words=has_words)
        feed = feeds[0] if view.kind == "feed" else None
        return page(
            request,
            "list.html",
            frame=frame,
            title=_title(view, feed),
            path=view.path,
            view=view,
            feed=feed,
            entries=entries,
            is_unread_only=view.is_unread_only(frame.preferences),
            is_newest_first=view.newest_first(frame.preferences),
            order=view.order_for(frame.preferences),
            undoable=next(iter(marks), None),
            is_first_page=after is None,
            more=None if items.next_key is None else view.address(after=items.next_key),
            unread=_unread(frame, view, feeds),
            version=frame.version
            if feeds is frame.feeds
            else max((each.version for each in feeds), default=0),
        )

    return await run_in_threadpool(shown)


def _unread(frame: Frame, view: View, feeds: Sequence[FeedRow]) -> int:
    """The unread entries of a view."""
    if feeds is frame.feeds:
        return frame.unread
    hidden = next((each.hidden for each in frame.folders if each.name == view.scope.folder), 0)
    return sum(each.unread for each in feeds) - (hidden if view.kind == "folder" else 0)


async def read_together(
    caller: AsyncCaller, view: View, preferences: Preferences, rows: Sequence[ItemRow]
) -> Together:
    """By item of a view, all items for which it stands."""
    if not rows or view.filter(preferences).fold is None or view.kind == "starred":
        return {}
    found = await caller.ask_long(together_with(caller.user_id, view.scope, [row.id for row in rows]))
    return {id: items for id, items in found.items() if len(items) > 1}


def _feeds_of(frame: Frame, view: View) -> Sequence[FeedRow]:
    """The feeds of a view.

    Raises:
        ApiError: the user has no such feed, or no such folder.
    """
    match view.kind:
        case "feed":
            found = [feed for feed in frame.feeds if feed.feed_id == view.scope.feed_id]
            if not found:
                raise ApiError("not_found", "You have no such feed.", what_to_do=_ELSEWHERE)
            return found
        case "folder":
            if not any(folder.name == view.scope.folder for folder in frame.folders):
                raise ApiError("not_found", "You have no such folder.", what_to_do=_ELSEWHERE)
            return [feed for feed in frame.feeds if feed.folder == view.scope.folder]
        case _:
            return frame.feeds


_ELSEWHERE = "It may have been renamed or unsubscribed; your feeds are in the column, and at /feeds."


def _title(view: View, feed: FeedRow | None) -> str:
    match view.kind:
        case "unread":
            return "Unread"
        case "all":
            return "All items"
        case "starred":
            return "Starred"
        case "folder":
            return view.scope.folder or ""
        case "feed":
            assert feed is not None
            return one_line(feed.title, limit=_TITLE_CHARACTERS) or feed.url


def entries_of(rows: Iterable[ItemRow], texts: Texts, folded: Together, *, has_words: bool) -> list[Entry]:
    """The lines of these items; `texts` are the starts of their texts."""
    found = []
    for row in rows:
        text = texts[row.id]
        title = title_line(row.title, limit=_TITLE_CHARACTERS)
        words = text_of(text, limit=_SHOWN_CHARACTERS) if has_words and title else ""
        title = title or text_of(text, limit=_TITLE_OF_TEXT_CHARACTERS)
        words = "" if words == title else words
        found.append(Entry(row=row, title=title, words=words, together=folded.get(row.id, ())))
    return found


# Items that a page shows already, for its script: their marks, and their lines once more.
#
# Others mark items too: apps, other windows, the page of an item that somebody comes back from.

MOST_IDS = 100
"""Their address has 3,300 characters, which every proxy takes."""
Ids = Annotated[str, Query(pattern=rf"^(?:[0-9a-f]{{32}}(?:,[0-9a-f]{{32}}){{0,{MOST_IDS - 1}}})?$")]


@router.get("/state")
async def state(caller: SignedIn, ids: Ids = "") -> Response:
    """All counts of the user, and the marks of these items."""
    own, counts, hidden, stars, marked = await caller.ask_long(
        together(
            state_version(caller.user_id),
            unread_counts(caller.user_id),
            hidden_unread(caller.user_id),
            star_count(caller.user_id),
            marks(caller.user_id, _listed(ids)),
        )
    )
    version = max((each.newest for each in counts), default=0)
    found: dict[str, Any] = {
        "state": own,
        "version": version,
        "unread": {each.feed_id: each.unread for each in counts if each.unread},
        # Subtracted from the sums of their feeds.
        "hidden": {"all": hidden.of_all, "folders": hidden.of_folders},
        "starred": stars,
        "all": await items_of_all(caller, sorted(each.feed_id for each in counts), version),
        "items": {each.id: [bool(each.read), bool(each.starred)] for each in marked},
    }
    headers = {"Cache-Control": "private, no-store"}
    return Response(orjson.dumps(found), headers=headers, media_type="application/json")


@router.get("/entries")
async def entries_by_id(
    request: Request, caller: SignedIn, ids: Ids = "", source: Annotated[str, Query(alias="from")] = ""
) -> Response:
    """The lines of these items in a list, in this order; those that are gone are left out."""
    preferences, (found, texts) = await caller.ask_long(
        together(own_preferences(caller.user_id), named_items_with_texts(caller.user_id, _listed(ids)))
    )
    rows = {row.id: row for row in found}
    view = view_at(source)
    folded = await read_together(caller, view, preferences, found)

    def shown() -> Response:
        listed = [rows[id] for id in _listed(ids) if id in rows]
        has_words = preferences.density == "comfortable"
        return page(
            request,
            "entries.html",
            title="",
            view=view,
            entries=entries_of(listed, texts, folded, has_words=has_words),
        )

    return await run_in_threadpool(shown)


def _listed(ids: str) -> list[str]:
    return ids.split(",") if ids else []
