"""Retention: what is older than a feed keeps is removed daily, with all that hangs on it."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="retention",
    commands={"clean": Part("retention.cli:clean")},
    dagster=Part("retention.dagster:parts"),
)
