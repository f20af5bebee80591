"""The computed assets `stream_items` and `topics`, with one partition for each stream and topic.

A person materializes them. Polls and the job `publish_topics` update them, with the ops of ops/topics.py.
https://docs.dagster.io/guides/build/assets
"""

from typing import Any

import dagster as dg

from rss_pipeline.orchestration.assets import PARTITIONS_A_RUN
from rss_pipeline.orchestration.ops import topics as topic_ops
from rss_pipeline.orchestration.partitions import streams_partitions, topics_partitions
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.orchestration.ui_labels import GROUP

_FEED_ITEMS = dg.AssetIn(FEED_ITEMS, partition_mapping=dg.AllPartitionMapping(), dagster_type=dg.Nothing)
"""For the lineage only: feeds.yaml has the feeds of a topic, and Dagster evaluates no mapping of ours."""


@dg.graph_asset(
    name="stream_items",
    group_name=GROUP,
    partitions_def=streams_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"feed_items": _FEED_ITEMS},
    description=(
        "Each poll updates this asset: the streams of feeds.yaml are parts of feeds, such as the items of one"
        " author, and need no request of their own. Each partition, `feed/stream`, holds the items of one"
        " stream; an event means that its members changed. Materialize a partition to judge all stored items"
        " by its selector again. A selector by XPath needs the documents: for that, replay the feed."
    ),
)
def stream_items(feed_items: Any) -> Any:
    return topic_ops.judge_partitions(feed_items)


@dg.graph_asset(
    name="topics",
    group_name=GROUP,
    partitions_def=topics_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"atom", "json"},
    ins={"feed_items": _FEED_ITEMS},
    description=(
        "Each poll updates this asset as its last step, and the job `publish_topics`: they publish the topics"
        " of feeds.yaml, groups of feeds and streams, as Atom and JSON Feed under `topics/`. An event means"
        " that the bytes of a topic changed; its data version is their hash. Each partition is a topic."
        " Materialize a partition to publish its topic now, whatever its `every` says."
    ),
)
def topics(feed_items: Any) -> Any:
    return topic_ops.publish_partitions(feed_items)
