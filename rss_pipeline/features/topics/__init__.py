"""Topics: many feeds and streams become one feed, published as Atom and JSON Feed."""

from rss_pipeline.features.feature import AfterPoll, Feature, Part

FEATURE = Feature(
    name="topics",
    needs=("streams",),
    after_poll=AfterPoll(
        op=Part("topics.ops:publish"),
        job=Part("topics.ops:publish_topics"),
        is_due=Part("topics.publications:is_due"),
    ),
    checks=(Part("topics.checks:CHECKS"),),
    commands={
        "publish": Part("topics.cli:publish"),
    },
    dagster=Part("topics.dagster:parts"),
    metrics=(Part("topics.checks:metrics"),),
    status=(Part("topics.output:status_section"),),
)
