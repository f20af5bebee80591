"""Streams, as feeds.yaml describes them under a feed, and the match of items with selectors by field.

Pure. XPath expressions are evaluated in xpath.py.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from rss_pipeline.collector.models.author import author_name
from rss_pipeline.collector.models.feed import Feed, FeedSpec
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning

SelectorField = Literal["author", "category", "title", "link"]
SELECTOR_FIELDS: tuple[SelectorField, ...] = get_args(SelectorField)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSelector:
    """Conditions on fields of an item; all that are set must hold.

    Each is a tuple of patterns, any of which may fit; empty where the field does not matter.
    """

    author: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    negated: "FieldSelector | None" = None
    """Conditions under which an item does not belong to the stream; without a further negation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """One part of a feed: the items that `selector` describes, a FieldSelector or an XPath expression."""

    name: str
    selector: FieldSelector | str

    @property
    def is_xpath(self) -> bool:
        return isinstance(self.selector, str)

    @property
    def selector_hash(self) -> str:
        """32 hex digits that are others for another selector."""
        keys = {key: value for key, value in self.written().items() if key != "name"}
        return hashlib.sha256(_compact(keys).encode()).hexdigest()[:32]

    @property
    def listed_field(self) -> SelectorField | None:
        """The field with the values that show why it matches nothing: the first one used. None for XPath."""
        if isinstance(self.selector, str):
            return None
        conditions = (self.selector, self.selector.negated)
        return next(name for one in conditions for name in SELECTOR_FIELDS if one and getattr(one, name))

    def written(self) -> dict[str, Any]:
        """The keys of feeds.yaml, as the database keeps them: only those that are set."""
        keys: dict[str, Any] = {"name": self.name}
        if isinstance(self.selector, str):
            return keys | {"xpath": self.selector}
        return keys | _written(self.selector)


def _written(selector: FieldSelector) -> dict[str, Any]:
    keys: dict[str, Any] = {name: list(getattr(selector, name)) for name in SELECTOR_FIELDS}
    keys = {name: patterns for name, patterns in keys.items() if patterns}
    if selector.negated is not None:
        keys["not"] = _written(selector.negated)
    return keys


def _fields(keys: Mapping[str, Any]) -> FieldSelector:
    return FieldSelector(
        **{name: tuple(keys[name]) for name in SELECTOR_FIELDS if name in keys},
        negated=_fields(keys["not"]) if "not" in keys else None,
    )


def streams_to_json(streams: tuple[StreamSpec, ...]) -> str | None:
    """The streams of a feed as one canonical text; None where there are none."""
    if not streams:
        return None
    return _compact([stream.written() for stream in streams])


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=64)
def streams_of_json(text: str | None) -> tuple[StreamSpec, ...]:
    """The inverse of `streams_to_json`."""
    return tuple(
        StreamSpec(name=keys["name"], selector=keys["xpath"] if "xpath" in keys else _fields(keys))
        for keys in (json.loads(text) if text else ())
    )


def streams_of(feed: Feed | FeedSpec) -> tuple[StreamSpec, ...]:
    """The streams of a feed, in the order of feeds.yaml."""
    return streams_of_json(feed.feature_keys.get("streams"))


VALUES_KEPT = 20
"""Values that are shown where a stream matches nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsOfDocument:
    """The streams of a feed as a document shows them."""

    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ids of the items that belong to each stream, by its name: of the items of this document, in its order.
    A stream without an entry was not evaluated."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """A sentence for each stream with an XPath that could not be evaluated."""
    warnings: tuple[FeedWarning, ...] = ()
    """None: a stream has notes of its own."""
    values: Mapping[SelectorField, tuple[str, ...]] = field(default_factory=dict)
    """Values in this document of each field by which a stream without members selects; the first of them."""

    def renamed(self, ids: Mapping[str, str]) -> "StreamsOfDocument":
        """The same with these ids of items."""
        members = {name: tuple(ids[old] for old in olds if old in ids) for name, olds in self.members.items()}
        return replace(self, members=members)


def streams_in(parsed: Parsed) -> StreamsOfDocument:
    """The streams that the parser process found; none of a feed without."""
    found = parsed.parts.get("streams")
    return found if isinstance(found, StreamsOfDocument) else StreamsOfDocument()


# Patterns of a selector by field, and values in the form in which they are compared.
#
# A pattern is a whole value, without regard to case, width and white space; `*` matches any text. There are
# no regular expressions: every comparison takes time in proportion to the value.

_INVISIBLE = ("\u200b", "\u2060", "\ufeff")
"""Spaces without width. Unicode does not count them as white space, and they show in no name."""


def normal(text: str) -> str:
    """The form in which values are compared: NFKC, without case and without white space."""
    if text.isascii():
        return "".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", text).casefold()
    for space in _INVISIBLE:
        folded = folded.replace(space, "")
    # Folding may decompose a letter, and without a space an accent may join the letter before it.
    return unicodedata.normalize("NFKC", "".join(folded.split()))


class PatternSet:
    """The patterns of many selectors for one field.

    A set of selectors is a whole number: bit n is selector n.
    """

    def __init__(self, patterns: Iterable[tuple[str, int]]) -> None:
        self._exact: dict[str, int] = {}
        self._anything = 0
        self._inside: dict[str, int] = {}
        """Patterns of the form `*text*`, the most frequent ones with a `*`."""
        self._beginning: dict[int, dict[str, int]] = {}
        """Patterns of the form `text*`, by the length of the text."""
        self._ending: dict[int, dict[str, int]] = {}
        self._parts: list[tuple[str, tuple[str, ...], str, int]] = []
        """The others: beginning, texts in between, end, and the selector."""
        for pattern, selector in patterns:
            self._add(normal(pattern), 1 << selector)

    def _add(self, pattern: str, selector: int) -> None:
        first, *rest = pattern.split("*")
        if not rest:
            _put(self._exact, first, selector)
            return
        *between, last = rest
        match (first, tuple(text for text in between if text), last):
            case "", (), "":
                self._anything |= selector
            case "", (text,), "":
                _put(self._inside, text, selector)
            case _, (), "":
                _put(self._beginning.setdefault(len(first), {}), first, selector)
            case "", (), _:
                _put(self._ending.setdefault(len(last), {}), last, selector)
            case _, middle, _:
                self._parts.append((first, middle, last, selector))

    def matching(self, value: str) -> int:
        """The selectors with a pattern that this value matches. Nothing matches an empty one."""
        value = normal(value)
        if not value:
            return 0
        found = self._exact.get(value, 0) | self._anything
        for length, texts in self._beginning.items():
            found |= texts.get(value[:length], 0)
        for length, texts in self._ending.items():
            found |= texts.get(value[-length:], 0)
        for text, selectors in self._inside.items():
            if text in value:
                found |= selectors
        for first, middle, last, selector in self._parts:
            if value.startswith(first) and value.endswith(last) and _in_order(value, first, middle, last):
                found |= selector
        return found


def _put(table: dict[str, int], text: str, selector: int) -> None:
    table[text] = table.get(text, 0) | selector


def _in_order(value: str, first: str, middle: Sequence[str], last: str) -> bool:
    """The texts of `middle` come one after the other between beginning and end: the leftmost place of each
    leaves the most room, so one pass decides."""
    place, end = len(first), len(value) - len(last)
    for text in middle:
        found = value.find(text, place, end)
        if found < 0:
            return False
        place = found + len(text)
    return place <= end


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


def names_of(author: str) -> tuple[str, ...]:
    """The text itself; and of `mail (Name)`, as RSS 2.0 writes authors, also `Name`."""
    return tuple(dict.fromkeys((author, author_name(author))))
