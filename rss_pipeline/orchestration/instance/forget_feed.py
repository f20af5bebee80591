"""The removal of a feed: its rows and its partition key. Its objects stay.

The SQL statements are in storage/feeds.
"""

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import due, feeds

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
        RssPipelineError: it is still registered, a run holds it, or runs are in progress (a partition key
            that is deleted under a run fails that run at its end).
    """
    row = due.availability(database, [feed_id], now=utc_now())[feed_id]
    if row["registered"]:
        raise RssPipelineError(
            f"{feed_id} is still in feeds.yaml and would come back: remove it there, run"
            " `rss-pipeline poll`, then forget it"
        )
    if row["held_token"] is not None:
        raise RssPipelineError(f"{feed_id} is being visited now: try again in a minute")
    backfills = dg.RunsFilter(job_name="__ASSET_JOB", statuses=_IN_FLIGHT)
    if instance.get_runs_count(backfills):
        raise RssPipelineError("a materialization or backfill is in progress: try again after its end")
    gone = feeds.forget(database, feed_id)
    instance.delete_dynamic_partition("feeds", feed_id)
    return gone
