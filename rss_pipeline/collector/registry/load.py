"""The reader of feeds.yaml: a list of FeedSpec, or every mistake with its line and a correction.

Its syntax is read in `yaml_nodes.py` and its keys are checked in `entry.py`; `pipeline.registry` brings the
list into the database.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rss_pipeline.collector.models.feed import Access, FeedSpec
from rss_pipeline.collector.registry.broken_entries import MOST, without_entry
from rss_pipeline.collector.registry.entry import FeedDefaults, FeedEntry, describe
from rss_pipeline.collector.registry.feed_url import feed_id
from rss_pipeline.collector.registry.unchanged import UsedVariables, keep, read_before, signature
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.collector.registry.yaml_nodes import (
    MappingNode,
    Mistake,
    Node,
    ScalarNode,
    SequenceNode,
    read_nodes,
    read_text,
)
from rss_pipeline.errors import RegistryError

MAX_FEEDS = 50_000
_EXAMPLE = "`- url: https://example.org/feed.xml`"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_SYNONYMS = {
    "category": "folder",
    "every": "interval",
    "frequency": "interval",
    "href": "url",
    "link": "url",
    "name": "title",
    "refresh": "interval",
    "xmlurl": "url",
}

_DEFAULTED = tuple(FeedDefaults.model_fields)
_Model = TypeVar("_Model", FeedDefaults, FeedEntry)


class _Registered(NamedTuple):
    place: str
    node: MappingNode
    entry: FeedEntry
    spec: FeedSpec


def load_registry(path: Path, *, environ: Mapping[str, str]) -> list[FeedSpec]:
    """The feeds of the file at `path`, in its order; the values of `${VAR}` are in `environ`.

    A file that did not change since this process read it is not read again. Raises RegistryError with all
    mistakes of the file, also if it cannot be read.
    """
    known = read_before(path, environ=environ)
    if known is not None:
        return known
    before, recorded = signature(path), UsedVariables(environ)
    specs = parse_registry(read_text(path), path=path, environ=recorded)
    keep(path, before, recorded, specs)
    return specs


def parse_registry(text: str, *, path: Path, environ: Mapping[str, str]) -> list[FeedSpec]:
    """The feeds of a YAML or JSON text; `path` is used in the RegistryError only."""
    root, mistakes = read_nodes(text)
    specs: list[FeedSpec] = []
    if root is not None:
        specs = _specs(root, environ, mistakes)
    elif mistakes:
        mistakes = _with_those_of_other_entries(text, environ, mistakes)
    else:
        mistakes.append(Mistake(0, "", f"the file is empty; write a list of feeds, such as {_EXAMPLE}"))
    if mistakes:
        # Without the entry of its line, a mistake of syntax may be found in the same place again.
        found = dict.fromkeys(str(mistake) for mistake in sorted(mistakes, key=lambda m: m.line))
        raise RegistryError(str(path), list(found))
    return specs


def _with_those_of_other_entries(
    text: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> list[Mistake]:
    """The mistakes of syntax in `text`, and all mistakes of the entries that can be read without them."""
    broken: list[Mistake] = []
    blank: set[int] = set()
    while mistakes and mistakes[-1].stops_parser and len(broken) < MOST:
        broken.append(mistakes[-1])
        rest = without_entry(text, mistakes[-1].line)
        if rest is None or blank.issuperset(rest[1]):
            return broken
        text = rest[0]
        blank.update(rest[1])
        root, mistakes = read_nodes(text)
        if root is not None:
            _specs(root, environ, mistakes)
            return broken + [mistake for mistake in mistakes if mistake.line not in blank]
    return broken or mistakes


def _specs(root: Node, environ: Mapping[str, str], mistakes: list[Mistake]) -> list[FeedSpec]:
    feeds: Node | None = root
    defaults: dict[str, Any] = {}
    if isinstance(root, MappingNode):
        for name in root.items:
            if name not in ("feeds", "defaults"):
                sentence = _unknown(name, ["feeds", "defaults"])
                mistakes.append(Mistake(root.key_lines[name], _member("", name), sentence))
        if "defaults" in root.items:
            read = _validated(FeedDefaults, root.items["defaults"], "defaults", environ, mistakes)
            defaults = read.model_dump(exclude_unset=True) if read else {}
        feeds = root.items.get("feeds")
    match feeds:
        case SequenceNode() if len(feeds.items) > MAX_FEEDS:
            sentence = f"has {len(feeds.items):,} feeds; at most {MAX_FEEDS:,} are read: remove some of them"
            mistakes.append(Mistake(feeds.line, "feeds", sentence))
            return []
        case SequenceNode():
            found = [
                _registered(node, index, defaults, environ, mistakes)
                for index, node in enumerate(feeds.items)
            ]
        case None:
            mistakes.append(
                Mistake(root.line, "feeds", f"is missing; write `feeds:` and below it {_EXAMPLE}")
            )
            return []
        case ScalarNode(is_null=True):
            mistakes.append(
                Mistake(feeds.line, "feeds", "has no entries; write `feeds: []` for an empty list")
            )
            return []
        case _:
            sentence = f"is {describe(feeds)}; write a list of feeds, such as {_EXAMPLE}"
            mistakes.append(Mistake(feeds.line, "feeds", sentence))
            return []
    registered = [each for each in found if each]
    _refuse_duplicates(registered, mistakes)
    return [each.spec for each in registered]


def _registered(
    node: Node, index: int, defaults: Mapping[str, Any], environ: Mapping[str, str], mistakes: list[Mistake]
) -> _Registered | None:
    place = f"feeds[{index}]"
    if isinstance(node, ScalarNode):
        if node.is_null:
            mistakes.append(Mistake(node.line, place, f"is empty; write {_EXAMPLE}, or remove the line"))
            return None
        node = MappingNode(node.line, {"url": node}, {"url": node.line}, 2)
    entry = _validated(FeedEntry, node, place, environ, mistakes)
    if entry is None or not isinstance(node, MappingNode):
        return None
    if entry.url.username is not None and any(name.lower() == "authorization" for name in entry.headers):
        sentence = (
            "a password in the URL and an Authorization header cannot be used together; keep one of them"
        )
        mistakes.append(Mistake(node.key_lines["headers"], f"{place}.headers", sentence))
    return _Registered(place, node, entry, _spec(entry, defaults))


def _spec(entry: FeedEntry, defaults: Mapping[str, Any]) -> FeedSpec:
    common = {name: getattr(entry, name) for name in _DEFAULTED}
    if defaults:
        common |= {name: value for name, value in defaults.items() if name not in entry.model_fields_set}
    keep_days = common.pop("keep")
    return FeedSpec(
        keep_days=keep_days,
        url=entry.url.url,
        id=entry.id or feed_id(entry.url.url, entry.url.host),
        host=entry.url.host,
        title=entry.title,
        folder=entry.folder,
        enabled=entry.enabled,
        allow_private=entry.allow_private is not None,
        private_hosts=entry.allow_private or (),
        access=Access(headers=entry.headers, username=entry.url.username, password=entry.url.password),
        **common,
    )


def _refuse_duplicates(registered: list[_Registered], mistakes: list[Mistake]) -> None:
    urls: dict[str, tuple[str, int]] = {}
    ids: dict[str, tuple[str, int]] = {}
    for place, node, entry, spec in registered:
        line = node.key_lines["url"]
        same_url, first_line = urls.setdefault(entry.url.same_as, (place, line))
        if same_url != place:
            sentence = f"is the same URL as {same_url} in line {first_line}; remove one of them"
            mistakes.append(Mistake(line, f"{place}.url", sentence))
            if entry.id is None:
                continue
        line = node.key_lines.get("id", line)
        first, first_line = ids.setdefault(spec.id, (place, line))
        if first not in (place, same_url):
            sentence = (
                f'the id "{spec.id}" is also the id of {first} in line {first_line}; write another `id:`'
            )
            mistakes.append(Mistake(line, f"{place}.id", sentence))


def _validated(
    model: type[_Model], node: Node, place: str, environ: Mapping[str, str], mistakes: list[Mistake]
) -> _Model | None:
    """The keys that have no mistake, as a model; None if a required key is among the others."""
    if not isinstance(node, MappingNode):
        mistakes.append(Mistake(node.line, place, f"is {describe(node)}; write keys and values, `url: ...`"))
        return None
    try:
        return model.model_validate(node.items, context={"environ": environ})
    except ValidationError as error:
        # Without the input: it may hold the value of a variable.
        found = error.errors(include_url=False, include_input=False)
    mistakes += [_mistake(details, node, place, list(model.model_fields)) for details in found]
    # The rest is compared with the other entries: otherwise a double shows only after these are corrected.
    wrong = {details["loc"][0] for details in found}
    try:
        rest = {name: value for name, value in node.items.items() if name not in wrong}
        return model.model_validate(rest, context={"environ": environ})
    except ValidationError:
        return None


def _mistake(details: ErrorDetails, table: MappingNode, place: str, keys: list[str]) -> Mistake:
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
        place = _member(place, name)
        node = node.items.get(name)
    match details["type"]:
        case "extra_forbidden":
            sentence = _unknown(str(details["loc"][-1]), keys)
        case "missing":
            sentence = "is missing; write the feed's address, `url: https://example.org/feed.xml`"
        case _:
            sentence = details["msg"]
    return Mistake(line, place, sentence)


def _member(place: str, name: str) -> str:
    name = name if _PLAIN_NAME.fullmatch(name) else shown(name)
    return f"{place}.{name}" if place else name


def _unknown(name: str, keys: list[str]) -> str:
    lower = name.lower().replace("-", "_")
    synonym = _SYNONYMS.get(lower)
    close = [synonym] if synonym in keys else difflib.get_close_matches(lower, keys, n=1, cutoff=0.65)
    if close:
        return f'unknown key; did you mean "{close[0]}"?'
    return f"unknown key; remove it (known here: {', '.join(keys)})"
