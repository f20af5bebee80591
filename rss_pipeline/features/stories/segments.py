"""The items of a window in their order, and the numbers of those with a term.

Nothing here changes once it is known of an item. The newest items are in a table that is written; the others
in segments: sorted arrays, and the items' records, which are read from a file as soon as they are in one.
Segments are merged as they grow, so that there are few of them.
"""

import os
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain, pairwise, repeat
from operator import add, sub
from typing import Any

NEWEST = 128
"""Items of the table that become a segment."""
_SMALLEST, _LARGEST = 4_096, 32_768
"""Items to which segments grow: a third of the window, between these."""
_TIMES = 3
"""So many times larger is a segment than the next one, or they are merged."""
_LOW, _HIGH = 16, 12
"""Bits of a term that are kept: the lower ones in order, the higher ones as the place in a directory."""
_TERM, _MASK = (1 << _LOW + _HIGH) - 1, (1 << _LOW) - 1
_AT_ONCE = 1 << _HIGH - 3
"""Higher bits whose terms are merged at once."""


Wanted = tuple[float, int, int, list[int]]
"""The weight of a term, its higher and lower bits, and the number of items that are still looked at."""
Found = list[tuple[float, Sequence[int]]]
"""Weights, and the places of the items that have that term."""


class Newest:
    """Items that are added, each with what is known of it."""

    TYPES = "IdIIHIB"
    """The type codes of the columns."""
    feeds: "array[int]"
    times: "array[float]"
    seen: "array[int]"
    ends: "array[int]"
    counts: "array[int]"
    terms: "array[int]"
    records: bytearray

    def __init__(self, first: int, columns: Sequence[Any] = ()) -> None:
        """The items of these columns, or none."""
        self.first = first
        nothing = array("I"), array("d"), array("I"), array("I", (0,)), array("H"), array("I"), bytearray()
        self.columns: Sequence[Any] = columns or nothing
        """For each item the hash of its feed, its time, the moment when it came, the end of its record, and
        the number of its terms; then terms and records."""
        self.feeds, self.times, self.seen, self.ends, self.counts, self.terms, self.records = self.columns
        self.places: dict[int, list[int]] = {}
        end = 0
        for place, count in enumerate(self.counts):
            self._note(place, self.terms[end : end + count])
            end += count

    def add(self, feed: int, time: float, seen: int, record: bytes, terms: "array[int]") -> None:
        self._note(len(self.feeds), terms)
        self.feeds.append(feed)
        self.times.append(time)
        self.seen.append(seen)
        self.records.extend(record)
        self.ends.append(len(self.records))
        self.counts.append(len(terms))
        self.terms.extend(terms)

    def _note(self, place: int, terms: "array[int]") -> None:
        places = self.places
        for term in terms:
            known = places.get(term)
            if known is None:
                places[term] = [place]
            else:
                known.append(place)

    @property
    def end(self) -> int:
        """The number behind the last one."""
        return self.first + len(self.feeds)

    def walk(self, wanted: Iterable[Wanted], first: int) -> Found:
        """The places of the latest items with each of these terms, from the number `first` on, rising."""
        found: Found = []
        for weight, high, low, most in wanted:
            places = self.places.get(high << _LOW | low)
            if places is not None:
                start = max(bisect_left(places, first - self.first), len(places) - most[0])
                most[0] -= len(places) - start
                found.append((weight, places[start:]))
        return found

    def record(self, number: int) -> bytes:
        at = number - self.first
        return bytes(self.records[self.ends[at] : self.ends[at + 1]])


class Segment:
    """Items that are sealed, with their terms and places as two arrays: sorted by term, then by place. Of a
    term, the higher bits give the part of these where it is, and the lower ones are there."""

    __slots__ = (
        "__weakref__", "_file", "_start", "checksum", "ends", "feeds", "first", "name", "places", "records",
        "seen", "starts", "terms", "times",
    )  # fmt: skip

    def __init__(self, first: int, columns: "Columns", records: bytes | bytearray = b"") -> None:
        self.first = first
        self.feeds, self.times, self.seen, self.ends, self.starts, self.terms, self.places = columns
        self.records = records
        """The items' records behind each other, until they are in a file."""
        self.name, self.checksum = "", 0
        """The name of its file, if it is in one, and the checksum of the columns there."""
        self._file, self._start = -1, 0

    @property
    def columns(self) -> "Columns":
        """For each item the hash of its feed, its time, the moment when it came, the end of its record; then
        the directory, terms and places."""
        return self.feeds, self.times, self.seen, self.ends, self.starts, self.terms, self.places

    @property
    def end(self) -> int:
        return self.first + len(self.feeds)

    def walk(self, wanted: Iterable[Wanted], first: int) -> Found:
        """The places of the latest items with each of these terms, from the number `first` on, rising."""
        found: Found = []
        starts, terms, places = self.starts, self.terms, self.places
        for weight, high, low, most in wanted:
            end = starts[high + 1]
            start = bisect_left(terms, low, starts[high], end)
            if start == end or terms[start] != low:
                continue
            end = bisect_right(terms, low, start, end)
            if first > self.first:
                start = bisect_left(places, first - self.first, start, end)
            if end - start > most[0]:
                start = end - most[0]
            most[0] -= end - start
            found.append((weight, places[start:end]))
        return found

    def record(self, number: int) -> bytes:
        at = number - self.first
        start, end = self.ends[at], self.ends[at + 1]
        if self._file < 0:
            return bytes(self.records[start:end])
        return os.pread(self._file, end - start, self._start + start)

    def all_records(self) -> bytes | bytearray:
        return self.records if self._file < 0 else os.pread(self._file, self.ends[-1], self._start)

    def read_from(self, file: int) -> None:
        """Read the records from an open file from now on, where they are behind the columns. It is closed
        when the segment is not needed."""
        self._file, self.records = file, b""
        self._start = sum(each.itemsize * len(each) for each in self.columns)
        weakref.finalize(self, os.close, file)


Columns = Sequence["array[Any]"]
TYPES = "IdIIIHH"
"""The type codes of a segment's columns."""


def empty(items: int, terms: int) -> "list[array[Any]]":
    """The columns of a segment of so many items and terms, to be read."""
    sizes = items, items, items, items + 1, (1 << _HIGH) + 1, terms, terms
    return [array(code, (0,)) * size for code, size in zip(TYPES, sizes, strict=True)]


class Items:
    """Items by number; numbers follow each other."""

    def __init__(self) -> None:
        self.first = 0
        """The number of the first item that is kept."""
        self.segments: list[Segment] = []
        self.newest = Newest(0)

    def __len__(self) -> int:
        return self.newest.end - self.first

    def add(self, feed: int, time: float, seen: float, record: bytes, terms: Iterable[int]) -> int:
        """Append an item, and return its number."""
        if len(self.newest.feeds) >= NEWEST:
            self.seal()
        number = self.newest.end
        self.newest.add(feed, time, int(seen), record, array("I", {each & _TERM for each in terms}))
        return number

    def feed(self, number: int) -> int:
        """The hash of the item's feed."""
        part = self._part(number)
        return part.feeds[number - part.first]

    def time(self, number: int) -> float:
        part = self._part(number)
        return part.times[number - part.first]

    def record(self, number: int) -> bytes:
        return self._part(number).record(number)

    def latest(self, term: int, most: int) -> list[int]:
        """Up to so many numbers of items with a term, the latest ones, rising."""
        numbers: list[int] = []
        for part, found in self._walked([(0.0, term)], most):
            for _, places in found:
                numbers += map(part.first.__add__, places)
        return sorted(numbers)

    def likest(self, sought: Iterable[tuple[float, int]], count: int, most: int) -> list[int]:
        """The numbers of the items whose terms have the highest sums of these weights, the highest first, of
        equal ones the latest. Of each term, `most` items are looked at, the latest ones."""
        best: list[tuple[float, int]] = []
        least = 0.0
        for part, found in self._walked(sought, most):
            # To leave out light terms where they cannot suffice any more costs more than it saves: of each,
            # few items are looked at.
            sums: dict[int, float] = {}
            get = sums.get
            for weight, places in found:
                for place in places:
                    sums[place] = get(place, 0.0) + weight
            # An older one with a sum that is not higher is behind those of later parts.
            first = part.first
            more = [(total, first + place) for place, total in sums.items() if total > least]
            if more:
                best = nlargest(count, best + more)
                least = best[-1][0] if len(best) == count else 0.0
        return [number for _, number in best]

    def _walked(
        self, sought: Iterable[tuple[float, int]], most: int
    ) -> Iterator[tuple[Newest | Segment, Found]]:
        """The parts, the latest first, with the items of each of these terms, the heaviest first."""
        wanted: list[Wanted] = [
            (weight, term >> _LOW, term & _MASK, [most])
            for weight, term in sorted(((weight, term & _TERM) for weight, term in sought), reverse=True)
        ]
        for part in self._latest_first():
            yield part, part.walk(wanted, self.first)
            wanted = [each for each in wanted if each[3][0]]
            if not wanted:
                break

    def forget(self, before: float) -> int:
        """Drop the items that came before that moment, up to the first one that did not; return the number of
        the first item that is left."""
        end = self.newest.end
        while self.first < end:
            part = self._part(self.first)
            if part.seen[self.first - part.first] >= before:
                break
            self.first += 1
        return self.drop(0)

    def drop(self, count: int) -> int:
        """Drop the first items; return the number of the first one that is left."""
        self.first += count
        self.segments = [each for each in self.segments if each.end > self.first]
        return self.first

    def load(self, first: int, segments: list[Segment], newest: Newest) -> None:
        self.first, self.segments, self.newest = first, segments, newest

    def seal(self) -> None:
        """Make a segment of the newest items."""
        newest = self.newest
        if newest.end == newest.first:
            return
        keys = sorted(term << _LOW | place for term, places in newest.places.items() for place in places)
        ends, lows, places = _parted(keys)
        columns = newest.feeds, newest.times, newest.seen, newest.ends, array("I", (0,)) + ends, lows, places
        self.segments.append(Segment(newest.first, columns, newest.records))
        self.newest = Newest(newest.end)
        largest = min(max(_SMALLEST, len(self) // 3), _LARGEST)
        at, size = len(self.segments) - 1, len(newest.feeds)
        while at:
            before = len(self.segments[at - 1].feeds)
            if before >= _TIMES * size or before + size > largest:
                break
            at, size = at - 1, size + before
        self.segments[at:] = [_merged(self.segments[at:])]
        # Two that were as large as they might be while the window was smaller.
        for at, (one, two) in enumerate(pairwise(self.segments)):
            size = len(two.feeds)
            if len(one.feeds) < _TIMES * size and len(one.feeds) + size <= largest:
                self.segments[at : at + 2] = [_merged([one, two])]
                break

    def _latest_first(self) -> Iterator[Newest | Segment]:
        yield self.newest
        yield from reversed(self.segments)

    def _part(self, number: int) -> Newest | Segment:
        part: Newest | Segment = self.newest
        at = len(self.segments)
        while number < part.first:
            at -= 1
            part = self.segments[at]
        return part


def _merged(segments: list[Segment]) -> Segment:
    first = segments[0]
    if len(segments) == 1:
        return first
    columns: list[array[Any]] = [array("I"), array("d"), array("I"), array("I", (0,))]
    for each in segments:
        length = columns[-1][-1]
        for column, more in zip(columns[:-1], each.columns, strict=False):
            column.extend(more)
        columns[-1] += array("I", map(length.__add__, each.ends[1:]))
    index = array("I", (0,)), array("H"), array("H")
    # Some of the terms at a time: numbers take ten times the memory of the arrays.
    for high in range(0, 1 << _HIGH, _AT_ONCE):
        highs = range(high, high + _AT_ONCE)
        keys: list[int] = []
        for each in segments:
            keys += _keys(each, highs, each.first - first.first)
        # Runs that rise: sorting merges them.
        keys.sort()
        for column, more in zip(index, _parted(keys, highs, len(index[1])), strict=True):
            column.extend(more)
    return Segment(first.first, (*columns, *index), b"".join([each.all_records() for each in segments]))


def _keys(segment: Segment, highs: range, offset: int) -> Iterable[int]:
    """Terms with these higher bits and the places behind an offset as one number each, rising."""
    starts = segment.starts[highs.start : highs.stop + 1]
    counts = map(sub, starts[1:], starts)
    terms = map(
        add,
        chain.from_iterable(map(repeat, map((1 << _LOW).__mul__, highs), counts)),
        segment.terms[starts[0] : starts[-1]],
    )
    return map(
        add, map((1 << _LOW).__mul__, terms), map(offset.__add__, segment.places[starts[0] : starts[-1]])
    )


def _parted(
    keys: list[int], highs: range = range(1 << _HIGH), before: int = 0
) -> "tuple[array[int], array[int], array[int]]":
    """The ends of these higher bits in the directory, lower bits of terms and places, of rising numbers."""
    ends = array("I", [before + bisect_left(keys, high + 1 << 2 * _LOW) for high in highs])
    lows = array("H", [key >> _LOW & _MASK for key in keys])
    return ends, lows, array("H", map(_MASK.__and__, keys))
