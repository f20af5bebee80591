"""The key `streams` of a feed in feeds.yaml: names and selectors, and each mistake with its line.

Each text is one that `streams_of_json` can read.
"""

from collections.abc import Mapping

from pydantic_core import PydanticCustomError

from rss_pipeline.collector.registry.validate import member_place, unknown_key
from rss_pipeline.collector.registry.values import NAME, NAME_RULE, describe, expanded, nodes_of
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.collector.registry.yaml_nodes import MappingNode, Mistake, Node, ScalarNode
from rss_pipeline.features.streams.expression import xpath_mistake
from rss_pipeline.features.streams.model import (
    SELECTOR_FIELDS,
    FieldSelector,
    StreamSpec,
    normal,
    streams_to_json,
)

MAX_STREAMS = 200
MAX_PATTERNS = 100
MAX_SELECTOR_CHARACTERS = 2_000
"""The longest pattern or XPath expression."""
MAX_STREAMS_BYTES = 200_000
"""Size of all selectors of a feed together: they are read with each claim of it."""

_EXAMPLE = "a name and a selector on each line below, `jane: {author: Jane Doe}`"
_KEYS = (*SELECTOR_FIELDS, "not", "xpath")


def read_streams(node: Node, place: str, environ: Mapping[str, str], mistakes: list[Mistake]) -> str | None:
    """The streams without mistakes as one text, in the order of the file; `node` is the value of the key."""
    if not isinstance(node, MappingNode):
        found = "has no value" if isinstance(node, ScalarNode) and node.is_null else f"is {describe(node)}"
        mistakes.append(Mistake(node.line, place, f"{found}; write {_EXAMPLE}"))
        return None
    if len(node.items) > MAX_STREAMS:
        sentence = f"has {len(node.items):,} streams; at most {MAX_STREAMS} are read: remove some of them"
        mistakes.append(Mistake(node.line, place, sentence))
        return None
    if not node.items:
        mistakes.append(Mistake(node.line, place, f"has no streams; write {_EXAMPLE}, or remove the key"))
    streams = tuple(
        StreamSpec(name=name, selector=selector)
        for name, value in node.items.items()
        if (selector := _stream(name, value, node, place, environ, mistakes)) is not None
    )
    text = streams_to_json(streams)
    if (size := len((text or "").encode())) > MAX_STREAMS_BYTES:
        sentence = f"has {size:,} bytes of selectors; at most {MAX_STREAMS_BYTES:,} are read: shorten them"
        mistakes.append(Mistake(node.line, place, sentence))
    return text


def stream_names(node: Node | None) -> frozenset[str]:
    """The names below the key, with mistakes or without."""
    return frozenset(node.items) if isinstance(node, MappingNode) else frozenset()


def _stream(
    name: str,
    node: Node,
    table: MappingNode,
    place: str,
    environ: Mapping[str, str],
    mistakes: list[Mistake],
) -> FieldSelector | str | None:
    line, place, before = table.key_lines[name], member_place(place, name), len(mistakes)
    if not NAME.fullmatch(name):
        mistakes.append(Mistake(line, place, f"this is not a valid name of a stream; write {NAME_RULE}"))
    if not isinstance(node, MappingNode):
        sentence = "write a selector, such as {author: Jane Doe}"
        found = "has no value" if isinstance(node, ScalarNode) and node.is_null else f"is {describe(node)}"
        mistakes.append(Mistake(line, place, f"{found}; {sentence}"))
        return None
    if "xpath" in node.items and len(node.items) > 1:
        other = next(key for key in node.items if key != "xpath")
        sentence = (
            f"cannot be used together with {other}; write two streams, or one XPath expression for both"
        )
        mistakes.append(Mistake(node.key_lines["xpath"], f"{place}.xpath", sentence))
    selector = _selector(node, place, environ, mistakes, keys=_KEYS)
    xpath = None
    if "xpath" in node.items:
        xpath = _expression(node, place, environ, mistakes)
    elif selector == FieldSelector() and len(mistakes) == before:
        sentence = f"selects nothing; write one of {', '.join(_KEYS)}"
        mistakes.append(Mistake(line, place, sentence))
    return None if len(mistakes) > before else xpath or selector


def _selector(
    table: MappingNode,
    place: str,
    environ: Mapping[str, str],
    mistakes: list[Mistake],
    *,
    keys: tuple[str, ...],
) -> FieldSelector:
    patterns: dict[str, tuple[str, ...]] = {}
    negated: FieldSelector | None = None
    for name, node in table.items.items():
        line, there = table.key_lines[name], member_place(place, name)
        if name not in keys:
            sentence = unknown_key(name, keys)
            if name == "not":
                sentence = "is inside another not; write its conditions one level up, or use xpath"
            mistakes.append(Mistake(line, there, sentence))
        elif name in SELECTOR_FIELDS:
            patterns[name] = _patterns(node, line, there, environ, mistakes)
        elif name == "not":
            negated = _negated(node, line, there, environ, mistakes)
    return FieldSelector(**patterns, negated=negated)


def _negated(
    node: Node, line: int, place: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> FieldSelector | None:
    if not isinstance(node, MappingNode) or not node.items:
        found = "has no conditions" if isinstance(node, MappingNode) else f"is {describe(node)}"
        mistakes.append(Mistake(line, place, f'{found}; write some, such as {{title: "*advert*"}}'))
        return None
    return _selector(node, place, environ, mistakes, keys=SELECTOR_FIELDS)


def _patterns(
    node: Node, line: int, place: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> tuple[str, ...]:
    try:
        nodes = nodes_of(node)
    except PydanticCustomError as error:
        mistakes.append(Mistake(line, place, error.message()))
        return ()
    if len(nodes) > MAX_PATTERNS:
        sentence = f"has {len(nodes):,} patterns; at most {MAX_PATTERNS} are read: use *, or several streams"
        mistakes.append(Mistake(line, place, sentence))
        return ()
    found: dict[str, None] = {}
    for index, each in enumerate(nodes):
        there = place if each is node else f"{place}[{index}]"
        text = read_text(each, line if each is node else each.line, there, environ, mistakes)
        if text is not None:
            found[text] = None
    return tuple(found)


def read_text(
    node: Node, line: int, place: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> str | None:
    """The text of a pattern or selector; None with a mistake."""
    try:
        text = expanded(node, environ)
    except PydanticCustomError as error:
        mistakes.append(Mistake(line, place, error.message()))
        return None
    if len(text) > MAX_SELECTOR_CHARACTERS:
        sentence = f"has {len(text):,} characters; at most {MAX_SELECTOR_CHARACTERS:,} are read: shorten it"
    elif "\0" in text:
        sentence = "contains U+0000; remove it"
    elif not normal(text):
        sentence = 'is empty; write a text, or "*" for any'
    else:
        return text
    mistakes.append(Mistake(line, place, sentence))
    return None


def _expression(
    table: MappingNode, place: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> str | None:
    line, place = table.key_lines["xpath"], f"{place}.xpath"
    text = read_text(table.items["xpath"], line, place, environ, mistakes)
    if text is None or (mistake := xpath_mistake(text)) is None:
        return text
    mistakes.append(
        Mistake(line, place, f"{shown(text)} {mistake}" if mistake.startswith("is ") else mistake)
    )
    return None
