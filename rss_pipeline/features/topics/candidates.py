"""The items that a topic may show, read from the database: as few rows as make the choice exact.

An item's sort date is never later than the time at which it was stored, and a feed's items are read from the
newest of these times on. So where reading stopped, every item with a later sort date is known, and the choice
among these is the choice among all.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.feed import Member
from rss_pipeline.collector.sanitize.html import MOST_HTML_CHARACTERS, READ_FOR_TEXT
from rss_pipeline.features.topics.choice import DEPTH, TopicItem, choose, counted, is_settled
from rss_pipeline.features.topics.model import Candidate, MemberOfStory, SourceFeed, TopicSpec
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.items.body_parts import longer_or
from rss_pipeline.storage.items.items import stored_authors, stored_enclosures
from rss_pipeline.storage.items.stories import JOINS, stored_joins
from rss_pipeline.storage.sql import compact, number

_LEAST_READ = 5
"""Items read of each member at first."""
_GROWTH = 4
_ALWAYS = datetime.min.replace(tzinfo=UTC)
"""Behind every item: of a member of which all is known."""


def read_chosen(database: Database, topic: TopicSpec) -> tuple[TopicItem, ...]:
    """The items that the topic shows, without their texts.

    A feed with headers, a password or `allow_private` has none unless the topic is public: the registry
    refuses such a topic, but the feed may have become private since it was read.
    """
    reading = _Reading(database, topic)
    while not reading.is_enough:
        reading.go_on()
    return choose(topic, reading.usable())


def with_texts(database: Database, topic: TopicSpec, chosen: Sequence[TopicItem]) -> Iterator[TopicItem]:
    """The items with their texts, which are read as they are reached: long ones need not all be in memory.

    An item that is gone since is left out; what removed it has made the topic due again.
    """
    characters = MOST_HTML_CHARACTERS + 1 if topic.content == "full" else READ_FOR_TEXT
    shown = {each.candidate.item_id: each for each in chosen}
    for row in item_texts(database, list(shown), text_characters=characters):
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
        wanted = [WantedMember(index=index, member=self._topic.of[index]) for index in members]
        statements = places(wanted, self._limit)
        if not self._feeds:
            ids = sorted({each.member.feed_id for each in wanted})
            known, *found = self._database.batch([feeds_shown(ids), *statements])
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
            story=_story(row) if self._topic.stories else None,
            link=row["link"],
            pub_date=datetime.fromisoformat(row["pub_date"]),
            created_at=datetime.fromisoformat(row["created_at"]),
            is_dated=row["pub_date_source"] == "feed",
            is_of_first_document=first is not None and row["created_at"] <= first,
        )


def _story(row: Row) -> MemberOfStory | None:
    if row["story"] is None:
        return None
    joins = tuple(join.items for join in stored_joins(row["joins"]))
    return MemberOfStory(id=row["story"], joins=joins, is_moved=row["kind"] == "operator")


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


# The newest items of feeds and streams, as topics need them.
#
# First where they are and their dates, of more items than are shown; then all of those that are. Which are
# shown is decided in features.topics.

PAGE_ITEMS = 50
USUAL_CHARACTERS = 20_000
"""Longer texts are read by a query of their own, so that no answer is large."""
PAGE_CHARACTERS = 500_000
"""Size of the long texts read at once; a longer one comes alone."""

_MEMBER, _FEED, _STREAM = (f"json_extract(m.value, '$[{n}]')" for n in range(3))
_MEMBER = number(_MEMBER)
_HTML = longer_or("i.content_html", "i")
# The index has the items of a feed by age: so many are read, and none behind them.
_OF_FEED = f"""SELECT n.rowid FROM items AS n INDEXED BY items_age
  WHERE n.feed_id = {_FEED} ORDER BY n.created_at DESC LIMIT ?"""
_OF_STREAM = f"""SELECT n.rowid FROM item_streams AS s CROSS JOIN items AS n ON n.id = s.item_id
  WHERE s.feed_id = {_FEED} AND s.stream = {_STREAM} ORDER BY n.created_at DESC LIMIT ?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMember:
    """A member of a topic, for the read of its newest items."""

    index: int
    """Its place in the topic."""
    member: Member


def places(wanted: Sequence[WantedMember], limit: int) -> list[Statement]:
    """Queries for the newest `limit` items of each member by the time at which they were stored.

    A row has `member`, `id`, `feed_id`, `guid`, `link`, `pub_date`, `pub_date_source`, `created_at`, and
    `story`, `joins` and `kind` of a member of a story.
    """
    return [
        Statement(
            f"""SELECT {_MEMBER} AS member, i.id, i.feed_id, i.guid, i.link, i.pub_date, i.pub_date_source,
              i.created_at, o.story_id AS story, {JOINS.format("o")} AS joins,
              json_extract(o.evidence, '$.kind') AS kind
            FROM json_each(?) AS m CROSS JOIN items AS i ON i.rowid IN ({newest})
            LEFT JOIN story_members AS o ON o.item_id = i.id""",
            [compact([[one.index, one.member.feed_id, one.member.stream] for one in chosen]), limit],
            name="find the newest items",
        )
        for newest, is_stream in ((_OF_FEED, False), (_OF_STREAM, True))
        if (chosen := [one for one in wanted if (one.member.stream is not None) == is_stream])
    ]


def feeds_shown(ids: Sequence[str]) -> Statement:
    """A query for what topics show of these feeds, and whether they may be shown."""
    return Statement(
        """SELECT id, url, title, link, first_stored_at, needs_access, allow_private FROM feeds
        WHERE id IN (SELECT value FROM json_each(?))""",
        [compact(list(ids))],
        name="read feeds of a topic",
    )


def item_texts(database: Database, ids: Sequence[str], *, text_characters: int) -> Iterator[Row]:
    """The texts of these items that topics show, in their order; of HTML and summary so many characters from
    the start.

    Long texts are read as they are reached, so that few of them are in memory at once. An item that is
    gone is left out.
    """
    for start in range(0, len(ids), PAGE_ITEMS):
        page = ids[start : start + PAGE_ITEMS]
        found = database.query(
            f"""SELECT i.id, i.title, i.author, i.authors, i.updated_at, i.categories, i.enclosures,
              i.base_url, substr(i.summary, 1, {USUAL_CHARACTERS}) AS summary,
              substr({_HTML}, 1, {USUAL_CHARACTERS}) AS content_html,
              max(coalesce(length(i.summary), 0), coalesce(length({_HTML}), 0)) AS characters
            FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value""",
            [compact(page)],
            name="read items of a topic",
        ).rows
        rows = {row["id"]: row for row in found}
        sizes = {id: min(int(rows[id]["characters"]), text_characters) for id in page if id in rows}
        long = [id for id, size in sizes.items() if size > USUAL_CHARACTERS]
        texts: dict[str, Row] = {}
        for id in sizes:
            if long and id == long[0]:
                some = _first_of(long, sizes)
                long = long[len(some) :]
                texts = _long_texts(database, some, text_characters)
            yield rows.pop(id) | texts.pop(id, {})


def _first_of(ids: Sequence[str], sizes: Mapping[str, int]) -> Sequence[str]:
    """As many as are read at once, and one at least."""
    totals = accumulate(sizes[id] for id in ids)
    return ids[: max(1, sum(total <= PAGE_CHARACTERS for total in totals))]


def _long_texts(database: Database, ids: Sequence[str], text_characters: int) -> dict[str, Row]:
    rows = database.query(
        f"""SELECT i.id, substr(i.summary, 1, ?) AS summary, substr({_HTML}, 1, ?) AS content_html
        FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value""",
        [text_characters, text_characters, compact(list(ids))],
        name="read long items of a topic",
    ).rows
    return {row["id"]: row for row in rows}
