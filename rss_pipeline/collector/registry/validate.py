"""A mapping of feeds.yaml as one of the pydantic models, and the line of each mistake in it.

The model of a feed is in `entry.py`; features have their own.
"""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rss_pipeline.collector.registry.values import describe
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.collector.registry.yaml_nodes import MappingNode, Mistake, Node, SequenceNode

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_SYNONYMS = {
    "category": "folder",
    "every": "interval",
    "feeds": "of",
    "frequency": "interval",
    "href": "url",
    "interval": "every",
    "link": "url",
    "max": "items",
    "members": "of",
    "name": "title",
    "refresh": "interval",
    "subject": "category",
    "tag": "category",
    "tags": "category",
    "url": "link",
    "xmlurl": "url",
}
"""A key that is not known to the key that was probably meant, where that is one."""


class EntryModel(BaseModel):
    """A model of a mapping; `example` is for a message that says what to write instead of another node."""

    example: ClassVar[str]
    missing: ClassVar[str]
    """The mistake if the required key is not there."""


_Model = TypeVar("_Model", bound=EntryModel)


def validated(
    model: type[_Model],
    node: Node,
    place: str,
    environ: Mapping[str, str],
    mistakes: list[Mistake],
    *,
    also: Collection[str] = (),
) -> _Model | None:
    """The keys that have no mistake, as a model; None if a required key is among the others.

    The keys `also` are allowed and not read.
    """
    if not isinstance(node, MappingNode):
        mistakes.append(
            Mistake(node.line, place, f"is {describe(node)}; write keys and values, {model.example}")
        )
        return None
    items = {name: value for name, value in node.items.items() if name not in also} if also else node.items
    try:
        return model.model_validate(items, context={"environ": environ})
    except ValidationError as error:
        # Without the input: it may hold the value of a variable.
        found = error.errors(include_url=False, include_input=False)
    known = [*model.model_fields, *also]
    mistakes += [_mistake(details, node, place, model, known) for details in found]
    # The rest is compared with the other entries: otherwise a double shows only after these are corrected.
    wrong = {details["loc"][0] for details in found}
    try:
        rest = {name: value for name, value in items.items() if name not in wrong}
        return model.model_validate(rest, context={"environ": environ})
    except ValidationError:
        return None


def _mistake(
    details: ErrorDetails, table: MappingNode, place: str, model: type[EntryModel], known: Sequence[str]
) -> Mistake:
    line = table.line
    node: Node | None = table
    for step in details["loc"]:
        if isinstance(node, SequenceNode) and isinstance(step, int):
            node = node.items[step]
            line, place = node.line, f"{place}[{step}]"
            continue
        if step == "[key]" or not isinstance(node, MappingNode):
            break
        name = str(step)
        line = node.key_lines.get(name, line)
        place = member_place(place, name)
        node = node.items.get(name)
    match details["type"]:
        case "extra_forbidden":
            sentence = unknown_key(str(details["loc"][-1]), known)
        case "missing":
            sentence = model.missing
        case _:
            sentence = details["msg"]
    return Mistake(line, place, sentence)


def member_place(place: str, name: str) -> str:
    """The place of a key of the mapping at `place`."""
    name = name if _PLAIN_NAME.fullmatch(name) else shown(name)
    return f"{place}.{name}" if place else name


def unknown_key(name: str, keys: Sequence[str]) -> str:
    """The sentence for a key that is none of `keys`."""
    lower = name.lower().replace("-", "_")
    synonym = _SYNONYMS.get(lower)
    close = [synonym] if synonym in keys else difflib.get_close_matches(lower, keys, n=1, cutoff=0.65)
    if close:
        return f'unknown key; did you mean "{close[0]}"?'
    return f"unknown key; remove it (known here: {', '.join(keys)})"
