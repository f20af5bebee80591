"""A feed's authors and categories, and what its streams select of all that is stored.

Streams by field are judged here as feeds.yaml has them now, so that a selector can be tried before a poll
uses it; streams by XPath are as documents judged them. Reads only.
"""

import difflib
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.features.streams.model import (
    FieldMatcher,
    FieldSelector,
    PatternSet,
    SelectorField,
    StreamSpec,
    names_of,
    normal,
)
from rss_pipeline.features.streams.sql import stored_items
from rss_pipeline.features.streams.states import StreamState, stored_members, stream_states
from rss_pipeline.features.streams.stream_keys import MAX_SELECTOR_CHARACTERS
from rss_pipeline.storage.database import Database

# Counts of the authors or categories of a feed's items, grouped as selectors compare them.


@dataclass(frozen=True, slots=True)
class CountedValue:
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

    def counted(self) -> tuple[CountedValue, ...]:
        """The values, most frequent first."""
        order = sorted(self._items, key=lambda key: (-self._items[key], key))
        return tuple(CountedValue(self._spelling(key), self._items[key]) for key in order)

    def _spelling(self, key: str) -> str:
        spelling, _ = min(self._spellings[key].items(), key=lambda each: (-each[1], each[0]))
        return " ".join(spelling.split())


MOST = 20
"""Streams of a proposal: more of them are work to read, and nothing to paste."""
_NAME_CHARACTERS = 40
_INDENT = 4
"""Indent of a feed's keys in the form that feeds.yaml is shown in."""


def proposed_streams(
    field: SelectorField, counted: Sequence[CountedValue], *, taken: Collection[str] = ()
) -> tuple[StreamSpec, ...]:
    """A stream for each frequent value of the field; `taken` are the names of the feed's other streams."""
    # A pattern longer than that is a mistake in feeds.yaml.
    usable = [each for each in counted if len(each.value) <= MAX_SELECTOR_CHARACTERS]
    frequent = [each for each in usable if each.items > 1] or usable
    names = set(taken)
    patterns: list[dict[str, Any]] = [{field: (each.value,)} for each in frequent[:MOST]]
    return tuple(
        StreamSpec(name=_name(each[field][0], field, names), selector=FieldSelector(**each))
        for each in patterns
    )


def as_yaml(streams: Sequence[StreamSpec], *, with_key: bool = True) -> str:
    """The lines to paste below a feed; without the key, below the streams that it has."""
    lines = ["streams:"] if with_key else []
    lines += [f"  {line}" for stream in streams for line in _entry(stream).splitlines()]
    return "\n".join(" " * _INDENT + line for line in lines)


def _entry(stream: StreamSpec) -> str:
    keys = stream.written()
    name = keys.pop("name")
    keys = {key: _escaped(value) for key, value in keys.items()}
    text = _dumped({name: keys}, allow_unicode=True)
    # The terminal leaves out marks that turn the direction of a text: as \u200f they remain in the pattern.
    return text if one_line(text) == text else _dumped({name: keys}, allow_unicode=False)


def _dumped(value: object, *, allow_unicode: bool) -> str:
    dumped: str = yaml.safe_dump(
        value, allow_unicode=allow_unicode, default_flow_style=None, sort_keys=False, width=float("inf")
    )
    return dumped.rstrip("\n")


def _escaped(patterns: Sequence[str]) -> str:
    """The one pattern of a proposal; a `${` of a publisher is no variable of ours."""
    (pattern,) = patterns
    return pattern.replace("${", "$${")


def _name(value: str, field: str, taken: set[str]) -> str:
    """A name that is not in `taken`, and is from now on."""
    name = next(name for name in _candidates(_slug(value), field) if name not in taken)
    taken.add(name)
    return name


def _candidates(slug: str, field: str) -> Iterator[str]:
    if slug:
        yield slug
    number = 2 if slug else 1
    while True:
        yield f"{slug or field}-{number}"
        number += 1


def _slug(value: str) -> str:
    """The value's letters of ASCII, accents dropped; empty where most letters are others."""
    text = unicodedata.normalize("NFKD", value)
    letters = [character for character in text if character.isalpha()]
    if sum(not letter.isascii() for letter in letters) > len(letters) / 3:
        return ""
    ascii_ = text.encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_)[:_NAME_CHARACTERS].strip("-")


_HINTS = 3
_COMPARED = 200
"""Authors that a pattern is compared with for a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSurvey:
    """One stream of feeds.yaml, with what it selects of the stored items."""

    spec: StreamSpec
    items: int | None
    """None where that is not known: for an XPath that no document was judged by."""
    state: StreamState | None
    """As the last poll left it; None where the stream is new in feeds.yaml, or has another selector there."""
    near: tuple[str, ...]
    """Authors in no stream that its patterns nearly fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSurvey:
    """All that a person needs to know of a feed to write its streams."""

    items: int
    authors: tuple[CountedValue, ...]
    """The authors of all items, most frequent first, as `categories`."""
    categories: tuple[CountedValue, ...]
    streams: tuple[StreamSurvey, ...]
    unmatched: int
    """Items that belong to no stream."""
    proposed: tuple[StreamSpec, ...]
    """Streams for what no stream has so far."""


def survey(database: Database, feed_id: str, streams: Sequence[StreamSpec]) -> FeedSurvey:
    """The feed's items beside these streams, which are those of feeds.yaml now."""
    states = {each.spec: each for each in stream_states(database, feed_id)}
    matcher = FieldMatcher(streams)
    by_xpath = [each.name for each in streams if each.is_xpath and each in states]
    stored = stored_members(database, feed_id) if by_xpath else {}
    items_of = dict.fromkeys((each.name for each in streams), 0)
    every, rest = _Values(), _Values()
    for item in itertools.chain.from_iterable(stored_items(database, feed_id)):
        found = [
            *matcher.match(
                title=item.title, link=item.link, authors=item.authors, categories=item.categories
            ),
            *(name for name in by_xpath if item.id in stored.get(name, ())),
        ]
        for name in found:
            items_of[name] += 1
        for values in (every,) if found else (every, rest):
            values.add(item.authors, item.categories)
    authors_left, categories_left = rest.authors.counted(), rest.categories.counted()
    everyone, all_categories = every.authors.counted(), every.categories.counted()
    # A stream of the feed's only author, or only category, would be the feed once more.
    field: SelectorField = "author" if len(everyone) > 1 else "category"
    left = authors_left if field == "author" else categories_left if len(all_categories) > 1 else ()
    selected = _patterns(streams, field)
    return FeedSurvey(
        items=every.items,
        authors=everyone,
        categories=all_categories,
        streams=tuple(
            StreamSurvey(
                spec=each,
                items=None if each.is_xpath and each not in states else items_of[each.name],
                state=states.get(each),
                near=() if items_of[each.name] else near(each, authors_left),
            )
            for each in streams
        ),
        unmatched=rest.items,
        proposed=proposed_streams(
            field,
            # What a stream selects, and leaves out by another of its keys, needs no second one.
            [each for each in left if not selected.matching(each.value)],
            taken=[each.name for each in streams],
        ),
    )


def without_items(
    feed_id: str, streams: Iterable[StreamSpec], states: Iterable[StreamState]
) -> tuple[StreamSurvey, ...]:
    """These streams of a feed as the last poll left them: no item is read."""
    left = {each.spec: each for each in states if each.feed_id == feed_id}
    return tuple(
        StreamSurvey(spec=spec, items=None if state is None else state.members, state=state, near=())
        for spec in streams
        for state in [left.get(spec)]
    )


def _patterns(streams: Iterable[StreamSpec], field: SelectorField) -> PatternSet:
    return PatternSet(
        (pattern, 0)
        for each in streams
        if isinstance(each.selector, FieldSelector)
        for pattern in getattr(each.selector, field)
    )


class _Values:
    """The authors and categories of some items."""

    def __init__(self) -> None:
        self.items = 0
        self.authors = Tally()
        self.categories = Tally()

    def add(self, authors: Iterable[str], categories: Iterable[str]) -> None:
        self.items += 1
        # The shortest text that selects an author: of `mail (Name)` it is `Name`.
        self.authors.add([names_of(author)[-1] for author in authors])
        self.categories.add(categories)


def near(stream: StreamSpec, authors: Iterable[CountedValue]) -> tuple[str, ...]:
    """Authors that are spelled almost as a pattern of the stream, or have one in them."""
    if not isinstance(stream.selector, FieldSelector):
        return ()
    spelled = {normal(each.value): each.value for each in list(authors)[:_COMPARED]}
    found: dict[str, None] = {}
    for pattern in stream.selector.author:
        text = normal(pattern).strip("*")
        found |= dict.fromkeys(each for each in spelled if text and text in each)
        found |= dict.fromkeys(difflib.get_close_matches(text, spelled, n=_HINTS, cutoff=0.7))
    return tuple(spelled[each] for each in found)[:_HINTS]
