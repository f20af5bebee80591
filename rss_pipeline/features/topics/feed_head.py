"""The facts of the topic itself in both of its documents."""

from dataclasses import dataclass
from uuid import UUID

from rss_pipeline.collector.parse.iri import published_url
from rss_pipeline.collector.sanitize.text import one_line
from rss_pipeline.features.topics.entry import MOST_TITLE_CHARACTERS
from rss_pipeline.features.topics.ids import topic_urn
from rss_pipeline.features.topics.model import TopicSpec
from rss_pipeline.features.topics.values import PublicUrls

GENERATOR = "rss_pipeline"
"""Without a version: each release would change every document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedHead:
    """A topic, without its entries."""

    id: str
    title: str
    link: str | None
    hubs: tuple[str, ...]
    urls: PublicUrls | None
    """None if the documents have no public URL."""
    expired: bool
    """No longer published: readers need not come again."""


def feed_head(topic: TopicSpec, *, installation: UUID, urls: PublicUrls | None, expired: bool) -> FeedHead:
    hubs = dict.fromkeys(filter(None, map(published_url, topic.hub)))
    return FeedHead(
        id=topic_urn(installation, topic.id),
        title=topic_title(topic),
        link=published_url(topic.link),
        hubs=tuple(hubs),
        urls=urls,
        expired=expired,
    )


def topic_title(topic: TopicSpec) -> str:
    """The topic's title, else its id."""
    return one_line(topic.title, limit=MOST_TITLE_CHARACTERS) or topic.id
