"""Streams: a feed's items by category, prefix, pattern or XPath; each is listed and published by itself.

```
model.py       a stream with its selector, and the match of items with selectors by field
stream_keys.py the key `streams` of a feed in feeds.yaml; expression.py checks its XPath
judge_document.py  the members among a document's items, in the parser process; xpath.py evaluates XPath there
sql.py         statements: members, the streams of the registry, those that are to be judged anew
service.py     stored items judged anew by changed selectors, because a person wants it, or in a replay
states.py      the streams with their items, for people and for events
survey.py      what a feed can be split by
dagster.py     the asset `stream_items`: partitions and events
checks.py      the health check
cli.py         the command `streams`; output.py prints, also a section of `status`
```

A stream as a filter of a feed's items is the core's: `items FEED/STREAM`, `export`, the tables.
"""

from rss_pipeline.features.feature import Feature, FeedKey, Part, Replaying

FEATURE = Feature(
    name="streams",
    checks=(Part("streams.checks:CHECKS"),),
    commands={
        "streams": Part("streams.cli:streams"),
    },
    copied_tables={"streams": ("feed_id", "name"), "item_streams": ("feed_id", "stream", "item_id")},
    dagster=Part("streams.dagster:parts"),
    feed_keys={
        "streams": FeedKey(
            read=Part("streams.stream_keys:read_streams"),
            register=Part("streams.sql:register_streams"),
            leave=Part("streams.sql:end_streams"),
            needs_tree=Part("streams.judge_document:needs_tree"),
            parse=Part("streams.judge_document:judge_document"),
            with_items=Part("streams.sql:with_items"),
            at_close=Part("streams.sql:note_document"),
        ),
    },
    partition_keys=Part("streams.dagster:register_streams"),
    poll_events=Part("streams.dagster:poll_events"),
    replaying=Replaying(
        of_feed=Part("streams.service:StreamsInReplay"), events=Part("streams.dagster:report_replayed")
    ),
    status=(Part("streams.output:status_section"),),
)
