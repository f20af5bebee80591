"""The match of items with selectors by field: a pure function of an item's fields, stored or just read.

How a value and a pattern are compared is in patterns.py. XPath selectors are not decided here.
"""

import re
from collections.abc import Iterable, Sequence

from rss_pipeline.features.streams.model import SELECTOR_FIELDS, FieldSelector, SelectorField, StreamSpec
from rss_pipeline.features.streams.patterns import PatternSet

_CACHED_VALUES = 10_000
"""Values with remembered selectors: in a feed's whole history, few authors and categories differ."""


class FieldMatcher:
    """The streams by field among those of a feed, prepared once for all of its items."""

    def __init__(self, streams: Iterable[StreamSpec]) -> None:
        selected = [
            (stream.name, stream.selector) for stream in streams if isinstance(stream.selector, FieldSelector)
        ]
        self.names = tuple(name for name, _ in selected)
        """The streams that `match` decides, in the order of feeds.yaml."""
        self._wanted = _Conditions([selector for _, selector in selected])
        self._unwanted = _Conditions([selector.negated for _, selector in selected])
        self._named: dict[int, tuple[str, ...]] = {0: ()}

    def match(
        self, *, title: str | None, link: str | None, authors: Sequence[str], categories: Sequence[str]
    ) -> tuple[str, ...]:
        """The names of the streams that an item with these fields belongs to, in the order of `names`."""
        values = (authors, categories, (title or "",), (link or "",))
        found = self._wanted.matching(values)
        if found & self._unwanted.all:
            found &= ~self._unwanted.matching(values)
        names = self._named.get(found)
        if names is None:
            names = tuple(name for number, name in enumerate(self.names) if found >> number & 1)
            self._named[found] = names
        return names


_PLACE: dict[SelectorField, int] = {"author": 0, "category": 1, "title": 2, "link": 3}
"""The field's place among the values of an item."""


class _Conditions:
    """Selectors without their negations. A set of them is a whole number: bit n is selector n."""

    def __init__(self, selectors: Sequence[FieldSelector | None]) -> None:
        self.all = sum(1 << number for number, selector in enumerate(selectors) if selector is not None)
        self._fields: list[tuple[int, int, _Field]] = []
        """For each field that a selector uses: its place, and the selectors that do not use it."""
        for name in SELECTOR_FIELDS:
            patterns = [
                (pattern, number)
                for number, selector in enumerate(selectors)
                if selector is not None
                for pattern in getattr(selector, name)
            ]
            if patterns:
                using = sum(1 << number for number in {number for _, number in patterns})
                self._fields.append((_PLACE[name], self.all & ~using, _Field(name, PatternSet(patterns))))

    def matching(self, values: Sequence[Sequence[str]]) -> int:
        """The selectors of which every used field has a matching value."""
        found = self.all
        for place, matching, selectors_of in self._fields:
            for value in values[place]:
                matching |= selectors_of[value]
            found &= matching
        return found


class _Field(dict[str, int]):
    """Value to the selectors of which this field matches it, kept for the next item with that value."""

    def __init__(self, name: SelectorField, patterns: PatternSet) -> None:
        super().__init__()
        self._is_author = name == "author"
        self._patterns = patterns

    def __missing__(self, value: str) -> int:
        found = 0
        for text in names_of(value) if self._is_author else (value,):
            found |= self._patterns.matching(text)
        if len(self) >= _CACHED_VALUES:
            self.clear()
        self[value] = found
        return found


# The names that the text of an author counts for, where items are selected by author.
# Stored authors stay as published (collector.parse.authors).

_ADDRESS_AND_NAME = re.compile(r"\A[^\s@()<>]+@[^\s@()<>]+\s*\((.*)\)", re.DOTALL)


def names_of(author: str) -> tuple[str, ...]:
    """The text itself; and of `mail (Name)`, as RSS 2.0 writes authors, also `Name`."""
    found = _ADDRESS_AND_NAME.fullmatch(author.strip())
    name = found[1].strip() if found else ""
    return (author, name) if name else (author,)
