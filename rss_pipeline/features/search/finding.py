"""Searches of the index: arrival numbers of items by an FTS5 expression, newest first or by rank.

Every query is cut to the feeds that it names, here, before anything is sorted or cut off. The marks of feeds,
years and months are words of the index, so that FTS5 steps from one match to the next by all of them at once:
a very common word and a feed with ten items cost as little as a rare word.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rss_pipeline.features.search.index_file import IndexFile
from rss_pipeline.features.search.writing import EVERY, Generation, Look, first_slot, scope_of_feed

MARKED_FEEDS = 300
"""With more feeds, matches are looked through one by one: each mark costs, and of many feeds some match soon
comes."""
RANKED = 1_000
"""The newest matches among which the best are."""
_WEIGHTS = "1.0, 8.0, 4.0, 0.0"
"""The weights of content, title, author, scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The items that are searched for."""

    expression: str
    """An expression of FTS5; `EVERY` where only feeds or times are named."""
    without: str = ""
    """An expression of FTS5: items that match it are left out."""
    feed_ids: Sequence[str]
    """All that are searched."""
    published_from: int | None = None
    """Seconds since 1970, as the next one; inclusive."""
    published_before: int | None = None


class RankKey(NamedTuple):
    """The place of an item in the order of rank: lower is better, and among equals the newer one."""

    score: float
    slot: int

    def is_behind(self, other: "RankKey") -> bool:
        return (self.score, -self.slot) > (other.score, -other.slot)


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item found by rank."""

    arrived: int
    key: RankKey


def newest(
    file: IndexFile, generation: Generation, match: Match, *, limit: int, before: int | None = None
) -> list[int]:
    """Arrival numbers of matching items, newest arrivals first, from below the number `before`."""
    feeds = _numbers(file, match.feed_ids)
    if not feeds:
        return []
    below = None if before is None else _slot_from(file, generation, before)
    matching, params = _matching(generation, match, feeds, below)
    rows = file.rows(f"SELECT d.arrived {matching} LIMIT ?", [*params, limit])
    return [arrived for (arrived,) in rows]


def among(file: IndexFile, generation: Generation, match: Match, numbers: Sequence[int]) -> set[int]:
    """The arrival numbers among these that are of matching items."""
    feeds = _numbers(file, match.feed_ids)
    if not feeds or not numbers:
        return set()
    look, wanted = _look(file, generation), set(numbers)
    found = [look(_slot_from(file, generation, number)) for number in numbers]
    slots = [row[0] for row in found if row is not None and row[1] in wanted]
    matching, params = _matching(generation, match, feeds, None, among=json.dumps(slots))
    return {arrived for (arrived,) in file.rows(f"SELECT d.arrived {matching}", params)}


def best(file: IndexFile, generation: Generation, match: Match, *, up_to: int) -> list[Ranked]:
    """Matching items by rank (BM25, words of title and author count more), best first, among the newest
    RANKED of them with arrival numbers up to `up_to`."""
    feeds = _numbers(file, match.feed_ids)
    if not feeds:
        return []
    matching, params = _matching(generation, match, feeds, _slot_from(file, generation, up_to + 1))
    rows = file.rows(
        f"""SELECT arrived, score, slot FROM (
          SELECT d.arrived, bm25(words_{generation.number}, {_WEIGHTS}) AS score, d.slot {matching}
          LIMIT {RANKED}) ORDER BY score, slot DESC""",
        params,
    )
    return [Ranked(arrived, RankKey(score, slot)) for arrived, score, slot in rows]


def _matching(
    generation: Generation, match: Match, feeds: Sequence[int], below: int | None, *, among: str | None = None
) -> tuple[str, list[str | int]]:
    """A query's FROM, WHERE and ORDER BY for what matches in these feeds, newest slots first; of all slots
    below one, or `among` a JSON list of them."""
    n = generation.number
    marked = feeds if len(feeds) <= MARKED_FEEDS else ()
    conditions: list[tuple[str, str | int]] = [
        (f"words_{n} MATCH ?", _expression(match, marked)),
        (f"words_{n}.rowid < ?", 2**62 if below is None else below),
    ]
    if among is not None:
        conditions.append((f"words_{n}.rowid IN (SELECT value FROM json_each(?))", among))
    if not marked:
        conditions.append(("d.feed IN (SELECT value FROM json_each(?))", json.dumps(feeds)))
    for operator, bound in ((">=", match.published_from), ("<", match.published_before)):
        if bound is not None:
            conditions.append((f"d.published {operator} ?", bound))
    sql = f"""FROM words_{n} CROSS JOIN documents_{n} AS d ON d.slot = words_{n}.rowid
      WHERE {" AND ".join(condition for condition, _ in conditions)} ORDER BY words_{n}.rowid DESC"""
    return sql, [value for _, value in conditions]


def _expression(match: Match, feeds: Sequence[int]) -> str:
    parts = [f"({match.expression})"]
    if feeds:
        parts.append(f"({' OR '.join(_quoted(scope_of_feed(feed)) for feed in feeds)})")
    wanted = " AND ".join(parts)
    return f"({wanted}) NOT ({match.without})" if match.without else wanted


def every() -> str:
    """The expression that all items match."""
    return _quoted(EVERY)


def _quoted(mark: str) -> str:
    return f'"{mark}"'


def _slot_from(file: IndexFile, generation: Generation, arrived: int) -> int:
    highest = file.rows(f"SELECT max(slot) FROM documents_{generation.number}")[0][0]
    return first_slot(_look(file, generation), highest, arrived)


def _look(file: IndexFile, generation: Generation) -> Look:
    def look(slot: int) -> tuple[int, int] | None:
        rows = file.rows(
            f"SELECT slot, arrived FROM documents_{generation.number} WHERE slot >= ? ORDER BY slot LIMIT 1",
            [slot],
        )
        return (rows[0][0], rows[0][1]) if rows else None

    return look


def _numbers(file: IndexFile, ids: Sequence[str]) -> list[int]:
    rows = file.rows(
        "SELECT f.number FROM json_each(?) AS j CROSS JOIN feeds AS f ON f.id = j.value",
        [json.dumps(list(ids))],
    )
    return sorted(number for (number,) in rows)
