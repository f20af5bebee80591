"""Items that belong together as one entry of an app, for users who want that: the others are named at its end
and read with it.

An app knows an entry by one item, and puts streams together. So the same item stands for the others in every
stream, that of its feed, too: the one that a list of all feeds shows.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from html import escape
from threading import Lock
from typing import TypeVar

from rss_pipeline.api.google_reader.stream_entries import Ends, web_url
from rss_pipeline.batched import batched
from rss_pipeline.collector.sanitize.item_body import LINK_REL, plain_title
from rss_pipeline.reader import mark
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.failures import InApps, in_apps
from rss_pipeline.reader.item_queries import (
    ALL,
    MAX_CHOSEN,
    FoldedItem,
    ItemRow,
    Shown,
    earlier_copies,
    items_by_number,
    read_with,
    together,
)
from rss_pipeline.reader.mark import ItemMarks, MarkResult
from rss_pipeline.reader.query import Query
from rss_pipeline.reader.query import together as of_one_moment

T = TypeVar("T")
MOST = 100_000
"""Numbers that are remembered; those of the entry that was sent longest ago go first."""


class NamedItems:
    """The others that each session was sent with an entry, all by number; safe to use from several threads.

    What joined an entry since then is not read with it. Where nothing is known, after a crash, an entry that
    an app has from before is read alone, and what else is unread of it comes as an entry again.
    """

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._count = 0
        self._kept: OrderedDict[tuple[str, int], frozenset[int]] = OrderedDict()
        self._folding = set[str]()
        self._lock = Lock()

    def folds(self, user_id: str) -> bool:
        """True if the user wanted entries in place of items when last asked."""
        return user_id in self._folding

    def learn(self, user_id: str, *, folds: bool) -> None:
        """Remember that."""
        with self._lock:
            (self._folding.add if folds else self._folding.discard)(user_id)

    def name(self, session_id: str, number: int, others: Iterable[int]) -> None:
        """Remember that these were named at the end of an item."""
        with self._lock:
            before = self._kept.pop((session_id, number), frozenset())
            found = self._kept[session_id, number] = before.union(others)
            self._count += len(found) - len(before)
            while self._count > self._most:
                _, gone = self._kept.popitem(last=False)
                self._count -= len(gone)

    def others(self, session_id: str, numbers: Iterable[int]) -> list[int]:
        """All that were named at the ends of these items."""
        with self._lock:
            found = [self._kept.get((session_id, number), frozenset()) for number in numbers]
        return sorted(frozenset().union(*found))

    def all(self) -> list[tuple[str, int, list[int]]]:
        """Each entry with its session, and the others that were named."""
        with self._lock:
            return [(session, number, sorted(others)) for (session, number), others in self._kept.items()]

    def entries(self, session_id: str, *, up_to: int) -> list[int]:
        """The items with others that the session was sent, up to this number."""
        with self._lock:
            return [number for session, number in self._kept if session == session_id and number <= up_to]


def read_as_wanted(
    caller: Caller, named: NamedItems, query: Callable[[bool], Query[T]], wishes: Callable[[T], InApps]
) -> T:
    """The result of a query for items or for entries, whichever the user wants. Which it is comes with it, so
    the query is sent as the last one was, and again only where that is another one by now."""
    is_folded = named.folds(caller.user_id)
    found = caller.ask(query(is_folded))
    if wishes(found).is_folded != is_folded:
        named.learn(caller.user_id, folds=not is_folded)
        found = caller.ask(query(not is_folded))
    return found


def as_entries(caller: Caller, named: NamedItems, rows: Sequence[ItemRow]) -> tuple[Sequence[ItemRow], Ends]:
    """These items as they are sent, and remember whom they name. A copy of what was read is read."""
    found = caller.ask(together(caller.user_id, ALL, [row.id for row in rows]))
    ends, entries = dict[str, bytes](), list[ItemRow]()
    for row in rows:
        members = found.get(row.id, ())
        others = [each for each in members if each.id != row.id]
        if others:
            read = [each.arrived for each in read_with(members, row.id) if each.id != row.id]
            named.name(caller.key.session_id, row.arrived, read)
            ends[row.id] = _end(others)
        is_old = not all(each.unread for each in earlier_copies(members, row.id))
        entries.append(row._replace(read=1) if is_old else row)
    return entries, ends


def mark_entries(caller: Caller, named: NamedItems, numbers: Sequence[int], marks: ItemMarks) -> None:
    """Mark the items with these numbers; what was named at their ends is read with them, and what they are
    copies of is unread with them."""
    others = _read_with(caller, named, numbers) if marks.is_read else []
    copied = _unread_with(caller, numbers) if marks.is_read is False else []
    mark.mark_numbers(caller, numbers, marks)
    for chunk in batched(others, MAX_CHOSEN):
        mark.mark_numbers(caller, chunk, ItemMarks(is_read=True))
    if copied:
        mark.mark_items(caller, copied, ItemMarks(is_read=False))


def mark_shown(caller: Caller, named: NamedItems, shown: Shown) -> MarkResult:
    """Mark all items read that were shown, and what was named at their ends."""
    return mark.mark_shown(caller, shown, beside=_read_with_shown(caller, named, shown))


def _read_with(caller: Caller, named: NamedItems, numbers: Sequence[int]) -> list[int]:
    others = named.others(caller.key.session_id, numbers)
    return others if others and caller.ask(in_apps(caller.user_id)).is_folded else []


def _unread_with(caller: Caller, numbers: Sequence[int]) -> list[str]:
    rows, wishes = caller.ask(
        of_one_moment(items_by_number(caller.user_id, numbers), in_apps(caller.user_id))
    )
    ids = [row.id for row in rows.values()] if wishes.is_folded else []
    found = caller.ask(together(caller.user_id, ALL, ids))
    return [each.id for id in ids for each in earlier_copies(found.get(id, ()), id)]


def _read_with_shown(caller: Caller, named: NamedItems, shown: Shown) -> list[int]:
    """The items that are read with what was shown, as far as that is unread."""
    up_to = max([shown.up_to, *shown.of_feeds.values()])
    numbers = named.entries(caller.key.session_id, up_to=up_to)
    if not numbers:
        return []
    scope = shown.scope
    unread = [
        row.arrived
        for row in caller.ask(items_by_number(caller.user_id, numbers)).values()
        if not row.is_read
        and scope.feed_id in (None, row.feed_id)
        and scope.folder in (None, row.folder)
        and row.arrived <= shown.of_feeds.get(row.feed_id, shown.up_to)
    ]
    return _read_with(caller, named, unread)


def _end(others: Iterable[FoldedItem]) -> bytes:
    html = f"<hr><p>Also:</p><ul>{''.join(map(_line, others))}</ul>"
    return json.dumps(html, ensure_ascii=False)[1:-1].encode()


def _line(item: FoldedItem) -> str:
    link = web_url(item.link)
    title = escape(plain_title(item.title) or link or "(no title)")
    named = title if link is None else f'<a href="{escape(link)}" rel="{LINK_REL}">{title}</a>'
    return f"<li>{named} ({escape(item.feed_title or item.feed_url)})</li>"
