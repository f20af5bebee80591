"""The health check of topics, and their metrics."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rss_pipeline.features.health.model import Look, listed
from rss_pipeline.features.health.sql import Concerned
from rss_pipeline.features.topics.sql import TopicState, topic_states
from rss_pipeline.storage.database import Database

if TYPE_CHECKING:
    from prometheus_client.core import Metric


def _topics(look: Look) -> Concerned | None:
    topics = topic_states(look.database)
    warned = [each.spec for each in topics if each.warning(look.now) is not None]
    rows = [{"topic": spec.id, "title": spec.title} for spec in warned]
    return Concerned(len(rows), rows) if topics else None


CHECKS = (
    listed(
        "topics_published",
        _topics,
        doctor="topics",
        right="none has a warning",
        wrong="changes that are not published",
        fix="`rss-pipeline publish` publishes them and says what is wrong.",
        things=("topic", "topics"),
        follows="streams_match",
    ),
)


def metrics(database: Database) -> "Callable[[datetime], Iterator[Metric]]":
    """The metrics of the topics as they are now, at a time."""
    topics = topic_states(database)
    return lambda now: _metrics(topics, now)


def _metrics(topics: Sequence[TopicState], now: datetime) -> "Iterator[Metric]":
    # Only now: the checks are loaded by each run, and by everything that shows them.
    from rss_pipeline.features.health.metrics import gauge, labelled

    counts = {
        "current": sum(each.stale_at is None for each in topics),
        "failing": sum(each.stale_at is not None and each.error is not None for each in topics),
    }
    counts["waiting"] = len(topics) - sum(counts.values())
    yield labelled(
        "rss_topics",
        "Topics by state. waiting has a change that is not published, failing one that could not be.",
        "state",
        counts,
    )
    due = min((at for each in topics if (at := each.due_at()) is not None), default=now)
    lag = max((now - due).total_seconds(), 0.0)
    yield gauge("rss_topic_lag_seconds", "Time since the topic that waits longest became due.", lag)
    published = [each.published_at for each in topics if each.published_at is not None]
    if published:
        last = max(published).timestamp()
        yield gauge("rss_last_publication_timestamp_seconds", "Last change of a published topic.", last)
