"""The key `topics` of feeds.yaml: groups of feeds and streams, and each mistake with its line.

Topics are published by features.topics; here is only what may be written.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, ClassVar, get_args

from pydantic import AfterValidator, BeforeValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.collector.registry.entry import STRICT
from rss_pipeline.collector.registry.feed_url import read_url, same_as
from rss_pipeline.collector.registry.load import KnownFeeds
from rss_pipeline.collector.registry.validate import EntryModel, member_place, validated
from rss_pipeline.collector.registry.values import (
    FLAGS,
    NAME,
    NAME_RULE,
    describe,
    duration_of,
    environ_of,
    expanded,
    expanded_text,
    flag_of,
    invalid,
    nodes_of,
    title_of,
    written_text,
)
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.collector.registry.yaml_nodes import MappingNode, Mistake, Node, ScalarNode, SequenceNode
from rss_pipeline.features.streams.stream_keys import stream_names
from rss_pipeline.features.topics.model import (
    DEFAULT_TOPIC_EVERY,
    DEFAULT_TOPIC_ITEMS,
    TopicContent,
    TopicSpec,
)

MAX_TOPICS = 5_000
MAX_MEMBERS = 1_000
MAX_TOPIC_ITEMS = 50
"""A document with more of them in full is too large for readers to request often."""
MAX_HUBS = 10
MIN_EVERY = timedelta(minutes=5)
MAX_EVERY = timedelta(hours=24)
INDEX = "index"
"""The list of all topics is published under this name."""
PUBLIC_URLS = (
    "RSS_OBJECTS_PUBLIC_URL",
    "R2_TOPICS_PUBLIC_URL",
    "R2_PUBLIC_URL",
    "S3_TOPICS_PUBLIC_URL",
    "S3_PUBLIC_URL",
)
"""Variables with an address under which the objects `topics/...` are public."""

_EXAMPLE = "`news: {of: [one-feed, another-feed]}`"


def _members(value: object) -> Sequence[Node]:
    if (isinstance(value, SequenceNode) and not value.items) or (
        isinstance(value, ScalarNode) and value.is_null
    ):
        raise invalid(f"has no members; write them, {TopicEntry.example}")
    nodes = nodes_of(value)
    if len(nodes) > MAX_MEMBERS:
        raise invalid(f"has {len(nodes):,} members; at most {MAX_MEMBERS:,} are read: write several topics")
    return nodes


def _member(value: object, info: ValidationInfo) -> Member:
    text = expanded_text(value, info)
    if not _is_member(text):
        raise invalid(f"{shown(written_text(value))} is no member; write the id of a feed, or feed/stream")
    return Member.of(text)


def _is_member(text: str) -> bool:
    return all(NAME.fullmatch(name) for name in text.split("/", 1))


def _count(value: object, info: ValidationInfo) -> int:
    text = expanded_text(value, info)
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MAX_TOPIC_ITEMS:
        raise invalid(
            f"{shown(written_text(value))} is no number of items; write one from 1 to {MAX_TOPIC_ITEMS}"
        )
    return int(text)


def _every(value: object, info: ValidationInfo) -> timedelta:
    every, written = duration_of(value, info), shown(written_text(value))
    if every < MIN_EVERY:
        raise invalid(f"{written} is too short, each publication is paid for; write 5m or more")
    if every > MAX_EVERY:
        raise invalid(f"{written} is too long; write 24h or less")
    return every


def _content(value: object, info: ValidationInfo) -> str:
    text = expanded_text(value, info)
    if text not in get_args(TopicContent):
        raise invalid(f"{shown(written_text(value))} is not known; write full, summary or none")
    return text


def _web_url(value: object, info: ValidationInfo) -> str:
    """An address that is published, so it may have no password."""
    try:
        read = read_url(written_text(value), environ_of(info))
    except ValueError as error:
        raise invalid(str(error)) from None
    if read.username is not None:
        raise invalid("this address is published, and has a password before the @; remove it")
    return read.url


def _hubs(value: object) -> Sequence[Node]:
    nodes = nodes_of(value)
    if len(nodes) > MAX_HUBS:
        raise invalid(f"has {len(nodes)} hubs; at most {MAX_HUBS} are notified: remove some of them")
    return nodes


def _distinct_hubs(hubs: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(hubs)) < len(hubs):
        raise invalid("has the same hub twice; remove one of them")
    return hubs


_Count = Annotated[int, BeforeValidator(_count)]
_WebUrl = Annotated[str, BeforeValidator(_web_url)]


class TopicEntry(EntryModel):
    """The keys of one topic."""

    model_config = STRICT
    example: ClassVar[str] = "`of: [one-feed, another-feed/stream]`"
    missing: ClassVar[str] = "is missing; write the members, `of: [one-feed, another-feed/stream]`"

    of: Annotated[tuple[Annotated[Member, BeforeValidator(_member)], ...], BeforeValidator(_members)]
    title: Annotated[str | None, BeforeValidator(title_of)] = None
    each: _Count | None = None
    items: _Count = DEFAULT_TOPIC_ITEMS
    every: Annotated[timedelta, BeforeValidator(_every)] = DEFAULT_TOPIC_EVERY
    content: Annotated[TopicContent, BeforeValidator(_content)] = "full"
    link: _WebUrl | None = None
    hub: Annotated[tuple[_WebUrl, ...], BeforeValidator(_hubs), AfterValidator(_distinct_hubs)] = ()
    public: Annotated[bool, BeforeValidator(flag_of)] = False
    stories: Annotated[bool, BeforeValidator(flag_of)] = False


def read_topics(
    node: Node | None, feeds: KnownFeeds, environ: Mapping[str, str], mistakes: list[Mistake]
) -> tuple[TopicSpec, ...]:
    """The topics, in the order of the file; `node` is the value of the key, None without."""
    if node is None:
        return ()
    if not isinstance(node, MappingNode):
        is_null = isinstance(node, ScalarNode) and node.is_null
        found = "has no value" if is_null else f"is {describe(node)}"
        mistakes.append(
            Mistake(node.line, "topics", f"{found}; write an id and its keys on each line below, {_EXAMPLE}")
        )
        return ()
    if len(node.items) > MAX_TOPICS:
        sentence = f"has {len(node.items):,} topics; at most {MAX_TOPICS:,} are read: remove some of them"
        mistakes.append(Mistake(node.line, "topics", sentence))
        return ()
    topics = []
    for id, table in node.items.items():
        line, place = node.key_lines[id], member_place("topics", id)
        if not NAME.fullmatch(id):
            mistakes.append(Mistake(line, place, f"this is not a valid id; write {NAME_RULE}"))
        elif id == INDEX:
            mistakes.append(Mistake(line, place, "this is the name of the list of topics; write another id"))
        entry = validated(TopicEntry, table, place, environ, mistakes)
        if isinstance(table, MappingNode):
            mistakes += _member_mistakes(id, table, place, node.items, feeds, environ)
        if entry is not None:
            keys = {name: getattr(entry, name) for name in TopicEntry.model_fields}
            topics.append(TopicSpec(id=id, **keys))
    return tuple(topics)


def _member_mistakes(
    id: str,
    table: MappingNode,
    place: str,
    topics: Mapping[str, Node],
    feeds: KnownFeeds,
    environ: Mapping[str, str],
) -> Iterator[Mistake]:
    """Mistakes of the members that can be read, for the topic may have others."""
    written, is_public = table.items.get("of"), _is_public(table, environ)
    first: dict[str, int] = {}
    for index, node in enumerate(written.items if isinstance(written, SequenceNode) else (written,)):
        try:
            text = expanded(node, environ) if isinstance(node, ScalarNode) else ""
        except PydanticCustomError:
            continue
        if not _is_member(text):
            continue
        line, there = table.key_lines["of"], f"{place}.of"
        if isinstance(node, ScalarNode) and node is not written:
            line, there = node.line, f"{there}[{index}]"
        if (before := first.setdefault(text, index)) != index:
            yield Mistake(line, there, f"{text} is also of[{before}]; remove one of them")
        elif sentence := _member_mistake(Member.of(text), id, is_public, topics, feeds):
            yield Mistake(line, there, sentence)


def _is_public(table: MappingNode, environ: Mapping[str, str]) -> bool:
    try:
        return FLAGS.get(expanded(table.items["public"], environ).lower(), False)
    except (KeyError, PydanticCustomError):
        return False


def _member_mistake(
    member: Member, topic_id: str, is_public: bool, topics: Mapping[str, Node], feeds: KnownFeeds
) -> str | None:
    id, entry = member.feed_id, feeds.entries.get(member.feed_id)
    if entry is None:
        if not feeds.is_complete:
            return None
        if id in topics:
            which = "the topic itself" if id == topic_id else "a topic"
            return f'"{id}" is {which}, and a topic has feeds and streams only; write their names'
        return f'no feed has the id "{id}"; {_meant(id, feeds.entries, "write the `id:` of a feed")}'
    streams = stream_names(entry.items.get("streams"))
    if member.stream is not None and member.stream not in streams:
        otherwise = "write it under `streams:` of the feed"
        return f'the feed "{id}" has no stream "{member.stream}"; {_meant(member.stream, streams, otherwise)}'
    spec = feeds.specs.get(id)
    if spec is not None and not spec.watched:
        return f'the feed "{id}" has no items, by `watch: false`: remove it here'
    if spec is None or is_public or (spec.access.is_open and not spec.allow_private):
        return None
    why = "allow_private" if spec.access.is_open else "headers or a password"
    return (
        f'the feed "{id}" has {why}, and a topic can be read by everybody: remove it here, or write'
        " `public: true` in the topic to publish its items"
    )


def _meant(name: str, known: Iterable[str], otherwise: str) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f'did you mean "{close[0]}"?' if close else otherwise


def own_topic_mistake(url: str, environ: Mapping[str, str]) -> str | None:
    """The sentence for a feed with the URL of a topic of ours: its items would come back for ever."""
    for name in PUBLIC_URLS:
        public = environ.get(name)
        if not public:
            continue
        try:
            ours = _without_scheme(f"{public.strip().rstrip('/')}/topics/")
        except ValueError:
            continue
        if _without_scheme(url).startswith(ours):
            return f"is published by this installation ({name}): a topic cannot be a feed of it; remove it"
    return None


def _without_scheme(url: str) -> str:
    """Equal for the http and the https form of a URL."""
    scheme, _, rest = same_as(url).partition("://")
    host, _, path = rest.partition("/")
    return f"{host.removesuffix({'http': ':80', 'https': ':443'}[scheme])}/{path}"
