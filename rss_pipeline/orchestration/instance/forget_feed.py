"""The removal of a feed: its rows and its partition key. Its objects stay.

It may be killed at any moment: the next sync of the registry completes it (registry_partitions.py). The SQL
statements are in storage/feeds.
"""

from collections.abc import Sequence

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import ForgetRefused
from rss_pipeline.pipeline.registry.sync import check_forgettable
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import forget

_IN_FLIGHT = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def forget_feed(database: Database, instance: dg.DagsterInstance, feed_id: str) -> dict[str, int]:
    """Delete a feed that the registry no longer has; return the number of deleted rows of each table.

    Raises:
        ForgetRefused: it is still registered, a run holds it, or runs are in progress (a partition key
            that is deleted under a run fails that run at its end).
    """
    check_forgettable(database, feed_id, now=utc_now())
    if is_materializing(instance):
        raise ForgetRefused("a materialization or backfill is in progress: try again after its end")
    gone = forget.begin_forget(database, feed_id)
    _end(database, instance, feed_id)
    return gone


def complete_forgets(database: Database, instance: dg.DagsterInstance, ids: Sequence[str]) -> None:
    """Complete the removal of these feeds, which a sync or a killed process began; not during a backfill."""
    if ids and not is_materializing(instance):
        _end(database, instance, *ids)


def _end(database: Database, instance: dg.DagsterInstance, *feed_ids: str) -> None:
    # The rows go last: they alone show which keys have to go.
    for id in feed_ids:
        instance.delete_dynamic_partition("feeds", id)
    forget.end_forget(database, *feed_ids)


def is_materializing(instance: dg.DagsterInstance) -> bool:
    """Return True while a materialization by hand or a backfill is in progress."""
    runs = dg.RunsFilter(job_name="__ASSET_JOB", statuses=_IN_FLIGHT)
    return instance.get_runs_count(runs) > 0
