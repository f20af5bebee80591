"""New entries in the text of feeds.yaml: everything that was written before stays, byte for byte.

The entries go behind the last one, in the form of the list that is there. A YAML library that writes the
whole file anew changes blanks and numbers of other entries. Files are pipeline.registry's.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import yaml

from rss_pipeline.collector.registry.yaml_nodes import YAML_LOADER, json_as_yaml

_COMMENT = "# The feeds to collect; docs/feeds-yaml.md explains all keys."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """An entry to write. `url` is in the form of feeds.yaml: a plain `${` in it is `$${`."""

    url: str
    id: str | None = None
    title: str | None = None
    folder: str | None = None
    allow_private: bool = False

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
        return self.url if len(keys) == 1 else keys


class _Mark(Protocol):
    """A position in the text: the two parsers of PyYAML have a class each."""

    @property
    def index(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """The list of feeds in the text. Positions count characters from 0."""

    column: int
    """Of the `-`, or of the key `feeds` for a list in brackets."""
    is_flow: bool
    start: int
    end: int
    """The end of a list in brackets."""
    last: int | None
    """The end of its last value; None if it is empty."""


def with_entries(text: str, entries: Sequence[NewEntry]) -> str:
    """A feeds.yaml without mistakes, or an empty text, with these entries behind its own.

    Raises ValueError where the list is written in a form that cannot be continued.
    """
    text = json_as_yaml(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    written = [entry.as_yaml() for entry in entries]
    feeds = _find(text)
    if feeds is None:
        head = text.rstrip() or _COMMENT
        return _ended(head, newline) + f"feeds:{newline}" + _block(written, 2, newline)
    if not feeds.is_flow:
        end = text.find("\n", feeds.last or 0)
        head, tail = (text, "") if end < 0 else (text[: end + 1], text[end + 1 :])
        return _ended(head, newline) + _block(written, feeds.column, newline) + tail
    if feeds.last is None and not _is_json(text):
        tail = text[feeds.end :].lstrip(" \t").lstrip("\r\n")
        head = text[: feeds.start].rstrip()
        column = feeds.column + 2 if head.endswith(":") else 0
        return (_ended(head, newline) if head else "") + _block(written, column, newline) + tail
    items = [json.dumps(each, ensure_ascii=False) for each in written]
    if feeds.last is None:
        return text[: feeds.start + 1] + ", ".join(items) + text[feeds.end - 1 :]
    line = text[text.rfind("\n", 0, feeds.last) + 1 : feeds.last]
    is_long = newline in text[feeds.start : feeds.end]
    between = f",{newline}" + line[: len(line) - len(line.lstrip())] if is_long else ", "
    return text[: feeds.last] + between + between.join(items) + text[feeds.last :]


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


def _find(text: str) -> _List | None:
    """The list of feeds: the root, or the value of its key `feeds`. None if the text has no document."""
    events = yaml.parse(text, Loader=YAML_LOADER)
    depth, is_key, key = 0, False, ("", 0)
    for event in events:
        opens = isinstance(event, yaml.CollectionStartEvent)
        if depth == 0 and isinstance(event, yaml.ScalarEvent):
            break
        if depth == 1 and (opens or isinstance(event, yaml.ScalarEvent | yaml.AliasEvent)):
            is_key = not is_key
            if is_key:
                key = (getattr(event, "value", ""), _start(event).column)
        if isinstance(event, yaml.SequenceStartEvent) and (
            depth == 0 or (depth == 1 and not is_key and key[0] == "feeds")
        ):
            return _measured(text, event, events, column=key[1])
        depth += opens - isinstance(event, yaml.CollectionEndEvent)
    if depth == 0 and not any(line.strip()[:1] not in ("", "#") for line in text.splitlines()):
        return None
    raise ValueError(
        "the list of feeds was not found below the key `feeds`; write it there, without an alias"
    )


def _measured(
    text: str, start: yaml.SequenceStartEvent, events: Iterator[yaml.Event], *, column: int
) -> _List:
    inside, last = 1, None
    for event in events:
        if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
            last = _end(event).index
            if getattr(event, "style", None) in ("|", ">"):
                last = len(text[:last].rstrip())
            continue
        inside += 1 if isinstance(event, yaml.CollectionStartEvent) else -1
        if inside == 0:
            break
        # A collection in block form ends where the next token begins, behind all comments.
        if _end(event).index > _start(event).index:
            last = _end(event).index
    if start.flow_style:
        return _List(column=column, is_flow=True, start=_start(start).index, end=_end(event).index, last=last)
    return _List(column=_start(start).column, is_flow=False, start=_start(start).index, end=0, last=last)


def _start(event: yaml.Event) -> _Mark:
    assert event.start_mark is not None, "the parser sets the marks of its events"
    return event.start_mark


def _end(event: yaml.Event) -> _Mark:
    assert event.end_mark is not None, "the parser sets the marks of its events"
    return event.end_mark
