"""Search in all that a user reads: an index in a file of its own, brought up to date while items come."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="search",
    commands={
        "search-index": Part("search.cli:search_index"),
    },
)
