"""Topics: many feeds and streams become one feed, published as Atom and JSON Feed."""

from rss_pipeline.features.feature import AfterPoll, Feature, Part, RegistryKey

FEATURE = Feature(
    name="topics",
    needs=("streams",),
    after_poll=AfterPoll(
        op=Part("topics.ops:publish"),
        job=Part("topics.ops:publish_topics"),
        is_due=Part("topics.sql:is_due"),
    ),
    automations=lambda _: ["publish_when_changed"],
    checks=(Part("topics.checks:CHECKS"),),
    commands={
        "publish": Part("topics.cli:publish"),
    },
    dagster=Part("topics.dagster:parts"),
    partition_keys=Part("topics.ops:register_topics"),
    registry_key=RegistryKey(
        name="topics",
        read=Part("topics.registry_entry:read_topics"),
        stored=Part("topics.sql:STORED_TOPICS"),
        write=Part("topics.sql:sync_topics"),
        refuses_url=Part("topics.registry_entry:own_topic_mistake"),
    ),
    stale=Part("topics.sql:MARK_STALE"),
    metrics=(Part("topics.checks:metrics"),),
    status=(Part("topics.output:status_section"),),
)
