"""Counts of the authors or categories of a feed's items, grouped as selectors compare them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rss_pipeline.collector.streams.patterns import normal


@dataclass(frozen=True, slots=True)
class Counted:
    """A value in its most frequent spelling, and the number of items that have it in any."""

    value: str
    items: int


class Tally:
    """Values that differ only in case, width or white space are one, for no selector distinguishes them."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}
        self._spellings: dict[str, Counter[str]] = {}
        self._items: Counter[str] = Counter()

    def add(self, values: Iterable[str]) -> None:
        """Count the values of one item; what it has twice counts once."""
        keys = set()
        for value in values:
            key = self._keys.get(value)
            if key is None:
                key = self._keys[value] = normal(value)
            if key:
                self._spellings.setdefault(key, Counter())[value] += 1
                keys.add(key)
        self._items.update(keys)

    def counted(self) -> tuple[Counted, ...]:
        """The values, most frequent first."""
        order = sorted(self._items, key=lambda key: (-self._items[key], key))
        return tuple(Counted(self._spelling(key), self._items[key]) for key in order)

    def _spelling(self, key: str) -> str:
        spelling, _ = min(self._spellings[key].items(), key=lambda each: (-each[1], each[0]))
        return " ".join(spelling.split())
