"""Topics: many feeds and streams become one feed, published as Atom and JSON Feed."""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="topics",
    checks=(Part("topics.checks:CHECKS"),),
    commands={
        "publish": Part("topics.cli:publish"),
    },
    metrics=(Part("topics.checks:metrics"),),
    status=(Part("topics.output:status_section"),),
)
