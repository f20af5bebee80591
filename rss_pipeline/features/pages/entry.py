"""The key `page` of a feed in feeds.yaml: how the list of a page is found, and each mistake with its line.

Each text is `auto`, `confirmed`, or the selectors as JSON.
"""

import json
from collections.abc import Mapping

from pydantic_core import PydanticCustomError

from rss_pipeline.collector.registry.validate import member_place, unknown_key
from rss_pipeline.collector.registry.values import describe, expanded
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.collector.registry.yaml_nodes import MappingNode, Mistake, Node, ScalarNode
from rss_pipeline.features.pages import AUTO, CONFIRMED
from rss_pipeline.features.streams.expression import xpath_mistake
from rss_pipeline.features.streams.stream_keys import read_text

_PARTS = ("title", "link", "date", "text", "image", "author")
_KEYS = ("item", *_PARTS)
_MOST_BYTES = 1_500
"""The most of all selectors of a page: they go with each backup, in its metadata."""
_ADVICE = (
    f"write {AUTO} for a page with a list that is certain, {CONFIRMED} for the best list, or selectors:"
    ' {item: "li.job"}'
)


def read_page_key(node: Node, place: str, environ: Mapping[str, str], mistakes: list[Mistake]) -> str | None:
    """The value of the key as text; None with a mistake."""
    if isinstance(node, MappingNode):
        return _selectors(node, place, environ, mistakes)
    if not isinstance(node, ScalarNode) or node.is_null:
        found = "has no value" if isinstance(node, ScalarNode) else f"is {describe(node)}"
        mistakes.append(Mistake(node.line, place, f"{found}; {_ADVICE}"))
        return None
    try:
        text = expanded(node, environ)
    except PydanticCustomError as error:
        mistakes.append(Mistake(node.line, place, error.message()))
        return None
    if text in (AUTO, CONFIRMED):
        return text
    mistakes.append(Mistake(node.line, place, f"{shown(node.text)} is no way to find a list; {_ADVICE}"))
    return None


def _selectors(
    table: MappingNode, place: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> str | None:
    before = len(mistakes)
    found: dict[str, str] = {}
    for name, node in table.items.items():
        line, there = table.key_lines[name], member_place(place, name)
        if name not in _KEYS:
            mistakes.append(Mistake(line, there, unknown_key(name, _KEYS)))
        elif (text := read_text(node, line, there, environ, mistakes)) is not None:
            if (mistake := _mistake(name, text.strip())) is not None:
                sentence = f"{shown(text)} {mistake}" if mistake.startswith(("is ", "begins ")) else mistake
                mistakes.append(Mistake(line, there, sentence))
            found[name] = text.strip()
    if "item" not in table.items:
        mistakes.append(
            Mistake(table.line, f"{place}.item", 'is missing; write what selects the entries, item: "li.job"')
        )
    text = json.dumps({name: found[name] for name in _KEYS if name in found}, separators=(",", ":"))
    if (size := len(text)) > _MOST_BYTES:
        sentence = f"has {size:,} bytes of selectors; at most {_MOST_BYTES:,} are read: shorten them"
        mistakes.append(Mistake(table.line, place, sentence))
    return None if len(mistakes) > before else text


def _mistake(name: str, selector: str) -> str | None:
    # The command line imports this with every feeds.yaml, and few have pages.
    from rss_pipeline.features.pages.selectors import is_xpath, to_xpath

    if name != "item" and selector.startswith("/"):
        return f"begins at the top of the page; write it from the entry, .{selector}"
    try:
        xpath = to_xpath(selector)
    except ValueError as error:
        return str(error)
    if name == "item" and not is_xpath(selector) and "/@" in xpath:
        return "selects an attribute and no element; write a selector such as li.job"
    return xpath_mistake(xpath) if is_xpath(selector) else None
