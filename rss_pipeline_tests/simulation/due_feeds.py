"""The work of a shard of a simulated fleet: due feeds in their order, as a claim takes them.

A feed is its due time and its host; feeds of one host are alike. Of a host that a claim cannot take whole,
only the oldest feed is in the shard's heap, so that a host with a hundred thousand costs no more than others.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
Feed = tuple[float, int]
"""Due at, and the number of its host."""


class DueFeeds:
    """The feeds of one shard that no run has claimed."""

    def __init__(self, sizes: Sequence[int], *, per_host: int) -> None:
        self._sizes = sizes
        self._per_host = per_host
        self._heap: list[Feed] = []
        self._large: dict[int, list[float]] = {}

    def add(self, due: float, host: int) -> None:
        """A feed that is due then."""
        if self._sizes[host] <= self._per_host:
            heapq.heappush(self._heap, (due, host))
            return
        others = self._large.setdefault(host, [])
        if not others:
            heapq.heappush(self._heap, (due, host))
        elif due < others[0]:
            # Released: it goes before those that wait, and the heap still has the host's former first.
            self._heap.remove((others[0], host))
            heapq.heapify(self._heap)
            heapq.heappush(self._heap, (due, host))
        heapq.heappush(others, due)

    @property
    def oldest(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def claim(self, now: float, limit: int) -> list[Feed]:
        """The oldest that are due, at most `limit`, at most `per_host` of a host."""
        taken: list[Feed] = []
        counts: dict[int, int] = {}
        rest: list[Feed] = []
        heap = self._heap
        while heap and heap[0][0] <= now and len(taken) < limit:
            due, host = heapq.heappop(heap)
            if (others := self._large.get(host)) is None:
                taken.append((due, host))
                continue
            count = counts.get(host, 0)
            if count == self._per_host:
                rest.append((due, host))
                continue
            counts[host] = count + 1
            taken.append((heapq.heappop(others), host))
            if others:
                heapq.heappush(heap, (others[0], host))
        for each in rest:
            heapq.heappush(heap, each)
        return taken

    def due(self, now: float, most: float = math.inf) -> int:
        """The number of feeds that are due, counted up to `most`."""
        found = 0
        for _, host in _until(self._heap, (now, math.inf), most):
            if (others := self._large.get(host)) is None:
                found += 1
            else:
                found += sum(1 for _ in _until(others, now, most - found))
            if found >= most:
                return int(most)
        return found


def _until(heap: list[T], end: object, most: float) -> Iterator[T]:
    """The elements of a heap that are not greater than `end`, in any order; it looks at no more than twice as
    many."""
    looked = [0]
    while looked and most > 0:
        index = looked.pop()
        if index < len(heap) and heap[index] <= end:
            yield heap[index]
            most -= 1
            looked += (2 * index + 1, 2 * index + 2)
