"""The asset `topics`, with one partition for each topic, and the sensor of the job `publish_topics`.

A person materializes the asset; polls and the job update it, with the ops of ops.py.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline.features.topics import ops, sql
from rss_pipeline.orchestration import looks as awaiting
from rss_pipeline.orchestration.jobs import POLL_FEEDS
from rss_pipeline.orchestration.partitions import PARTITIONS_A_RUN, topics_partitions
from rss_pipeline.orchestration.parts import AFTER_FEED_ITEMS, Building, DagsterParts, Starts
from rss_pipeline.orchestration.recent_runs import recent_runs
from rss_pipeline.orchestration.ui_labels import GROUP
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, is_alive, reason_to_wait
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases

_NAMED = 5


@dg.graph_asset(
    name="topics",
    group_name=GROUP,
    partitions_def=topics_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"atom", "json"},
    ins={"feed_items": AFTER_FEED_ITEMS},
    description=(
        "Each poll updates this asset as its last step, and the job `publish_topics`: they publish the topics"
        " of feeds.yaml, groups of feeds and streams, as Atom and JSON Feed under `topics/`. An event means"
        " that the bytes of a topic changed; its data version is their hash. Each partition is a topic."
        " Materialize a partition to publish its topic now, whatever its `every` says."
    ),
)
def topics(feed_items: Any) -> Any:
    return ops.publish_partitions(feed_items)


def decide_publish(database: Database, instance: dg.DagsterInstance, now: datetime) -> Start | Wait:
    """Start a publication or wait, by the topics that are due and the newest publications and polls."""
    # The list of topics alone is left to the next poll.
    found = [id for id in sql.due(database, now=now) if id != sql.INDEX]
    if not found:
        return decide_publication((), (), (), (), now=now)
    return decide_publication(
        found,
        recent_runs(instance, ops.PUBLISH_TOPICS),
        recent_runs(instance, POLL_FEEDS),
        leases.live_run_ids(database),
        now=now,
    )


def decide_publication(
    due: Sequence[str],
    runs: Sequence[JobRun],
    polls: Sequence[JobRun],
    live_run_ids: Collection[str],
    *,
    now: datetime,
) -> Start | Wait:
    """Start a run for topics that are due (their ids), one at a time. `runs` are the newest publications,
    `polls` the newest polls, newest first: a poll publishes at its end."""
    if not due:
        return Wait(reason="No topic is due.", is_idle=True)
    if (wait := reason_to_wait(runs, (), now=now)) is not None:
        return wait
    for poll in polls:
        if poll.state == "waiting" or (poll.state == "running" and is_alive(poll, live_run_ids, now)):
            return Wait(reason=f"The poll {poll.run_id[:8]} publishes at its end.")
    names = ", ".join(due[:_NAMED]) + (" ..." if len(due) > _NAMED else "")
    return Start(reason=f"{len(due)} topics changed: {names}.")


_PUBLISH_WHEN_CHANGED = Starts(
    name="publish_when_changed",
    job=ops.publish_topics,
    decide=lambda _: decide_publish,
    awaits=awaiting.topics,
    concerns="topics",
    description="Starts a publication when topics changed that no poll publishes: by a replay, a"
    " repair, a clean, images archived later, a change of `topics:`, or what another machine collected.",
)


def parts(of: Building) -> DagsterParts:
    """The definitions of topics."""
    return DagsterParts(assets=[topics], jobs=[ops.publish_topics], sensors=[_PUBLISH_WHEN_CHANGED.build(of)])
