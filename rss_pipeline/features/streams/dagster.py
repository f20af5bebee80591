"""The asset `stream_items`, with one partition for each stream. Polls update it, and a person does.

https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from rss_pipeline.features.streams.refresh import judge_streams
from rss_pipeline.features.streams.report import report_state
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.ops.visits import SessionResource
from rss_pipeline.orchestration.partitions import PARTITIONS_A_RUN, streams_partitions
from rss_pipeline.orchestration.parts import AFTER_FEED_ITEMS, Building, DagsterParts
from rss_pipeline.orchestration.ui_labels import GROUP


# No kind: the asset's page would show it in place of the asset's own kinds.
@dg.op(
    ins={"feed_items": dg.In(dg.Nothing, description="Sets the order only; the op reads the database.")},
    out=dg.Out(dg.Nothing, is_required=False),
)
def judge_partitions(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Judge all stored items by these streams. Those that could not be judged are red."""
    with run_step(context, session):
        keys = list(context.partition_keys)
        failed = judge_streams(session.run.database, keys)
        judged = [key for key in keys if key not in failed]
        for events in report_state(session.run.database, context.instance, judged):
            record_events(context, events)
        if failed:
            first = next(iter(failed))
            raise dg.Failure(
                description=f"{first}: {failed[first]}.", metadata=dict(failed), allow_retries=False
            )
    yield from ()


@dg.graph_asset(
    name="stream_items",
    group_name=GROUP,
    partitions_def=streams_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"feed_items": AFTER_FEED_ITEMS},
    description=(
        "Each poll updates this asset: the streams of feeds.yaml are parts of feeds, such as the items of one"
        " author, and need no request of their own. Each partition, `feed/stream`, holds the items of one"
        " stream; an event means that its members changed. Materialize a partition to judge all stored items"
        " by its selector again. A selector by XPath needs the documents: for that, replay the feed."
    ),
)
def stream_items(feed_items: Any) -> Any:
    return judge_partitions(feed_items)


def parts(_: Building) -> DagsterParts:
    """The definitions of streams."""
    return DagsterParts(assets=[stream_items])
