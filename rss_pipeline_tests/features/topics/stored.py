"""Topics of the registry, written as rows."""

from typing import Any

from rss_pipeline.collector.models.feed import Member
from rss_pipeline.features.topics import sql
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.storage.database import Database


def set_topics(database: Database, *specs: TopicSpec) -> None:
    """Make these the topics of the registry."""
    sql.sync_topics(database, specs, database.batch([sql.STORED_TOPICS])[0].rows)


def topic(id: str, *of: str, **fields: Any) -> TopicSpec:
    return TopicSpec(id=id, of=tuple(map(Member.of, of)), **fields)
