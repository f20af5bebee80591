"""Statistics of a user's feeds: what comes, what is read, what it takes in the stores."""

from rss_pipeline.features.feature import Feature

FEATURE = Feature(
    name="statistics",
)
