"""Streams proposed for a feed: one for each frequent author or category, as YAML to paste. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.features.streams.entry import MAX_SELECTOR_CHARACTERS
from rss_pipeline.features.streams.model import FieldSelector, SelectorField, StreamSpec
from rss_pipeline.features.streams.patterns import normal

# Counts of the authors or categories of a feed's items, grouped as selectors compare them.


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


MOST = 20
"""Streams of a proposal: more of them are work to read, and nothing to paste."""
_NAME_CHARACTERS = 40
_INDENT = 4
"""Indent of a feed's keys in the form that feeds.yaml is shown in."""


def proposed_streams(
    field: SelectorField, counted: Sequence[Counted], *, taken: Collection[str] = ()
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
