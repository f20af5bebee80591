"""The content of feeds.yaml: feeds, and topics of them."""

from dataclasses import dataclass

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.features.topics.model import TopicSpec


@dataclass(frozen=True, slots=True)
class Registry:
    """Feeds and topics in the order of the file; every member of a topic is one of the feeds, or a stream."""

    feeds: tuple[FeedSpec, ...] = ()
    topics: tuple[TopicSpec, ...] = ()


EXAMPLE_URLS = frozenset(
    {
        "https://xkcd.com/atom.xml",
        "https://feeds.bbci.co.uk/news/world/rss.xml",
        "https://lwn.net/headlines/rss",
        "https://daringfireball.net/feeds/json",
        "https://www.ruanyifeng.com/blog/atom.xml",
        "https://www.solidot.org/index.rss",
        "https://b.hatena.ne.jp/hotentry/it.rss",
        "https://www.heise.de/rss/heise-atom.xml",
        "https://www.lemonde.fr/rss/une.xml",
        "https://habr.com/ru/rss/articles/",
    }
)
"""The feeds of the feeds.yaml that comes with the program: it says that they are to be replaced."""
