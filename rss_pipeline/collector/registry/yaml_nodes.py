"""The text of feeds.yaml (YAML, or JSON as a subset of it) as a tree of nodes with line numbers.

Reading and syntax only; the keys of a feed are checked in `entry.py`. Scalars stay the text as written:
`title: 1984` and `title: No` are titles, not a number and a boolean.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeGuard

import yaml

from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.errors import RegistryError

MAX_FILE_BYTES = 32_000_000
"""200,000 feeds with titles and folders have some 32 MB."""
MAX_DEPTH = 16
"""feeds.yaml needs four levels. libyaml's own composer overflows the stack at some 50,000."""
MAX_REPEATED_NODES = 1_000_000
"""Nodes that aliases may repeat in total: ten lines of `&a [*b, *b ...]` can repeat billions."""

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD_TAG = re.compile(r"tag:yaml\.org,2002:(?:str|int|float|bool|null|timestamp|map|seq)")
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_JSON_ESCAPE = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\.")


class Mistake(NamedTuple):
    """A mistake in the file. `line` counts from 1, 0 is the whole file; `place` may be empty."""

    line: int
    place: str
    sentence: str
    stops_parser: bool = False
    """True if the parser stopped there; the rest can be read without the entry around it."""

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else ""
        return ": ".join(part for part in (where, self.place, self.sentence) if part)


@dataclass(frozen=True, slots=True)
class ScalarNode:
    line: int
    text: str = field(repr=False)
    """The text as written: `${VAR}` is not replaced yet, so a message may show it."""
    is_null: bool = False
    size: int = 1


@dataclass(frozen=True, slots=True)
class SequenceNode:
    line: int
    items: tuple["Node", ...]
    size: int


@dataclass(frozen=True, slots=True)
class MappingNode:
    line: int
    items: dict[str, "Node"]
    key_lines: dict[str, int]
    size: int


Node = ScalarNode | SequenceNode | MappingNode


def read_text(path: Path) -> str:
    """The text of the file. Raises RegistryError if it cannot be read, is too large or is not UTF-8."""
    try:
        with path.open("rb") as file:
            body = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise _refused(
            path, "the file does not exist; create it, or set RSS_FEEDS_FILE to its path"
        ) from None
    except IsADirectoryError:
        raise _refused(path, "this is a folder; set RSS_FEEDS_FILE to the path of a file") from None
    except OSError as error:
        raise _refused(path, f"the file cannot be read: {error.strerror or type(error).__name__}") from None
    if len(body) > MAX_FILE_BYTES:
        raise _refused(
            path, f"the file is larger than {MAX_FILE_BYTES // 1_000_000} MB; it cannot be a list of feeds"
        )
    # Without its mark, half of the bytes of usual text are null.
    if body.startswith((b"\xff\xfe", b"\xfe\xff")) or 0 in body[:2]:
        raise _refused(path, "the file is UTF-16; save it as UTF-8")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        mistake = Mistake(line, "", f"byte 0x{body[error.start]:02x} is not UTF-8; save the file as UTF-8")
        raise RegistryError(str(path), [str(mistake)]) from None


def read_nodes(text: str) -> tuple[Node | None, list[Mistake]]:
    """The tree of a YAML or JSON text and the mistakes of its syntax.

    The tree is None if the text is empty or the parser cannot continue. After other mistakes it can, and the
    tree is the rest: a duplicate key, an unknown tag or anchor, a second document.
    """
    unreadable = _UNREADABLE.search(text)
    if unreadable:
        line = text.count("\n", 0, unreadable.start()) + 1
        code = ord(unreadable[0])
        return None, [Mistake(line, "", f"the character U+{code:04X} is not allowed in YAML; remove it")]
    if text.lstrip()[:1] == "<":
        return None, [
            Mistake(1, "", "this is XML (OPML?), not YAML; write a list of feeds: `- url: https://...`")
        ]
    builder = _NodeBuilder(yaml.parse(json_as_yaml(text), Loader=YAML_LOADER))
    try:
        return builder.document(), builder.mistakes
    except _InvalidYaml as broken:
        return None, [*builder.mistakes, broken.mistake]
    except yaml.MarkedYAMLError as error:
        return None, [*builder.mistakes, _syntax_mistake(error, text)._replace(stops_parser=True)]


def _refused(path: Path, sentence: str) -> RegistryError:
    return RegistryError(str(path), [sentence])


def json_as_yaml(text: str) -> str:
    """JSON as YAML reads it: a character above U+FFFF is not written as two \\u escapes, as Python does."""
    if text.lstrip()[:1] not in ("{", "[") or "\\u" not in text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _JSON_ESCAPE.sub(lambda m: json.loads(f'"{m[0]}"') if m[1] else m[0], text)


class _InvalidYaml(Exception):
    def __init__(self, line: int, sentence: str) -> None:
        self.mistake = Mistake(line, "", sentence)
        super().__init__(sentence)


class _NodeBuilder:
    """Builds nodes from the events of the parser, with a limit on depth and on repeated aliases."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self.mistakes: list[Mistake] = []
        self._events = events
        self._anchors: dict[str, Node] = {}
        self._repeated = 0

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self._mistake(
                        _line(event), "a second document begins here; write all feeds into one document"
                    )
                    break
                root = self._node(next(self._events), 0)
        return None if isinstance(root, ScalarNode) and root.is_null else root

    def _node(self, event: yaml.Event, depth: int) -> Node:
        line = _line(event)
        if depth > MAX_DEPTH:
            raise _InvalidYaml(line, "the values are nested too deeply for a list of feeds")
        if isinstance(event, yaml.AliasEvent):
            return self._repeat(event.anchor, line)
        tag = getattr(event, "tag", None)
        if tag and tag != "!" and not _STANDARD_TAG.fullmatch(tag):
            self._mistake(line, f"the tag {shown(tag)} has no meaning here; remove it")
        node: Node
        match event:
            case yaml.ScalarEvent():
                node = ScalarNode(line, event.value, is_null(event))
            case yaml.SequenceStartEvent():
                items = []
                while not isinstance(following := next(self._events), yaml.SequenceEndEvent):
                    items.append(self._node(following, depth + 1))
                node = SequenceNode(line, tuple(items), 1 + sum(item.size for item in items))
            case _:
                node = self._table(line, depth)
        anchor = getattr(event, "anchor", None)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _table(self, line: int, depth: int) -> MappingNode:
        items: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        merged: list[MappingNode] = []
        while not isinstance(following := next(self._events), yaml.MappingEndEvent):
            key = self._node(following, depth + 1)
            value = self._node(next(self._events), depth + 1)
            if not isinstance(key, ScalarNode):
                self._mistake(key.line, "a list or mapping cannot be a key; write a name and a colon")
                continue
            if key.text == "<<" and _is_plain(following):
                merged += self._merged(value)
                continue
            if key.text in items:
                first = key_lines[key.text]
                sentence = (
                    f"the key {shown(key.text)} is here again (first in line {first}); keep one of them"
                )
                self._mistake(_line(following), sentence)
                continue
            items[key.text] = value
            key_lines[key.text] = _line(following)
        for table in merged:
            for name, value in table.items.items():
                if name not in items:
                    items[name] = value
                    key_lines[name] = line
        return MappingNode(line, items, key_lines, 1 + sum(item.size for item in items.values()))

    def _repeat(self, anchor: str | None, line: int) -> Node:
        if anchor is None or anchor not in self._anchors:
            self._mistake(
                line, f"*{anchor} refers to no anchor above it; put a text that begins with * in quotes"
            )
            return ScalarNode(line, f"*{anchor}")
        node = self._anchors[anchor]
        self._repeated += node.size
        if self._repeated > MAX_REPEATED_NODES:
            raise _InvalidYaml(
                line, "the aliases of this file repeat more than a million values; write fewer of them"
            )
        return node

    def _merged(self, value: Node) -> list[MappingNode]:
        tables = value.items if isinstance(value, SequenceNode) else (value,)
        merged = [table for table in tables if isinstance(table, MappingNode)]
        if len(merged) != len(tables):
            self._mistake(value.line, "`<<` takes an alias of a mapping, such as `<<: *slow`")
        return merged

    def _mistake(self, line: int, sentence: str) -> None:
        self.mistakes.append(Mistake(line, "", sentence))


def is_null(event: yaml.Event) -> bool:
    """The event is a plain null, or an empty text in its place."""
    return _is_plain(event) and event.value in ("", "~", "null", "Null", "NULL")


def _is_plain(event: yaml.Event) -> TypeGuard[yaml.ScalarEvent]:
    return isinstance(event, yaml.ScalarEvent) and not event.style


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _syntax_mistake(error: yaml.MarkedYAMLError, text: str) -> Mistake:
    mark, context = error.problem_mark, error.context_mark
    if mark is None:
        return Mistake(0, "", f"not valid YAML: {error.problem}")
    lines = text.split("\n")
    source = lines[mark.line] if mark.line < len(lines) else ""
    character = source[mark.column : mark.column + 1]
    problem = str(error.problem)
    begun = context.line + 1 if context else None
    if "\t" in source[: len(source) - len(source.lstrip())] or character == "\t":
        return Mistake(mark.line + 1, "", "a tab is used where YAML requires spaces; indent with spaces")
    if begun and "quoted scalar" in str(error.context):
        if "end of stream" in problem or "document indicator" in problem:
            return Mistake(begun, "", "a quote is opened here and not closed; close it")
        sentence = 'unknown escape in double quotes; write "\\\\" for a backslash, or use single quotes'
        return Mistake(mark.line + 1, "", sentence)
    if "cannot start any token" in problem:
        return Mistake(mark.line + 1, "", f'a text cannot begin with "{character}"; put it in quotes')
    if "mapping values are not allowed" in problem:
        sentence = 'a colon is not allowed here; put a text that contains ": " in quotes, and align keys'
        return Mistake(mark.line + 1, "", sentence)
    since = f" ({error.context}, begun in line {begun})" if begun else ""
    sentence = f"not valid YAML here: {problem}{since}; check indentation, quotes and brackets"
    return Mistake(mark.line + 1, "", sentence)
