"""The items that a topic may show, read from the database: as few rows as make the choice exact.

An item's sort date is never later than the time at which it was stored, and a feed's items are read from the
newest of these times on. So where reading stopped, every item with a later sort date is known, and the choice
among these is the choice among all.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.sanitize.html import MOST_HTML_CHARACTERS, READ_FOR_TEXT
from rss_pipeline.features.topics.choice import DEPTH, Chosen, choose, counted, is_settled
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.features.topics.values import Candidate, SourceFeed
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.items import members as newest
from rss_pipeline.storage.items.items import stored_authors, stored_enclosures
from rss_pipeline.storage.items.members import Wanted

_LEAST_READ = 5
"""Items read of each member at first."""
_GROWTH = 4
_ALWAYS = datetime.min.replace(tzinfo=UTC)
"""Behind every item: of a member of which all is known."""


def read_chosen(database: Database, topic: TopicSpec) -> tuple[Chosen, ...]:
    """The items that the topic shows, without their texts.

    A feed with headers, a password or `allow_private` has none unless the topic is public: the registry
    refuses such a topic, but the feed may have become private since it was read.
    """
    reading = _Reading(database, topic)
    while not reading.is_enough:
        reading.go_on()
    return choose(topic, reading.usable())


def with_texts(database: Database, topic: TopicSpec, chosen: Sequence[Chosen]) -> Iterator[Chosen]:
    """The items with their texts, which are read as they are reached: long ones need not all be in memory.

    An item that is gone since is left out; what removed it has made the topic due again.
    """
    characters = MOST_HTML_CHARACTERS + 1 if topic.content == "full" else READ_FOR_TEXT
    shown = {each.candidate.item_id: each for each in chosen}
    for row in newest.items(database, list(shown), text_characters=characters):
        each = shown[row["id"]]
        yield replace(each, candidate=_with_text(each.candidate, row))


class _Reading:
    """The members of one topic, each read from its newest item down to a date."""

    def __init__(self, database: Database, topic: TopicSpec) -> None:
        self._database = database
        self._topic = topic
        self._feeds: dict[str, Row] = {}
        self._sources: dict[str, SourceFeed] = {}
        self._known: dict[int, list[Candidate]] = {}
        self._down_to: dict[int, datetime] = {}
        """For each member, the date above which all of its items are known."""
        self._limit = _first_limit(topic)
        self._read(range(len(topic.of)))

    @property
    def is_enough(self) -> bool:
        return not self._unfinished()

    def go_on(self) -> None:
        self._limit *= _GROWTH
        self._read(self._unfinished())

    def usable(self) -> list[Candidate]:
        """The items of which it is certain that none is missing before them."""
        horizon = max(self._down_to.values(), default=_ALWAYS)
        usable = []
        for member, candidates in self._known.items():
            down_to = horizon if self._topic.each is None else self._down_to[member]
            usable += [each for each in candidates if _is_above(each, down_to)]
        return usable

    def _unfinished(self) -> list[int]:
        """The members of which more must be read."""
        limited = [member for member, down_to in self._down_to.items() if down_to > _ALWAYS]
        if self._topic.each is not None:
            return [member for member in limited if not self._has_newest(member)]
        if not limited or is_settled(self._topic, self.usable()):
            return []
        # A member that was read further down than what is looked at has nothing more in it.
        least = DEPTH * self._topic.items
        known = counted(self._topic, [each for some in self._known.values() for each in some])[:least]
        last = known[-1].sort_date if len(known) == least and not _is_last(known[-1]) else _ALWAYS
        return [member for member in limited if self._down_to[member] >= last] or limited

    def _has_newest(self, member: int) -> bool:
        certain = [each for each in self._known[member] if _is_above(each, self._down_to[member])]
        return bool(certain) and is_settled(self._topic, certain)

    def _read(self, members: Iterable[int]) -> None:
        wanted = [Wanted(index=index, member=self._topic.of[index]) for index in members]
        statements = newest.places(wanted, self._limit)
        if not self._feeds:
            ids = sorted({each.member.feed_id for each in wanted})
            known, *found = self._database.batch([newest.feeds(ids), *statements])
            self._feeds = {row["id"]: row for row in known.rows if self._topic.public or _is_public(row)}
            self._sources = {id: _source(row) for id, row in self._feeds.items()}
        else:
            found = self._database.batch(statements)
        rows: dict[int, list[Row]] = {each.index: [] for each in wanted}
        for result in found:
            for row in result.rows:
                rows[int(row["member"])].append(row)
        for member, some in rows.items():
            is_all = len(some) < self._limit
            oldest = _ALWAYS if is_all else min(datetime.fromisoformat(row["created_at"]) for row in some)
            shown = [row for row in some if row["feed_id"] in self._feeds]
            self._known[member] = [self._candidate(member, row) for row in shown]
            self._down_to[member] = oldest if shown else _ALWAYS

    def _candidate(self, member: int, row: Row) -> Candidate:
        first = self._feeds[row["feed_id"]]["first_stored_at"]
        return Candidate(
            member=member,
            feed=self._sources[row["feed_id"]],
            item_id=row["id"],
            guid=row["guid"],
            link=row["link"],
            pub_date=datetime.fromisoformat(row["pub_date"]),
            created_at=datetime.fromisoformat(row["created_at"]),
            is_dated=row["pub_date_source"] == "feed",
            is_of_first_document=first is not None and row["created_at"] <= first,
        )


def _is_above(candidate: Candidate, down_to: datetime) -> bool:
    return down_to == _ALWAYS or (candidate.sort_date > down_to and not _is_last(candidate))


def _is_last(candidate: Candidate) -> bool:
    """True for undated items of a first document: they come after all others, whatever their date."""
    return candidate.is_of_first_document and not candidate.is_dated


def _first_limit(topic: TopicSpec) -> int:
    if topic.each is not None:
        return topic.each + _LEAST_READ
    # Twice its share: members are not equally busy.
    return max(_LEAST_READ, 2 * DEPTH * topic.items // len(topic.of)) + 1


def _is_public(row: Row) -> bool:
    return not (row["needs_access"] or row["allow_private"])


def _source(row: Row) -> SourceFeed:
    return SourceFeed(id=row["id"], url=row["url"], title=row["title"], link=row["link"])


def _with_text(candidate: Candidate, row: Row) -> Candidate:
    return replace(
        candidate,
        title=row["title"],
        authors=stored_authors(row),
        updated_at=from_instant(row["updated_at"]),
        categories=tuple(json.loads(row["categories"])),
        enclosures=stored_enclosures(row),
        summary=row["summary"],
        content_html=row["content_html"],
        base_url=row["base_url"],
    )
