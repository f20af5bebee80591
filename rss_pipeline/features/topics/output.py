"""The section of `status` on topics: a line for each, and warnings."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rss_pipeline.cli.output.status import StatusLook, StatusSection
from rss_pipeline.cli.output.terminal import new_console, new_table, plain
from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.features.streams.output import show_warnings
from rss_pipeline.features.topics.sql import TopicState, topic_states

TOPICS_LISTED = 20


def status_section(look: StatusLook) -> StatusSection:
    """The topics, in the list of all feeds."""
    topics = topic_states(look.database) if look.feed_id is None else []
    limit = 0 if look.lists_all else TOPICS_LISTED
    return StatusSection(
        as_json={"topics": [topic_as_json(each, now=look.now) for each in topics]},
        show=lambda: show_topics(topics, limit=limit, now=look.now),
    )


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
    show_warnings([(id, warning) for id, warning in warnings.items() if warning is not None], "topics")


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
