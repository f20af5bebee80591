"""Streams: a feed's items by category, prefix, pattern or XPath; each is listed and published by itself."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="streams",
    checks=(Part("streams.checks:CHECKS"),),
    commands={
        "streams": Part("streams.cli:streams"),
    },
    dagster=Part("streams.dagster:parts"),
    partition_keys=Part("streams.report:register_streams"),
    status=(Part("streams.output:status_section"),),
)
