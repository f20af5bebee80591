"""Copies of an installation from one pair of stores to another, compared byte by byte."""

from rss_pipeline.features.feature import Feature

FEATURE = Feature(
    name="copy",
)
