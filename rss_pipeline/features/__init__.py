"""The features: what the project can do besides collecting feeds and serving what was collected.

Each is a package in this folder, and a line below; feature.py has all that one may add.
"""

from rss_pipeline.features import (
    copy,
    fleet,
    full_text,
    health,
    opml,
    pages,
    replay,
    retention,
    search,
    statistics,
    stories,
    streams,
    topics,
)
from rss_pipeline.features.feature import Feature, FeedKey

FEATURES: tuple[Feature, ...] = (
    copy.FEATURE,
    fleet.FEATURE,
    full_text.FEATURE,
    health.FEATURE,
    opml.FEATURE,
    pages.FEATURE,
    replay.FEATURE,
    retention.FEATURE,
    search.FEATURE,
    statistics.FEATURE,
    stories.FEATURE,
    streams.FEATURE,
    topics.FEATURE,
)

FEED_KEYS: dict[str, FeedKey] = {name: key for feature in FEATURES for name, key in feature.feed_keys.items()}
"""Keys of a feed in feeds.yaml, of all features."""
