"""New entries in the text of feeds.yaml: everything that was written before stays, byte for byte.

The entries go behind the last one, in the form of the list that is there. A YAML library that writes the
whole file anew changes blanks and numbers of other entries. Files are pipeline.registry's.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import yaml

from rss_pipeline.collector.registry.yaml_nodes import YAML_LOADER, is_null, json_as_yaml

_COMMENT = "# The feeds to collect; docs/feeds-yaml.md explains all keys."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """An entry to write. `url` is in the form of feeds.yaml: a plain `${` in it is `$${`."""

    url: str
    id: str | None = None
    title: str | None = None
    folder: str | None = None
    allow_private: bool = False
    watch: bool = True
    feature_keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of features: plain values, or mappings as JSON."""

    def as_yaml(self) -> str | dict[str, Any]:
        keys: dict[str, Any] = {"url": self.url}
        if self.id is not None:
            keys["id"] = self.id
        # Other keys take variables too, and these texts may come from a publisher.
        if self.title is not None:
            keys["title"] = self.title.replace("${", "$${")
        if self.folder is not None:
            keys["folder"] = self.folder.replace("${", "$${")
        if self.allow_private:
            keys["allow_private"] = True
        if not self.watch:
            keys["watch"] = False
        keys |= {name: _literal(value) for name, value in self.feature_keys.items()}
        return self.url if len(keys) == 1 else keys


def _literal(value: str) -> str | dict[str, str]:
    """A value as it is, whatever variables it seems to name."""
    if not value.startswith("{"):
        return value.replace("${", "$${")
    try:
        table = json.loads(value)
    except ValueError:
        return value
    return {name: str(each).replace("${", "$${") for name, each in table.items()}


class _Mark(Protocol):
    """A position in the text: the two parsers of PyYAML have a class each."""

    @property
    def index(self) -> int: ...
    @property
    def column(self) -> int: ...


class _Found(NamedTuple):
    event: yaml.Event
    """The start of the list, or the null in its place."""
    events: Iterator[yaml.Event]
    """Behind it."""
    column: int
    """The column of the key `feeds`; 0 if the list is the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """The list of feeds in the text. Positions count characters from 0."""

    column: int
    """The column of the `-`, or of the key `feeds` for a list in brackets."""
    is_flow: bool
    start: int
    end: int
    """The end of a list in brackets."""
    last: int | None
    """The end of its last value; None if it is empty."""


def lists_nothing(text: str) -> bool:
    """No list is in the text yet: it has no document, or nothing behind `feeds:`.

    The loader refuses such a file, which may have been cut short; new entries may be written into it.
    """
    try:
        found = _find(json_as_yaml(text))
    except (ValueError, yaml.YAMLError):
        return False
    return found is None or isinstance(found.event, yaml.ScalarEvent)


def with_entries(text: str, entries: Sequence[NewEntry]) -> str:
    """A feeds.yaml without mistakes, or one that `lists_nothing`, with these entries behind its own.

    Raises ValueError where the list is written in a form that cannot be continued.
    """
    text = json_as_yaml(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    written = [entry.as_yaml() for entry in entries]
    found = _find(text)
    if found is None:
        head = text if text.strip() else _COMMENT
        return _ended(head, newline) + f"feeds:{newline}" + _block(written, 2, newline)
    feeds = _measured(text, found)
    if not feeds.is_flow:
        end = text.find("\n", feeds.last or 0)
        head, tail = (text, "") if end < 0 else (text[: end + 1], text[end + 1 :])
        return _ended(head, newline) + _block(written, feeds.column, newline) + tail
    items = [json.dumps(each, ensure_ascii=False) for each in written]
    if feeds.last is None:
        return _with_first(text, feeds, written, newline) or (
            f"{text[: feeds.start]}[{', '.join(items)}{text[feeds.start + 1 : feeds.end] or ']'}"
            f"{text[feeds.end :]}"
        )
    line = text[text.rfind("\n", 0, feeds.last) + 1 : feeds.last]
    is_long = newline in text[feeds.start : feeds.end]
    between = f",{newline}" + line[: len(line) - len(line.lstrip())] if is_long else ", "
    return text[: feeds.last] + between + between.join(items) + text[feeds.last :]


def _with_first(text: str, feeds: _List, entries: Sequence[str | dict[str, Any]], newline: str) -> str | None:
    """The text with these entries as a block in place of an empty list; None where no block can be."""
    inside, eol = text[feeds.start + 1 : feeds.end - 1], text.find("\n", feeds.end)
    end = eol + 1 if eol >= 0 else len(text)
    comment = text[feeds.end : end]
    if _is_json(text) or inside.strip() or comment.strip()[:1] not in ("", "#"):
        return None
    head = text[: feeds.start].rstrip(" \t")
    column = feeds.column + 2 if head.rstrip().endswith(":") else 0
    line = head + (comment if comment.strip() or not head else comment.lstrip(" \t"))
    return (_ended(line, newline) if line.strip() else "") + _block(entries, column, newline) + text[end:]


def _ended(text: str, newline: str) -> str:
    return text if text.endswith("\n") else text + newline


def _block(entries: Sequence[str | dict[str, Any]], column: int, newline: str) -> str:
    dumped = yaml.safe_dump(
        list(entries), sort_keys=False, allow_unicode=True, default_flow_style=False, width=float("inf")
    )
    return "".join(" " * column + line + newline for line in dumped.splitlines())


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _find(text: str) -> _Found | None:
    """The list of feeds: the root, or the value of its key `feeds`. None if the text has no document."""
    events = yaml.parse(text, Loader=YAML_LOADER)
    depth, is_key, key = 0, False, ("", 0)
    for event in events:
        opens = isinstance(event, yaml.CollectionStartEvent)
        if depth == 0 and isinstance(event, yaml.ScalarEvent):
            if is_null(event) and not event.value:
                return None
            break
        if depth == 1 and (opens or isinstance(event, yaml.ScalarEvent | yaml.AliasEvent)):
            is_key = not is_key
            if is_key:
                key = (getattr(event, "value", ""), _start(event).column)
        is_value = depth == 1 and not is_key and key[0] == "feeds"
        if (isinstance(event, yaml.SequenceStartEvent) and (depth == 0 or is_value)) or (
            is_value and is_null(event)
        ):
            return _Found(event, events, key[1])
        depth += opens - isinstance(event, yaml.CollectionEndEvent)
    if depth == 0 and not any(line.strip()[:1] not in ("", "#") for line in text.splitlines()):
        return None
    raise ValueError(
        "the list of feeds was not found below the key `feeds`; write it there, without an alias"
    )


def _measured(text: str, found: _Found) -> _List:
    start, end = _start(found.event).index, _end(found.event)
    if not isinstance(found.event, yaml.SequenceStartEvent):
        return _List(column=found.column, is_flow=True, start=start, end=end.index, last=None)
    inside, last = 1, None
    for event in found.events:
        if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            last = _end(event).index
            if getattr(event, "style", None) in ("|", ">"):
                last = len(text[:last].rstrip())
            continue
        inside += 1 if isinstance(event, yaml.CollectionStartEvent) else -1
        end = _end(event)
        if inside == 0:
            break
        # A collection in block form ends where the next token begins, behind all comments.
        if end.index > _start(event).index:
            last = end.index
    # An anchor or a tag may be before the list.
    if found.event.flow_style:
        start = text.index("[", start)
        return _List(column=found.column, is_flow=True, start=start, end=end.index, last=last)
    dash = re.compile(r"^ *-", re.MULTILINE).search(text, start)
    column = _start(found.event).column if text[start] == "-" or dash is None else len(dash[0]) - 1
    return _List(column=column, is_flow=False, start=start, end=0, last=last)


def _start(event: yaml.Event) -> _Mark:
    assert event.start_mark is not None, "the parser sets the marks of its events"
    return event.start_mark


def _end(event: yaml.Event) -> _Mark:
    assert event.end_mark is not None, "the parser sets the marks of its events"
    return event.end_mark
