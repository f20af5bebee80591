"""The reader of feeds.yaml: a Registry, or every mistake with its line and a correction.

Its syntax is read in `yaml_nodes.py`; its keys are checked in `entry.py` and by features;
`pipeline.registry` brings it into the database.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rss_pipeline.collector.models.feed import Access, FeedSpec, Registry
from rss_pipeline.collector.registry.entry import FeedDefaults, FeedEntry
from rss_pipeline.collector.registry.feed_url import feed_id
from rss_pipeline.collector.registry.validate import member_place, unknown_key, validated
from rss_pipeline.collector.registry.values import describe
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
from rss_pipeline.features import FEATURES, FEED_KEYS

MAX_FEEDS = 500_000
_EXAMPLE = "`- url: https://example.org/feed.xml`"
_FEATURE_KEYS = [feature.registry_key for feature in FEATURES if feature.registry_key is not None]
_KEYS = ("feeds", "defaults", *(key.name for key in _FEATURE_KEYS))
_DEFAULTED = tuple(FeedDefaults.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFeeds:
    """The feeds that a feature's key may name."""

    specs: Mapping[str, FeedSpec]
    """Without those that have mistakes."""
    entries: Mapping[str, MappingNode]
    """By id, the entries of the file, with mistakes or without."""
    is_complete: bool
    """False if the id of some feed is not known because of a mistake there."""


class _Registered(NamedTuple):
    place: str
    node: MappingNode
    entry: FeedEntry
    spec: FeedSpec


def load_registry(path: Path, *, environ: Mapping[str, str]) -> Registry:
    """The content of the file at `path`, in its order; the values of `${VAR}` are in `environ`.

    A file that did not change since this process read it is not read again. Raises RegistryError with all
    mistakes of the file, also if it cannot be read.
    """
    known = read_before(path, environ=environ)
    if known is not None:
        return known
    before, recorded = signature(path), UsedVariables(environ)
    registry = parse_registry(read_text(path), path=path, environ=recorded)
    keep(path, before, recorded, registry)
    return registry


def parse_registry(text: str, *, path: Path, environ: Mapping[str, str]) -> Registry:
    """The content of a YAML or JSON text; `path` is used in the RegistryError only."""
    root, mistakes = read_nodes(text)
    registry = Registry()
    if root is not None:
        registry = _registry(root, environ, mistakes)
    elif mistakes:
        mistakes = _with_those_of_other_entries(text, environ, mistakes)
    else:
        mistakes.append(Mistake(0, "", f"the file is empty; write a list of feeds, such as {_EXAMPLE}"))
    if mistakes:
        # Without the entry of its line, a mistake of syntax may be found in the same place again.
        found = dict.fromkeys(str(mistake) for mistake in sorted(mistakes, key=lambda m: m.line))
        raise RegistryError(str(path), list(found))
    return registry


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
            _registry(root, environ, mistakes)
            return broken + [mistake for mistake in mistakes if mistake.line not in blank]
    return broken or mistakes


def _registry(root: Node, environ: Mapping[str, str], mistakes: list[Mistake]) -> Registry:
    values = root.items if isinstance(root, MappingNode) else {"feeds": root}
    for name in values:
        if isinstance(root, MappingNode) and name not in _KEYS:
            sentence = unknown_key(name, _KEYS)
            mistakes.append(Mistake(root.key_lines[name], member_place("", name), sentence))
    defaults: dict[str, Any] = {}
    if "defaults" in values:
        read = validated(FeedDefaults, values["defaults"], "defaults", environ, mistakes)
        defaults = read.model_dump(exclude_unset=True) if read else {}
    known = _feeds(values.get("feeds"), root.line, defaults, environ, mistakes)
    of_features = {
        key.name: key.read.load()(values.get(key.name), known, environ, mistakes) for key in _FEATURE_KEYS
    }
    return Registry(tuple(known.specs.values()), of_features)


def _feeds(
    feeds: Node | None,
    line: int,
    defaults: Mapping[str, Any],
    environ: Mapping[str, str],
    mistakes: list[Mistake],
) -> KnownFeeds:
    """The feeds that can be read; `line` is that of the mapping without the key `feeds`."""
    match feeds:
        case SequenceNode() if len(feeds.items) > MAX_FEEDS:
            line = feeds.line
            sentence = f"has {len(feeds.items):,} feeds; at most {MAX_FEEDS:,} are read: remove some of them"
        case SequenceNode():
            return _known(feeds, defaults, environ, mistakes)
        case None:
            sentence = f"is missing; write `feeds:` and below it {_EXAMPLE}"
        case ScalarNode(is_null=True):
            line, sentence = feeds.line, "has no entries; write `feeds: []` for an empty list"
        case _:
            line, sentence = feeds.line, f"is {describe(feeds)}; write a list of feeds, such as {_EXAMPLE}"
    mistakes.append(Mistake(line, "feeds", sentence))
    return KnownFeeds(specs={}, entries={}, is_complete=False)


def _known(
    feeds: SequenceNode, defaults: Mapping[str, Any], environ: Mapping[str, str], mistakes: list[Mistake]
) -> KnownFeeds:
    refusals = [key.refuses_url.load() for key in _FEATURE_KEYS if key.refuses_url is not None]
    found = [
        _registered(node, n, defaults, environ, mistakes, refusals) for n, node in enumerate(feeds.items)
    ]
    registered = [each for each in found if each]
    _refuse_duplicates(registered, mistakes)
    entries = {each.spec.id: each.node for each in registered}
    is_complete = True
    for node, each in zip(feeds.items, found, strict=True):
        if each is None:
            id = node.items.get("id") if isinstance(node, MappingNode) else None
            if isinstance(node, MappingNode) and isinstance(id, ScalarNode):
                entries.setdefault(id.text.strip(), node)
            else:
                is_complete = False
    specs = {each.spec.id: each.spec for each in registered}
    return KnownFeeds(specs=specs, entries=entries, is_complete=is_complete)


def _registered(
    node: Node,
    index: int,
    defaults: Mapping[str, Any],
    environ: Mapping[str, str],
    mistakes: list[Mistake],
    refusals: Sequence[Callable[[str, Mapping[str, str]], str | None]],
) -> _Registered | None:
    place = f"feeds[{index}]"
    if isinstance(node, ScalarNode):
        if node.is_null:
            mistakes.append(Mistake(node.line, place, f"is empty; write {_EXAMPLE}, or remove the line"))
            return None
        node = MappingNode(node.line, {"url": node}, {"url": node.line}, 2)
    entry = validated(FeedEntry, node, place, environ, mistakes, also=FEED_KEYS)
    if entry is None or not isinstance(node, MappingNode):
        return None
    if entry.url.username is not None and any(name.lower() == "authorization" for name in entry.headers):
        sentence = (
            "a password in the URL and an Authorization header cannot be used together; keep one of them"
        )
        mistakes.append(Mistake(node.key_lines["headers"], f"{place}.headers", sentence))
    for refuses in refusals:
        if (refusal := refuses(entry.url.url, environ)) is not None:
            mistakes.append(Mistake(node.key_lines["url"], f"{place}.url", refusal))
    if not entry.watch:
        mistakes += _of_watched(node, place)
    read = {
        name: key.read.load()(node.items[name], f"{place}.{name}", environ, mistakes)
        for name, key in FEED_KEYS.items()
        if name in node.items
    }
    keys = {name: text for name, text in read.items() if text is not None}
    return _Registered(place, node, entry, _spec(entry, defaults, keys))


def _of_watched(node: MappingNode, place: str) -> Iterator[Mistake]:
    """A mistake for each key that needs documents."""
    for name in node.items:
        if name in FEED_KEYS:
            sentence = "is for what is collected, and this is not, by `watch: false`: remove one of the two"
            yield Mistake(node.key_lines[name], f"{place}.{name}", sentence)


def _spec(entry: FeedEntry, defaults: Mapping[str, Any], feature_keys: Mapping[str, str]) -> FeedSpec:
    common = {name: getattr(entry, name) for name in _DEFAULTED}
    if defaults:
        common |= {name: value for name, value in defaults.items() if name not in entry.model_fields_set}
    keep_days = common.pop("keep")
    return FeedSpec(
        keep_days=keep_days,
        url=entry.url.url,
        id=entry.id or feed_id(entry.url.url, entry.url.host),
        has_own_id=entry.id is not None,
        host=entry.url.host,
        title=entry.title,
        folder=entry.folder,
        enabled=entry.enabled and entry.watch,
        watched=entry.watch,
        feature_keys=feature_keys,
        allow_private=entry.allow_private is not None,
        private_hosts=entry.allow_private or (),
        shared=entry.shared,
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


# Entries that no parser can read are taken out, so that mistakes of the others show too. Only for messages: a
# file with a mistake is never used.

MOST = 20
"""Broken entries that are taken out; each costs the parser the whole text once more."""
MAX_CHARACTERS = 1_000_000
"""A longer text is not read again: 20 times 32 MB take minutes."""

_ENTRY = re.compile(r"\A( *)- ?")


def without_entry(text: str, line: int) -> tuple[str, range] | None:
    """The text with an empty entry in the place of the one around `line`, and the lines that it took.

    Lines count from 1 and stay as many, and so do entries. None where no entry begins at or above the line.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    lines = text.split("\n")
    first = next((n for n in range(min(line, len(lines)) - 1, -1, -1) if _ENTRY.match(lines[n])), None)
    if first is None or (dash := _ENTRY.match(lines[first])) is None:
        return None
    indent = len(dash[1])
    end = next((n for n in range(first + 1, len(lines)) if _is_outside(lines[n], indent)), len(lines))
    lines[first:end] = [f"{dash[1]}-", *[""] * (end - first - 1)]
    return "\n".join(lines), range(first + 1, end + 1)


def _is_outside(line: str, indent: int) -> bool:
    """The next entry, or a key beside or left of the list."""
    stripped = line.lstrip(" ")
    return bool(stripped) and not stripped.startswith("#") and len(line) - len(stripped) <= indent


# What was read is kept while neither the file nor a variable in it changes: 50,000 feeds take seconds to
# read, and the daemon's sensor looks at them every half minute.

_SETTLED_NS = 2_000_000_000
"""A file that changed less than two seconds ago may change again within the same tick of its clock."""

Signature = tuple[int, int, int, int, int]


class UsedVariables(Mapping[str, str]):
    """An environment that records which of its variables are read."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.used: dict[str, str | None] = {}
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        self.used[name] = self._environ.get(name)
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


@dataclass(frozen=True, slots=True)
class _Read:
    signature: Signature
    used: Mapping[str, str | None]
    registry: Registry


_last: dict[Path, _Read] = {}


def signature(path: Path) -> Signature | None:
    """A value that changes with the file; None where that cannot be relied on, or there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _SETTLED_NS:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_before(path: Path, *, environ: Mapping[str, str]) -> Registry | None:
    """The content of the file at `path` if this process has read it as it is; else None."""
    last = _last.get(path)
    if last is None or last.signature != signature(path):
        return None
    if any(environ.get(name) != value for name, value in last.used.items()):
        return None
    return last.registry


def keep(path: Path, before: Signature | None, environ: UsedVariables, registry: Registry) -> None:
    """Keep the registry just read, if the file is as it was `before` it was read."""
    if before is not None and before == signature(path):
        _last[path] = _Read(before, dict(environ.used), registry)
