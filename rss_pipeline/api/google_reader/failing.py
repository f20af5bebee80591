"""The feed "Feeds that fail": an entry for each subscribed feed that fails, for users who want it.

A feed that fails goes unseen by people who read through an app. The feed has an id that no real one can have;
its entries have numbers of the second in which the failures began, beyond those that items get in a second.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from html import escape

import orjson

from rss_pipeline.api.google_reader.call import SignedIn
from rss_pipeline.api.google_reader.parameters import FAILING_FEED_ID, FeedStream, StreamPage, in_microseconds
from rss_pipeline.api.google_reader.stream_entries import Origin, StreamEntry
from rss_pipeline.reader.failures import FailingFeed, failing_feeds, read_failures
from rss_pipeline.reader.feed_queries import feeds, visits, with_visits
from rss_pipeline.reader.mark import mark_failures

TITLE = "Feeds that fail"
STREAM = FeedStream(FAILING_FEED_ID)

_SECOND = 1_000_000
_FROM = 500_000
"""Items that came in one second have numbers from 1 up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """The entries of a user, newest first; none where the user does not want the feed."""

    is_shown: bool = False
    entries: tuple[StreamEntry, ...] = ()

    def on(self, page: StreamPage) -> list[StreamEntry]:
        """The entries that a page's filters let through, behind its key; `page` is of this feed or of all."""
        if page.is_empty or page.is_starred:
            return []
        found = [
            entry
            for entry in self.entries
            if (page.is_read is None or entry.is_read is page.is_read)
            and (page.since is None or entry.number >= page.since)
            and (page.until is None or entry.number <= page.until)
            and (page.behind is None or (entry.number > page.behind) is page.oldest_first)
            and entry.number != page.behind
        ]
        return found[::-1] if page.oldest_first else found

    def marked(self, numbers: Iterable[int], *, is_read: bool) -> list[int]:
        """The numbers of all entries that are read once these are marked."""
        named = set(numbers)
        return [
            entry.number for entry in self.entries if (is_read if entry.number in named else entry.is_read)
        ]


def may_be_entries(numbers: Iterable[int]) -> bool:
    """True if one of these numbers may be that of an entry here."""
    return any(number % _SECOND >= _FROM for number in numbers)


async def read_failing(session: SignedIn) -> Failing:
    """The entries of the caller."""
    return await failing_of(session, await session.ask(read_failures(session.user_id)))


async def failing_of(session: SignedIn, read: frozenset[int] | None) -> Failing:
    """The same, for a user who has read these failures; None for one who does not want the feed."""
    if read is None:
        return Failing()
    listed = await session.ask(feeds(session.user_id, has_visits=False))
    rows = [row for row in listed if row.last_visit_failed]
    rows = with_visits(rows, await session.ask(visits([row.feed_id for row in rows])))
    numbered = _numbered(failing_feeds(rows))
    entries = [_entry(number, feed, is_read=number in read) for number, feed in numbered.items()]
    entries.sort(key=lambda entry: entry.number, reverse=True)
    return Failing(is_shown=True, entries=tuple(entries))


async def mark(session: SignedIn, failing: Failing, numbers: Iterable[int], *, is_read: bool) -> None:
    """Mark these entries."""
    before = failing.marked((), is_read=is_read)
    after = failing.marked(numbers, is_read=is_read)
    if before != after:
        await session.change(lambda caller: mark_failures(caller, after))


def _numbered(feeds: Iterable[FailingFeed]) -> Mapping[int, FailingFeed]:
    found: dict[int, FailingFeed] = {}
    for feed in sorted(feeds, key=lambda each: each.feed_id):
        second = in_microseconds(feed.since.replace(microsecond=0))
        place = int.from_bytes(blake2b(feed.feed_id.encode(), digest_size=8).digest()) % (_SECOND - _FROM)
        while second + _FROM + place in found:
            place = (place + 1) % (_SECOND - _FROM)
        found[second + _FROM + place] = feed
    return found


def _entry(number: int, feed: FailingFeed, *, is_read: bool) -> StreamEntry:
    since, next_visit = (at.strftime("%Y-%m-%d %H:%M UTC") for at in (feed.since, feed.next_visit))
    sentences = (
        f"{feed.title} fails since {since}.",
        feed.error,
        feed.what_to_do,
        f"It stays subscribed; the next visit is at {next_visit}.",
    )
    return StreamEntry(
        number=number,
        origin=Origin(feed_id=FAILING_FEED_ID, title=TITLE, url=feed.url, site=None, folder=None),
        title=f"{feed.title} fails since {since}",
        link=feed.url,
        authors=(),
        published=feed.since,
        updated=feed.since,
        html_json=(orjson.dumps("".join(f"<p>{escape(each)}</p>" for each in sentences if each)),),
        categories=(),
        enclosures=(),
        is_read=is_read,
        is_starred=False,
    )
