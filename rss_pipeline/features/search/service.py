"""A user's search: the index gives arrival numbers, the database the items, and only those of the user.

Twice the subscriptions decide: the index is read for the user's feeds alone, and the items are read through
the user's subscriptions. So no one finds, counts or pages by what another one subscribes to, and what was
removed since the index was written is not shown.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
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
from rss_pipeline.storage.subscriptions.item_lists import ItemRow

Order = Literal["date", "rank"]
OpenIndex = Callable[[], AbstractContextManager[IndexFile]]
Read = Callable[..., list[Result]]
"""The results of statements, read for the user in one batch (Caller.read)."""

_ROUNDS = 2
"""Looks into the index for one page: what it finds may be gone from the database."""
KEY_PATTERN = r"^([0-9]{1,16})(?:_(-?[0-9]{1,4}\.[0-9]{1,18}(?:e-[0-9]{1,3})?)_([0-9]{1,18}))?$"
"""Keys of pages: an arrival number; by rank, what was the highest one at the first page, and a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """An item that was found."""

    item: ItemRow
    title_html: str
    """The title, escaped, with the hits in <mark>; empty for an item without one."""
    snippet_html: str
    """A part of the content, likewise."""


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

    `key` is the `next_key` of the page before. It takes at most three batches: the user's feeds, twice items.
    """

    open_index: OpenIndex
    read: Read
    user_id: str
    query: SearchQuery
    order: Order = "date"
    limit: int = 50
    key: str | None = None
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
        shown: list[SearchHit] = []
        before = None if key is None else key.arrived
        for _ in range(_ROUNDS):
            wanted = self.limit - len(shown)
            numbers = finding.newest(file, generation, match, limit=wanted + 1, before=before)
            has_more = len(numbers) > wanted
            shown += self._shown(numbers[:wanted])
            before = numbers[wanted - 1] if has_more else None
            if not has_more or len(shown) == self.limit:
                break
        return self._page(shown, None if before is None else str(before))

    def _by_rank(self, file: IndexFile, generation: Generation, match: Match, key: "_Key | None") -> Results:
        """The best first."""
        up_to, after = (generation.arrived, None) if key is None else (key.arrived, key.place)
        ranked = finding.best(file, generation, match, limit=self.limit + 1, up_to=up_to, after=after)
        shown = self._shown([each.arrived for each in ranked[: self.limit]])
        next_key = None
        if len(ranked) > self.limit:
            last = ranked[self.limit - 1].key
            next_key = f"{up_to}_{_decimal(last.score)}_{last.slot}"
        return self._page(shown, next_key)

    def _page(self, shown: Sequence[SearchHit], next_key: str | None) -> Results:
        return Results(found=tuple(shown), next_key=next_key, left_out=tuple(self._left_out))

    def _shown(self, numbers: Sequence[int]) -> list[SearchHit]:
        """These items in their order, without those that are gone."""
        if not numbers:
            return []
        items, texts = self.read(
            item_lists.items_by(
                self.user_id, Chosen.by_numbers(numbers), with_hidden=False, with_together=True
            ),
            sql.shown_texts(numbers),
        )
        rows = {row.arrived: row for row in item_lists.named_items(items)}
        html = {int(row["arrived"]): row["html"] or "" for row in texts.rows}
        marker = Marker([term.text for term in self.query.terms if not term.is_author])
        return [
            SearchHit(
                item=rows[number],
                title_html=marker.marked(without_markup(rows[number].title or "")),
                snippet_html=marker.snippet(html.get(number, "")),
            )
            for number in numbers
            if number in rows
        ]

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
    arrived: int
    place: RankKey | None


def _read_key(key: str | None) -> _Key | None:
    if key is None:
        return None
    found = re.fullmatch(KEY_PATTERN, key, re.ASCII)
    if found is None:
        raise ValueError("a page goes on at the key of the page before")
    place = None if found[2] is None else RankKey(float(found[2]), int(found[3]))
    return _Key(int(found[1]), place)


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
