"""The command `publish`: topics published now.

The last step of each poll publishes those that are due.
"""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output.terminal import complain, say, say_json, show_table
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database

if TYPE_CHECKING:
    from rss_pipeline.features.topics.publish import Publication
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rss_pipeline.cli.output.status_table import StatusLook, StatusSection
from rss_pipeline.cli.output.terminal import new_console, new_table, plain
from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.features.streams.output import show_warnings
from rss_pipeline.features.topics.sql import TopicState, topic_states


@click.command()
@click.argument("topic", nargs=-1)
@as_json
@click.pass_obj
def publish(settings: Settings, topic: tuple[str, ...], as_json: bool) -> None:
    """Publish TOPIC now, whatever its `every`; without TOPIC, all topics.

    Topics are those of feeds.yaml at the last poll. Documents are written only if their bytes changed, or if
    they are not in the object store. Exit code 1 if a topic could not be published.
    """
    from rss_pipeline.features.topics.publish import PublicationStores
    from rss_pipeline.features.topics.publish import publish as publish_topics

    with open_database(settings) as database:
        chosen = _chosen(database, topic)
        published = (
            publish_topics(PublicationStores.of(settings, database), clock=utc_now, only=chosen)
            if chosen
            else []
        )
    if as_json:
        say_json([asdict(each) for each in published])
    else:
        _show(published)
    for each in published:
        if each.error is not None:
            complain(f"{each.topic_id}: {each.error}")
    if any(each.error is not None for each in published):
        sys.exit(1)


def _chosen(database: Database, named: tuple[str, ...]) -> list[str]:
    """The ids of the topics to publish: all, and those that left feeds.yaml and are due; or the named ones.

    Raises:
        click.ClickException: a name is no topic's; the message lists the topics.
    """
    from rss_pipeline.features.topics.sql import due, topic_ids

    known = topic_ids(database)
    if not named:
        return sorted({*known, *due(database, now=utc_now())})
    unknown = [name for name in named if name not in known]
    if unknown:
        topics = f"the topics are {', '.join(known)}" if known else "there are no topics"
        raise click.ClickException(
            f"no topic has the id {', '.join(map(repr, unknown))}; {topics}. A topic that is new in"
            " feeds.yaml is known from the next poll on"
        )
    return list(dict.fromkeys(named))


def _show(published: "list[Publication]") -> None:
    if not published:
        say("There are no topics: write some into feeds.yaml, and poll.")
        return
    rows = [
        (
            each.topic_id,
            f"{each.entries:,}",
            f"{each.feeds:,}",
            "failed" if each.error is not None else ", ".join(each.changed) or "unchanged",
        )
        for each in published
    ]
    show_table(("topic", "entries", "feeds", "written"), rows)


# The section of `status` on topics: a line for each, and warnings.

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
