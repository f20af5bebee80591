"""Streams: parts of a feed, as feeds.yaml describes them under that feed.

Values only. Patterns are compared in features.streams, XPath is evaluated there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

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


def streams_of_json(text: str | None) -> tuple[StreamSpec, ...]:
    """The inverse of `streams_to_json`."""
    return tuple(
        StreamSpec(name=keys["name"], selector=keys["xpath"] if "xpath" in keys else _fields(keys))
        for keys in (json.loads(text) if text else ())
    )
