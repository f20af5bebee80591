"""A user's search: the index gives arrival numbers, the database the items, and only those of the user.

Twice the subscriptions decide: the index is read for the user's feeds alone, and the items are read through
the user's subscriptions. So no one finds, counts or pages by what another one subscribes to, and what was
removed since the index was written is not shown.
"""

import re
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from html import escape
from typing import Literal

from rss_pipeline.collector.sanitize.html import plain_text
from rss_pipeline.collector.sanitize.text import without_markup
from rss_pipeline.features.search import finding, sql
from rss_pipeline.features.search.finding import Match, RankKey
from rss_pipeline.features.search.index_build import FIRST_YEAR, LAST_YEAR
from rss_pipeline.features.search.index_file import IndexFile
from rss_pipeline.features.search.search_query import SearchQuery, months
from rss_pipeline.features.search.words import folded, normal, pattern
from rss_pipeline.features.search.writing import Generation, generations, scope_of_time
from rss_pipeline.storage.database import Result, Row
from rss_pipeline.storage.subscriptions import item_lists
from rss_pipeline.storage.subscriptions.chosen import Chosen
from rss_pipeline.storage.subscriptions.folding import numbers_together
from rss_pipeline.storage.subscriptions.item_lists import ItemRow

Order = Literal["date", "rank"]
OpenIndex = Callable[[], AbstractContextManager[IndexFile]]
Read = Callable[..., list[Result]]
"""The results of statements, read for the user in one batch (Caller.read)."""

_ROUNDS = 3
"""Looks into the index for one page: what it finds may be gone from the database, or stand below another."""
KEY_PATTERN = (
    r"^([0-9]{1,16})(?:-([0-9]{1,16})|_(-?[0-9]{1,4}\.[0-9]{1,18}(?:e-[0-9]{1,3})?)_([0-9]{1,18}))?$"
)
"""Keys of pages: an arrival number, and the highest one at the first page; by rank, that one and a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """An item that was found."""

    item: ItemRow
    title_html: str
    """The title, escaped, with the hits in <mark>; empty for an item without one."""
    snippet_html: str
    """A part of the content, likewise."""
    others: "tuple[SearchHit, ...]" = ()
    """The hits of its story that come behind it."""
    read_with: frozenset[int] = frozenset()
    """The numbers of those items of its story that are read with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A page of a search."""

    found: tuple[SearchHit, ...] = ()
    next_key: str | None = None
    left_out: tuple[str, ...] = ()
    """A sentence for each part of the query that was not used, and for an index that is being built."""


@dataclass(slots=True, kw_only=True)
class Search:
    """One page of what a user searches for.

    `key` is the `next_key` of the page before. It takes a batch for the user's feeds, and mostly one for
    items; by story, one more for the others of their stories.
    """

    open_index: OpenIndex
    read: Read
    user_id: str
    query: SearchQuery
    order: Order = "date"
    limit: int = 50
    key: str | None = None
    by_story: bool = False
    """True: of a story, only the first item that is found is an entry."""
    _left_out: list[str] = field(default_factory=list, init=False)

    def results(self) -> Results:
        """The page.

        Raises:
            SearchUnavailable: the index is not there or cannot be read now.
            ValueError: the key is none of ours.
        """
        self._left_out = list(self.query.left_out)
        key = _read_key(self.key)
        # First of all, for this shows whether anybody is logged in.
        [found] = self.read(sql.subscribed_feeds(self.user_id))
        if self.query.is_empty:
            return Results(left_out=tuple(self._left_out))
        feeds = self._feeds(found.rows)
        match = _match(self.query, feeds)
        if match is None or not feeds:
            return Results(left_out=tuple(self._left_out))
        by = self._by_rank if self.order == "rank" else self._by_date
        with self.open_index() as file:
            generation = generations(file)[0]
            if not generation.is_complete:
                self._left_out.append("The index is being built: the newest items are not in it yet.")
            return by(file, generation, match, key)

    def _by_date(self, file: IndexFile, generation: Generation, match: Match, key: "_Key | None") -> Results:
        """The newest arrivals first."""
        up_to = generation.arrived if key is None or key.up_to is None else key.up_to
        shown, last = self._entries(
            lambda last, most: finding.newest(file, generation, match, limit=most, before=last),
            first=up_to + 1 if key is None else key.number,
            place=lambda number: -number,
            matching=lambda numbers: finding.among(
                file, generation, match, [each for each in numbers if each <= up_to]
            ),
        )
        return self._page(shown, None if last is None else f"{last}-{up_to}")

    def _by_rank(self, file: IndexFile, generation: Generation, match: Match, key: "_Key | None") -> Results:
        """The best first."""
        up_to = generation.arrived if key is None else key.up_to or key.number
        ranked = finding.best(file, generation, match, up_to=up_to)
        places = {each.arrived: place for place, each in enumerate(ranked)}
        behind = (
            ranked
            if key is None or key.place is None
            else [each for each in ranked if each.key.is_behind(key.place)]
        )
        shown, last = self._entries(
            lambda last, most: [
                each.arrived for each in behind if last is None or places[each.arrived] > places[last]
            ][:most],
            first=None,
            place=places.__getitem__,
            matching=lambda numbers: places.keys() & set(numbers),
        )
        if last is None:
            return self._page(shown, None)
        place = ranked[places[last]].key
        return self._page(shown, f"{up_to}_{_decimal(place.score)}_{place.slot}")

    def _entries(
        self,
        find: Callable[[int | None, int], Sequence[int]],
        *,
        first: int | None,
        place: Callable[[int], int],
        matching: Callable[[Sequence[int]], Set[int]],
    ) -> tuple[list[SearchHit], int | None]:
        """The entries of a page, and the last item that was looked at; None where there is no more.

        `find` gives so many items behind one, in their order, and `matching` those of some that the search
        finds. Of a story the first one stands for all: for the others, whichever page they would be on.
        """
        shown, last, passed = list[SearchHit](), first, set[int]()
        for _ in range(_ROUNDS):
            wanted = self.limit - len(shown)
            found = [each for each in find(last, wanted + len(passed) + 1) if each not in passed]
            rows, others = self._rows(found[:wanted], matching)
            for number in found[:wanted]:
                beside = sorted((each for each in others.get(number, ()) if each in rows), key=place)
                if number in rows and (not beside or place(number) < place(beside[0])):
                    shown.append(replace(rows[number], others=tuple(rows[each] for each in beside)))
                    passed.update(beside)
            if len(found) <= wanted:
                return shown, None
            last = found[wanted - 1]
            if len(shown) == self.limit:
                break
        return shown, last

    def _rows(
        self, numbers: Sequence[int], matching: Callable[[Sequence[int]], Set[int]]
    ) -> tuple[dict[int, SearchHit], dict[int, set[int]]]:
        """These items without those that are gone, and with what is found of their stories; the others of
        each one's story."""
        rows = self._read(numbers)
        if not self.by_story:
            return rows, {}
        others = {
            number: numbers_together(found.item.together).keys() - {number} for number, found in rows.items()
        }
        known = matching(sorted(set().union(*others.values())))
        rows |= self._read(sorted(known - rows.keys()))
        return rows, {number: each & known for number, each in others.items()}

    def _page(self, shown: Sequence[SearchHit], next_key: str | None) -> Results:
        return Results(found=tuple(shown), next_key=next_key, left_out=tuple(self._left_out))

    def _read(self, numbers: Sequence[int]) -> dict[int, SearchHit]:
        """By number, these items without those that are gone."""
        if not numbers:
            return {}
        items, texts = self.read(
            item_lists.items_by(
                self.user_id, Chosen.by_numbers(numbers), with_hidden=False, with_together=True
            ),
            sql.shown_texts(numbers),
        )
        html = {int(row["arrived"]): row["html"] or "" for row in texts.rows}
        marker = Marker([term.text for term in self.query.terms if not term.is_author])
        return {
            row.arrived: SearchHit(
                item=row,
                title_html=marker.marked(without_markup(row.title or "")),
                snippet_html=marker.snippet(html.get(row.arrived, "")),
                read_with=frozenset(
                    number for number, paired in numbers_together(row.together).items() if paired
                ),
            )
            for row in item_lists.named_items(items)
        }

    def _feeds(self, rows: Sequence[Row]) -> list[str]:
        """The ids of the feeds that are searched."""
        chosen = rows
        if self.query.feeds:
            chosen = []
            for name in self.query.feeds:
                named = [row for row in rows if _is_named(row, name)]
                chosen += named
                if not named:
                    self._left_out.append(f"None of your feeds has “{name[:40]}” in its title.")
        without = [row["id"] for name in self.query.without_feeds for row in rows if _is_named(row, name)]
        return sorted({row["id"] for row in chosen} - set(without))


@dataclass(frozen=True, slots=True)
class _Key:
    number: int
    up_to: int | None
    place: RankKey | None


def _read_key(key: str | None) -> _Key | None:
    if key is None:
        return None
    found = re.fullmatch(KEY_PATTERN, key, re.ASCII)
    if found is None:
        raise ValueError("a page goes on at the key of the page before")
    place = None if found[3] is None else RankKey(float(found[3]), int(found[4]))
    return _Key(int(found[1]), None if found[2] is None else int(found[2]), place)


def _match(query: SearchQuery, feed_ids: Sequence[str]) -> Match | None:
    """The query for the index; None where nothing can match."""
    parts = [term.expression for term in query.terms]
    if query.after is not None or query.before is not None:
        marks = [
            scope_of_time(year, month)
            for year, month in months(query.after, query.before, first=FIRST_YEAR, last=LAST_YEAR)
        ]
        if not marks:
            return None
        parts.append(f"({' OR '.join(chr(34) + mark + chr(34) for mark in marks)})")
    return Match(
        expression=" AND ".join(map(_grouped, parts)) or finding.every(),
        without=" OR ".join(_grouped(term.expression) for term in query.without),
        feed_ids=feed_ids,
        published_from=_seconds(query.after),
        published_before=_seconds(query.before),
    )


def _grouped(expression: str) -> str:
    return f"({expression})"


def _seconds(day: date | None) -> int | None:
    return None if day is None else int(datetime.combine(day, time(), UTC).timestamp())


def _is_named(row: Row, name: str) -> bool:
    wanted = folded(normal(name))
    titles = (row["own_title"], row["title"])
    return row["id"] == name.lower() or any(wanted in folded(normal(title)) for title in titles if title)


def _decimal(score: float) -> str:
    text = repr(float(score))
    return text if "." in text else text.replace("e", ".0e") if "e" in text else f"{text}.0"


# A snippet of an item around what was found in it, as HTML: escaped, with the hits in <mark>.

CHARACTERS = 240
_BEFORE = 60
"""Characters before the first hit."""
_LOOKED_AT = 20_000
"""Characters of a text."""
_MOST_HITS = 100
_SPACES = re.compile(r"\s+")


class Marker:
    """Marks the hits of some texts of a query."""

    def __init__(self, texts: Sequence[str]) -> None:
        patterns = [found for text in texts if (found := pattern(text)) is not None]
        # The longest first: a hit of a phrase is not one of its first word.
        longest = sorted(set(patterns), key=len, reverse=True)
        self._hit = re.compile("|".join(f"({each})" for each in longest)) if longest else None

    def marked(self, text: str, *, limit: int = 500) -> str:
        """The start of a text on one line, all of its hits marked."""
        text = _one_line(text)[:limit]
        return _with_marks(text, self._hits(text), 0, len(text))

    def snippet(self, html: str) -> str:
        """The part of an item's HTML that shows most of the hits; its start where there is none."""
        text = _one_line(plain_text(html[: 4 * _LOOKED_AT]))[:_LOOKED_AT]
        hits = self._hits(text)
        begin = _best_start(hits)
        begin = _word_start(text, begin - _BEFORE) if begin > _BEFORE else 0
        end = _word_end(text, begin + CHARACTERS)
        shown = _with_marks(text, hits, begin, end)
        return f"{'… ' if begin else ''}{shown}{' …' if end < len(text) else ''}"

    def _hits(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and pattern of the first hits."""
        found: list[tuple[int, int, int]] = []
        if self._hit is None:
            return found
        for hit in self._hit.finditer(folded(text)):
            if hit.end() > hit.start():
                found.append((hit.start(), hit.end(), hit.lastindex or 0))
            if len(found) >= _MOST_HITS:
                break
        return found


def _best_start(hits: Sequence[tuple[int, int, int]]) -> int:
    """The start of the first hit from which the most different ones are near."""
    best, most = 0, 0
    for place, (start, _, _) in enumerate(hits):
        near = {which for at, _, which in hits[place : place + 20] if at < start + CHARACTERS - _BEFORE}
        if len(near) > most:
            best, most = start, len(near)
    return best


def _with_marks(text: str, hits: Sequence[tuple[int, int, int]], begin: int, end: int) -> str:
    parts, at = [], begin
    for start, stop, _ in hits:
        if start < at or stop > end:
            continue
        parts += [escape(text[at:start]), "<mark>", escape(text[start:stop]), "</mark>"]
        at = stop
    return "".join([*parts, escape(text[at:end])])


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", normal(text)).strip()


def _word_start(text: str, place: int) -> int:
    space = text.find(" ", place, place + 20)
    return place if space < 0 else space + 1


def _word_end(text: str, place: int) -> int:
    if place >= len(text):
        return len(text)
    space = text.rfind(" ", place - 20, place)
    return place if space < 0 else space
