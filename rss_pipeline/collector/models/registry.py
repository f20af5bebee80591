"""The content of feeds.yaml: feeds, and topics of them."""

from dataclasses import dataclass

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.models.topic import TopicSpec


@dataclass(frozen=True, slots=True)
class Registry:
    """Feeds and topics in the order of the file; every member of a topic is one of the feeds, or a stream."""

    feeds: tuple[FeedSpec, ...] = ()
    topics: tuple[TopicSpec, ...] = ()
