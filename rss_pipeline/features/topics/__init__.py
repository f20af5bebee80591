"""Topics: many feeds and streams become one feed, published as Atom and JSON Feed.

model.py           a topic, and the items and feeds that it is made of
registry_entry.py  the key `topics` of feeds.yaml
sql.py             the topics in the database: stale marks, leases, the list of all topics
candidates.py      the items that a topic may show, read from the database
choice.py          the choice among them; ids, doubles
document_entry.py  the values of an entry, and of the topic itself
documents.py       both documents, as bytes
publish.py         the publication: what changed is put into the object store
websub.py          notices to WebSub hubs
ops.py             the ops and the job, for each poll; dagster.py has the asset and the sensor
checks.py          the health check and metrics
cli.py             the command `publish`, and the section of `status`
"""

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
    status=(Part("topics.cli:status_section"),),
)
