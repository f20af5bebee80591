"""The content of feeds.yaml: feeds, and what features have there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rss_pipeline.collector.models.feed import FeedSpec


@dataclass(frozen=True, slots=True)
class Registry:
    """Feeds in the order of the file, and by key, such as `topics`, the values of features."""

    feeds: tuple[FeedSpec, ...] = ()
    of_features: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


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
