"""The inverted index of a window: the numbers of the items with a term, the latest at the end."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable

_NEWEST = 256
"""Items in the part that is written; the others are sorted arrays, which are merged as they grow."""
_LARGEST = 1 << 19
"""Postings of the largest part. To merge takes 40 bytes for each of them, for a moment."""
_BITS = 32
_MASK = (1 << _BITS) - 1


class Postings:
    """Numbers of items by term, both of 32 bits. Numbers are added in rising order."""

    def __init__(self) -> None:
        self._newest: dict[int, list[int]] = {}
        self._pending = 0
        self._last = 0
        self._parts: list[tuple[array[int], int]] = []
        """`term << 32 | number`, rising, and the highest number: the oldest items first."""

    def add(self, number: int, terms: Iterable[int]) -> None:
        newest = self._newest
        for term in terms:
            known = newest.get(term)
            if known is None:
                newest[term] = [number]
            else:
                known.append(number)
        self._last = number
        self._pending += 1
        if self._pending >= _NEWEST:
            self._settle()

    def latest(self, term: int, most: int, first: int) -> list[int]:
        """Up to so many numbers from `first` on, the latest ones, in no order."""
        newest = self._newest.get(term)
        found = newest[max(bisect_left(newest, first), len(newest) - most) :] if newest else []
        low, high = term << _BITS | first, (term + 1) << _BITS
        for part, _ in reversed(self._parts):
            if len(found) >= most:
                break
            start = bisect_left(part, low)
            if start < len(part) and part[start] < high:
                end = bisect_left(part, high, start)
                found += [each & _MASK for each in part[max(start, end + len(found) - most) : end]]
        return found

    def forget(self, first: int) -> None:
        """Release the parts that have no number from `first` on."""
        self._parts = [each for each in self._parts if each[1] >= first]

    def parts(self) -> "list[tuple[array[int], int]]":
        """All postings, as `load` takes them."""
        if self._newest:
            self._settle()
        return self._parts

    def load(self, parts: "list[tuple[array[int], int]]") -> None:
        self._parts = parts

    def _settle(self) -> None:
        part = array(
            "Q",
            sorted(term << _BITS | number for term, numbers in self._newest.items() for number in numbers),
        )
        self._newest = {}
        self._pending = 0
        while self._parts:
            before = self._parts[-1][0]
            if len(before) >= 2 * len(part) or len(before) + len(part) > _LARGEST:
                break
            # Two runs that rise: sorting merges them.
            part = array("Q", sorted(before.tolist() + part.tolist()))
            self._parts.pop()
        self._parts.append((part, self._last))
