"""The streams of a document's items, judged in the parser process.

Imported for feeds with streams alone; XPath for those that use it.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import Item, ParsedFeed, item_id
from rss_pipeline.features.streams.model import (
    VALUES_KEPT,
    FieldMatcher,
    SelectorField,
    StreamsOfDocument,
    StreamSpec,
    streams_of,
)
from rss_pipeline.pipeline.session.parser_tasks import ParseTask

_VALUE_CHARACTERS = 100


def needs_tree(feed: Feed) -> bool:
    """True if a stream of the feed selects by XPath."""
    return any(stream.is_xpath for stream in streams_of(feed))


def judge_document(task: ParseTask, read: ParsedFeed, parsed: ParsedFeed) -> StreamsOfDocument:
    """Judge the items of a document: by XPath as it was `read`, by fields as it is `parsed`."""
    streams = streams_of(task.feed)
    members, errors = _selected(read, streams, task)
    members |= _matched(parsed.items, streams, task.feed)
    return StreamsOfDocument(members=members, errors=errors, values=_values(parsed.items, streams, members))


def _selected(
    read: ParsedFeed, streams: Sequence[StreamSpec], task: ParseTask
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The ids of the items that each expression selects, and the sentences of those that cannot."""
    if read.tree is None:
        return {}, {}
    from rss_pipeline.features.streams.xpath import selected_items

    xpaths = {each.name: each.selector for each in streams if isinstance(each.selector, str)}
    selection = selected_items(read.tree, xpaths, feed_id=task.feed.id)
    members = {
        name: tuple(item_id(task.feed.id, task.secrets.removed(read.items[place].guid)) for place in places)
        for name, places in selection.items.items()
    }
    return members, selection.errors


def _matched(items: Sequence[Item], streams: Sequence[StreamSpec], feed: Feed) -> dict[str, tuple[str, ...]]:
    """The ids of the items that each selector by field matches."""
    matcher = FieldMatcher(streams)
    if not matcher.names:
        return {}
    members: dict[str, list[str]] = {name: [] for name in matcher.names}
    for item in items:
        names = matcher.match(
            title=item.title,
            link=item.link,
            authors=item.authors or tuple(filter(None, [item.author])),
            categories=item.categories,
        )
        if names:
            id = item_id(feed.id, item.guid)
            for name in names:
                members[name].append(id)
    return {name: tuple(ids) for name, ids in members.items()}


def _values(
    items: Sequence[Item], streams: Iterable[StreamSpec], members: Mapping[str, tuple[str, ...]]
) -> dict[SelectorField, tuple[str, ...]]:
    """The first values of each field by which a stream without members selects."""
    wanted = {stream.listed_field for stream in streams if not members.get(stream.name)}
    read: dict[SelectorField, Callable[[Item], Iterable[str | None]]] = {
        "author": lambda item: item.authors or [item.author],
        "category": lambda item: item.categories,
        "title": lambda item: [item.title],
        "link": lambda item: [item.link],
    }
    return {
        field: tuple(
            itertools.islice(
                dict.fromkeys(value[:_VALUE_CHARACTERS] for item in items for value in of(item) if value),
                VALUES_KEPT,
            )
        )
        for field, of in read.items()
        if field in wanted
    }
