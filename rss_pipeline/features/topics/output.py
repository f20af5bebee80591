"""The output of `status` on streams and topics: warnings, and a line for each topic."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console, new_table, plain
from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.features.streams.sql import StreamState
from rss_pipeline.features.topics.sql import TopicState

TOPICS_LISTED = 20
_WARNINGS_LISTED = 8


def show_stream_warnings(streams: Sequence[StreamState]) -> None:
    """A paragraph for each stream that probably does not select what it should."""
    warned = [(f"{each.feed_id}/{each.name}", each.warning) for each in streams if each.warning is not None]
    _show_warnings(warned, "streams")


def show_topics(topics: Sequence[TopicState], *, limit: int, now: datetime) -> None:
    """A line for each topic, those with a warning first, and the warnings below."""
    if not topics:
        return
    warnings = {each.spec.id: each.warning(now) for each in topics}
    console = new_console()
    table = new_table("topic", "entries", "published", "title")
    ordered = sorted(topics, key=lambda each: warnings[each.spec.id] is None)
    for each in ordered[:limit] if limit else ordered:
        table.add_row(
            each.spec.id,
            "-" if each.entries is None else str(each.entries),
            "-" if each.published_at is None else f"{rough(now - each.published_at)} ago",
            plain(each.spec.title or ""),
        )
    console.print()
    console.print(table)
    if limit and len(topics) > limit:
        console.print(f"... and {len(topics) - limit:,} more topics: --limit 0 shows all")
    _show_warnings([(id, warning) for id, warning in warnings.items() if warning is not None], "topics")


def _show_warnings(warned: Sequence[tuple[str, str]], things: str) -> None:
    console = new_console()
    if warned:
        console.print()
    for name, sentence in warned[:_WARNINGS_LISTED]:
        console.print(Text.assemble((f"{name}: ", "yellow"), plain(sentence)))
    if len(warned) > _WARNINGS_LISTED:
        console.print(
            f"... and {len(warned) - _WARNINGS_LISTED:,} more {things} with a warning: --json has all"
        )


def stream_lines(streams: Sequence[StreamState], *, now: datetime) -> list[str]:
    """A feed's streams, a line each, for `status FEED`."""
    return [line for each in streams for line in _lines(each, now)]


def _lines(stream: StreamState, now: datetime) -> list[str]:
    parts = [f"{stream.members:,} items" if stream.members else "no items"]
    if stream.newest_at is not None:
        parts.append(f"newest {rough(now - stream.newest_at)} ago")
    if stream.matched_at is not None:
        parts.append(f"last match {rough(now - stream.matched_at)} ago")
    lines = [f"{stream.name}: {', '.join(parts)} ({stream.selector})"]
    return lines + [f"{stream.name}: {each}" for each in (stream.note, stream.warning) if each is not None]


def stream_as_json(stream: StreamState) -> dict[str, Any]:
    return {
        "feed_id": stream.feed_id,
        "name": stream.name,
        "items": stream.members,
        "newest_item_at": stream.newest_at and instant(stream.newest_at),
        "last_match_at": stream.matched_at and instant(stream.matched_at),
        "unmatched_documents": stream.unmatched_documents,
        "values_seen": list(stream.values_seen),
        "error": stream.error,
        "warning": stream.warning,
        "note": stream.note,
    }


def topic_as_json(topic: TopicState, *, now: datetime) -> dict[str, Any]:
    return {
        "id": topic.spec.id,
        "title": topic.spec.title,
        "of": [str(member) for member in topic.spec.of],
        "entries": topic.entries,
        "bytes": topic.bytes,
        "published_at": topic.published_at and instant(topic.published_at),
        "stale_at": topic.stale_at and instant(topic.stale_at),
        "error": topic.error,
        "warning": topic.warning(now),
    }
